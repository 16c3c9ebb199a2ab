//go:build linux

package shim

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// harden makes the process one that code of the same uid cannot look into, and that inherits orphans.
//
// An undumpable process can be neither traced nor read through /proc (its files there, the environment with the attach
// key among them, belong to root then). What the shim itself reads of its own is open to everybody: stat, statm.
func harden() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("making the shim undumpable: %w", err)
	}
	if os.Getpid() == 1 {
		return nil
	}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming a subreaper: %w", err)
	}
	return nil
}
