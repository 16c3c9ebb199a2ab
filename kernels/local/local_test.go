//go:build linux

package local

import (
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestProvisioner(t *testing.T) {
	kernelstest.NeedPython(t)
	kernelstest.TestProvisioner(t, kernelstest.Setup{
		New:        func(t *testing.T, dir string) kernels.Provisioner { return newLocal(t, dir, withShim(t)) },
		Kernelspec: kernelstest.Python,
	})
}
