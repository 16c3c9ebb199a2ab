//go:build linux

package shim

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// maxRounds bounds how often the process table is read again while it still grows: a fork bomb's own limit, not
	// ours, must end it.
	maxRounds = 1000
	// endTimeout is how long killed processes may take to end before killing reports without them.
	endTimeout = 2 * time.Second
)

// others returns what runs beside the shim and the kernel, and belongs to the kernel: as pid 1 everything in the
// namespace, otherwise everything below the shim, which is the subreaper of what the kernel leaves behind.
func others(kernel int) ([]process, error) {
	ps, err := processes()
	if err != nil {
		return nil, err
	}
	self := os.Getpid()
	if self != 1 {
		ps = below(self, ps)
	}
	kept := ps[:0]
	for _, p := range ps {
		if p.pid != self && p.pid != kernel && !p.dead() {
			kept = append(kept, p)
		}
	}
	return kept, nil
}

// killOthers kills what others returns until nothing new appears, waits for it to end and returns how many those were.
// Kernel is the process that is spared, 0 for none.
func killOthers(kernel int) (int, error) {
	type identity struct {
		pid   int
		start uint64
	}
	killed := make(map[identity]bool)
	var ends endings
	defer ends.close()
	for range maxRounds {
		ps, err := others(kernel)
		if err != nil {
			return len(killed), err
		}
		before := len(killed)
		for _, p := range ps {
			id := identity{p.pid, p.start}
			if !killed[id] && ends.kill(p) {
				killed[id] = true
			}
		}
		if len(killed) == before {
			break
		}
	}
	ends.wait(endTimeout)
	return len(killed), nil
}

// endings are killed processes whose end is awaited, as pidfds.
type endings struct{ fds []unix.PollFd }

// kill kills p if it is still the same process. It is false if that has ended, or may not be killed.
func (e *endings) kill(p process) bool {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EMFILE) {
		return unix.Kill(p.pid, unix.SIGKILL) == nil
	}
	if err != nil {
		return false
	}
	now, err := readProcess(p.pid)
	if err != nil || now.start != p.start || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		unix.Close(fd)
		return false
	}
	e.fds = append(e.fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	return true
}

// wait waits until all have ended, at most for d. A pidfd is readable once its process has.
func (e *endings) wait(d time.Duration) {
	for deadline := time.Now().Add(d); len(e.fds) > 0; {
		left := time.Until(deadline)
		n, err := unix.Poll(e.fds, int(max(left, 0)/time.Millisecond))
		if n == 0 || (err != nil && !errors.Is(err, unix.EINTR)) {
			return
		}
		e.settle()
	}
}

// settle lets go of those that have ended.
func (e *endings) settle() {
	running := e.fds[:0]
	for _, f := range e.fds {
		if f.Revents != 0 {
			unix.Close(int(f.Fd))
		} else {
			running = append(running, f)
		}
	}
	e.fds = running
}

func (e *endings) close() {
	for _, f := range e.fds {
		unix.Close(int(f.Fd))
	}
}
