package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
)

// A data folder may be used by several processes at once: a server, and a stdio process for each client that starts its
// own. Each takes a slot, the lowest that is free, and launches its kernels under the slot's name. The lock ends with the
// process, however that ends, so whoever takes a slot knows that kernels of that name
// are his to go on with.

// maxSlots bounds the processes of a kind that use one data folder at once.
const maxSlots = 256

// The kinds of slots.
const (
	serveSlot = "s"
	stdioSlot = "c" // a client's own
)

// slot is this process's place among those that use the data folder.
type slot struct {
	dataDir, name string
	lock          *flock.Flock
}

// takeSlot takes a slot of a kind: a command has its own, so that none goes on with the kernels of another that is to be
// started again.
func takeSlot(dataDir, kind string) (*slot, error) {
	dir := filepath.Join(dataDir, "slots")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fault.New(fault.Unavailable, "%w", err).WithHint("Choose a folder that this user may write: --data-dir.")
	}
	for n := range maxSlots {
		name := fmt.Sprintf("%s%d", kind, n)
		lock := flock.New(filepath.Join(dir, name), flock.SetPermissions(0o600))
		switch free, err := lock.TryLock(); {
		case errors.Is(err, fs.ErrPermission):
			return nil, fault.New(fault.Unavailable, "the data folder is another user's: %w", err).
				WithHint("Choose a folder that this user may write: --data-dir.")
		case err != nil:
			return nil, fault.New(fault.Unavailable, "locking in the data folder: %w", err).
				WithHint("Choose a folder on a local disk: --data-dir.")
		case free:
			return &slot{dataDir: dataDir, name: name, lock: lock}, nil
		}
	}
	return nil, fault.New(fault.Busy, "%d processes use the data folder %s", maxSlots, dataDir).
		WithHint("End some, or give this one its own with --data-dir.")
}

// first tells whether the slot is the first of its kind, which one process alone always gets again.
func (s *slot) first() bool { return s.name == serveSlot+"0" || s.name == stdioSlot+"0" }

// slotTaken tells whether a process that is alive has a slot.
func slotTaken(dataDir, name string) bool {
	lock := flock.New(filepath.Join(dataDir, "slots", filepath.Base(name)), flock.SetFlag(os.O_RDWR))
	free, err := lock.TryLock()
	if free {
		_ = lock.Close()
	}
	return !free && !errors.Is(err, fs.ErrNotExist)
}

// awaitSlot returns when no process has a slot, or ctx has ended.
func awaitSlot(ctx context.Context, dataDir, name string) {
	lock := flock.New(filepath.Join(dataDir, "slots", filepath.Base(name)), flock.SetFlag(os.O_RDWR))
	const again = 50 * time.Millisecond
	if free, _ := lock.TryLockContext(ctx, again); free {
		_ = lock.Close()
	}
}

// release lets another process have the slot.
func (s *slot) release() error { return s.lock.Close() }
