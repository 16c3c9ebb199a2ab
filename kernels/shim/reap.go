//go:build linux

package shim

import (
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
)

// child is a process that the shim started.
type child struct {
	pid    int
	done   chan struct{}   // closed when it has ended
	status unix.WaitStatus // how; valid once done is closed
}

// reaper is the only one that waits for processes: for the shim's own children, and for orphans, which as pid 1 or
// subreaper it inherits. So no wait can take the status that another one needs, and no pid of a child is used again
// before the shim knows of its end.
type reaper struct {
	stop chan struct{}
	done chan struct{}

	mu       sync.Mutex // held from fork to registration, and while reaping
	children map[int]*child
}

// startReaper starts the goroutine that close ends.
func startReaper() *reaper {
	r := &reaper{stop: make(chan struct{}), done: make(chan struct{}), children: make(map[int]*child)}
	signals := make(chan os.Signal, 1) // one is enough: every reap takes all there is
	signal.Notify(signals, unix.SIGCHLD)
	go func() {
		defer close(r.done)
		defer signal.Stop(signals)
		for {
			r.reap()
			select {
			case <-signals:
			case <-r.stop:
				return
			}
		}
	}()
	return r
}

func (r *reaper) close() {
	close(r.stop)
	<-r.done
}

// reap takes the status of everything that has ended.
func (r *reaper) reap() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil || pid == 0 {
			return
		}
		if c := r.children[pid]; c != nil {
			delete(r.children, pid)
			c.status = status
			close(c.done)
		}
	}
}

// spawn starts a process by start, which returns its pid.
func (r *reaper) spawn(start func() (int, error)) (*child, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	pid, err := start()
	if err != nil {
		return nil, err
	}
	c := &child{pid: pid, done: make(chan struct{})}
	r.children[pid] = c
	return c, nil
}

// signal signals c, or c's process group. The error is unix.ESRCH once c has been reaped.
func (r *reaper) signal(c *child, sig unix.Signal, group bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children[c.pid] != c {
		return unix.ESRCH
	}
	if group {
		return unix.Kill(-c.pid, sig)
	}
	return unix.Kill(c.pid, sig)
}
