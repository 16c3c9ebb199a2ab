package viewer

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"), // it ends by itself
		goleak.Cleanup(func(code int) { kernelstest.RemoveShim(); os.Exit(code) }))
}
