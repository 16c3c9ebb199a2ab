//go:build linux

package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// TestSuite runs the suite that every provisioner passes, on every engine and carrier.
func TestSuite(t *testing.T) {
	for _, s := range settings {
		if s.files == FilesVolume {
			continue // the suite looks into the workspace from outside
		}
		t.Run(s.name, func(t *testing.T) {
			host := s.host(t)
			python := kernelstest.Python
			python.Env = maps.Clone(python.Env)
			python.Env["PYTHONWARNINGS"] = "ignore::DeprecationWarning" // the image's Python warns of every fork
			kernelstest.TestProvisioner(t, kernelstest.Setup{
				Kernelspec: python,
				Image:      testImage,
				New: func(t *testing.T, dir string) kernels.Provisioner {
					sum := sha256.Sum256([]byte(dir))
					return newProvisioner(t, Config{
						Host: host, Carrier: s.carrier, Files: s.files, Shim: kernelstest.BuildShim(t),
						Installation: "suite-" + hex.EncodeToString(sum[:8]), RunDir: filepath.Join(dir, "run"),
					})
				},
			})
		})
	}
}
