package mounts

import (
	"time"

	"cellblock/internal/fault"
)

// Patience is how long a look at folders of this host may take.
const Patience = 5 * time.Second

// Patiently returns what a look at folders finds. The error is Unavailable when that takes longer than Patience: the file system of a
// machine that is gone answers nobody, ever. Such a look cannot be ended, and stays behind; nothing that it writes may be read then.
func Patiently(look func() error) error {
	found := make(chan error, 1)
	go func() { found <- look() }()
	late := time.NewTimer(Patience)
	defer late.Stop()
	select {
	case err := <-found:
		return err
	case <-late.C:
		return fault.New(fault.Unavailable, "a folder does not answer within %s", Patience).
			WithHint("Look at each with: ls FOLDER. A file system of another machine may be gone: mount it again, or unmount it.")
	}
}
