package kernelstest_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) { kernelstest.RemoveShim(); os.Exit(code) }))
}

// TestFake: the fake provisioner passes the suite, as far as that is about provisioners.
func TestFake(t *testing.T) {
	kernelstest.TestProvisioner(t, kernelstest.Setup{
		New: func(t *testing.T, dir string) kernels.Provisioner {
			p := kernelstest.NewProvisionerIn(dir)
			t.Cleanup(p.StopAll)
			return p
		},
		Kernelspec: kernelstest.Python,
		Fake:       true,
	})
}
