//go:build linux

package shim

import (
	"crypto/rand"
	"errors"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
)

// shimSession is the session in headers of the shim's own requests, by which a server tells their replies from others.
const shimSession = "cellblock-shim"

func newID() string { return rand.Text() }

// interrupt interrupts the running cell as the kernelspec says: by SIGINT to the kernel's process group, as a terminal
// does it, or by an interrupt_request on control (Jupyter messaging, "Kernel interrupt").
func (s *Shim) interrupt() error {
	k := s.current()
	if k == nil || !k.alive() {
		return errNoKernel
	}
	if s.config.InterruptMode == "signal" {
		if err := s.reaper.signal(k.child, unix.SIGINT, true); !errors.Is(err, unix.ESRCH) {
			return err
		}
		return errNoKernel
	}
	l := k.connected()
	if l == nil {
		return errors.New("the kernel is not connected yet")
	}
	return l.Send(stream.Control, request("interrupt_request", struct{}{}))
}

// killChildren kills everything that the kernel started, and returns how many processes that were.
func (s *Shim) killChildren() (int, error) {
	k := s.current()
	if k == nil || !k.alive() {
		return 0, errNoKernel
	}
	return killOthers(k.pid)
}
