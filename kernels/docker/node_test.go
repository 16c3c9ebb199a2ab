//go:build linux

package docker

import (
	"path/filepath"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

const nodeImage = "cellblock-node:latest"

// TestNodeKernel runs the Node kernel as its image brings it.
func TestNodeKernel(t *testing.T) {
	s := settings[0]
	host := s.host(t)
	for _, d := range []kernelstest.Dialect{kernelstest.JavaScriptDialect, kernelstest.TypeScriptDialect} {
		t.Run(d.Language, func(t *testing.T) {
			kernelstest.TestKernel(t, kernelstest.Setup{
				Image: nodeImage,
				Kernelspec: kernels.Kernelspec{
					Name: d.Language, Language: d.Language, InterruptMode: "message", Transport: "ipc",
					Argv: []string{"node", "/usr/share/jupyter/kernels/javascript/kernel.mjs", "--language", d.Language, "{connection_file}"},
				},
				New: func(t *testing.T, dir string) kernels.Provisioner {
					p := newProvisioner(t, Config{
						Host: host, Carrier: s.carrier, Files: s.files, Shim: kernelstest.BuildShim(t),
						RunDir: filepath.Join(dir, "run"), Images: []string{nodeImage},
					})
					if err := p.Health(t.Context()); err != nil {
						kernelstest.Need(t, false, "the image "+nodeImage+": "+err.Error())
					}
					return p
				},
			}, d)
		})
	}
}
