package main

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// While a server's packages are initialised the garbage collector runs when the heap's floor is laid, and hardly again: garbage of 11 MB is
// less than that. The race detector's is more.
func TestNoCollectionBeforeMain(t *testing.T) {
	collections := func(arg string) int {
		cmd := exec.Command(os.Args[0], "-test.run=^$", arg)
		cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1", "GOGC=100", "GOMEMLIMIT=off")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return strings.Count("\n"+string(out), "\ngc ")
	}
	if without, with := collections("version"), collections("serve"); with == 0 || 2*with > without {
		t.Errorf("the collector ran %d times for a server, %d times for another command", with, without)
	}
}
