package history

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// childEnv tells this test's program to be a process that writes, instead of running tests, and childJob does it.
const childEnv = "CELLBLOCK_HISTORY_CHILD"

var childJob func(job string)

// TestMain is also the process that kill_linux_test.go kills, and the one whose files may not grow.
func TestMain(m *testing.M) {
	if job := os.Getenv(childEnv); job != "" {
		childJob(job)
		return
	}
	goleak.VerifyTestMain(m)
}
