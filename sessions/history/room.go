package history

import (
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"cellblock/internal/fault"
)

const (
	// roomSize is more than a session writes into the data folder as it begins: its rows, its workspace's label, its kernel's files.
	roomSize = 256 << 10
	// roomPatience is how long whoever asks for room waits for a disk.
	roomPatience = 2 * time.Second
)

// Room tries whether the data folder takes what a session writes as it begins, in a file that is gone at once and that no disk needs to
// see. How the last write to the history went (Health) does not tell that: where nobody writes, nothing fails, and nothing gets well. The
// error has the kind Unavailable, and Timeout where the disk does not answer.
func (s *Store) Room() error { return s.room.look() }

// room tries one folder, once at a time: an attempt that hangs in a file system cannot be ended, and another one would hang beside it.
type room struct {
	folder string

	mu   sync.Mutex
	last *attempt
}

// attempt is one. Its error may be read when done is closed.
type attempt struct {
	done chan struct{}
	err  error
}

func (r *room) look() error {
	a := r.attempt()
	late := time.NewTimer(roomPatience)
	defer late.Stop()
	select {
	case <-a.done:
		return explain("nothing can be written to the data folder", a.err)
	case <-late.C:
		return fault.New(fault.Timeout, "the data folder does not answer within %s", roomPatience).
			WithHint("look at the disk of the data folder and at the system's log")
	}
}

// attempt returns the one that is being made, or a new one.
func (r *room) attempt() *attempt {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last != nil {
		return r.last
	}
	a := &attempt{done: make(chan struct{})}
	r.last = a
	go func() {
		a.err = tryRoom(r.folder)
		r.mu.Lock()
		r.last = nil
		r.mu.Unlock()
		close(a.done)
	}()
	return a
}

// tryRoom writes a file and removes it, before it is written where that is possible: then a process that is killed leaves none.
func tryRoom(folder string) error {
	f, err := os.CreateTemp(folder, ".room-*")
	if err != nil {
		return err
	}
	removed := os.Remove(f.Name()) == nil
	_, err = f.Write(make([]byte, roomSize))
	err = errors.Join(err, f.Close())
	if removed {
		return err
	}
	if left := os.Remove(f.Name()); left != nil && !errors.Is(left, fs.ErrNotExist) {
		err = errors.Join(err, left)
	}
	return err
}
