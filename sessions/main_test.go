package sessions

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		kernelstest.RemoveShim()
		os.Exit(code)
	}))
}
