//go:build linux

package local

import (
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestPythonKernel(t *testing.T) {
	kernelstest.NeedPython(t)
	kernelstest.TestKernel(t, kernelSetup(kernelstest.Python, ""), kernelstest.PythonDialect)
}

func TestNodeKernel(t *testing.T) {
	for _, d := range []kernelstest.Dialect{kernelstest.JavaScriptDialect} {
		t.Run(d.Language, func(t *testing.T) {
			spec, folder := kernelstest.Node(t, d.Language)
			kernelstest.TestKernel(t, kernelSetup(spec, folder), d)
		})
	}
}

// kernelSetup runs kernels that need to read a folder, if it is not empty.
func kernelSetup(spec kernels.Kernelspec, folder string) kernelstest.Setup {
	return kernelstest.Setup{Kernelspec: spec, New: func(t *testing.T, dir string) kernels.Provisioner {
		return newLocal(t, dir, withShim(t), func(c *Config) {
			if folder != "" {
				c.ReadOnlyPaths = append(c.ReadOnlyPaths, folder)
			}
		})
	}}
}
