package kernels

import (
	"time"

	"cellblock/kernels/stream"
)

// kernelState is what is known of the kernel process. Guarded by Client.mu.
type kernelState struct {
	// incarnation is the newest that was heard of; changed is closed and replaced when it grows.
	incarnation int
	changed     chan struct{}
	// restarting is the incarnation that a Restart in progress ends; 0 when there is none.
	restarting int
	lastExit   *stream.Exit
	// limbo ends the client when a shim said that the kernel is dead and no event explains it.
	limbo *time.Timer
	// live is closed when IOPub is known to deliver by iopub_welcome (JEP 65).
	live   chan struct{}
	isLive bool
	info   KernelInfo
}

func (s *kernelState) welcome(w stream.Welcome) { s.grow(w.Incarnation) }

func (s *kernelState) grow(incarnation int) {
	if incarnation <= s.incarnation {
		return
	}
	s.incarnation = incarnation
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *kernelState) leaveLimbo() {
	if s.limbo != nil {
		s.limbo.Stop()
		s.limbo = nil
	}
}

// welcomed records that IOPub delivers.
func (s *kernelState) welcomed() {
	if !s.isLive {
		s.isLive = true
		close(s.live)
	}
}

// started deals with the start of a kernel process.
func (c *Client) started(incarnation int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kernel.leaveLimbo()
	c.kernel.grow(incarnation)
}

// exited deals with the end of a kernel process. Where we asked for it, the calls that it had end; else it is the end of
// the client, and the error says so.
func (c *Client) exited(e stream.Event) error {
	d := exitDeath(e)
	c.mu.Lock()
	defer c.mu.Unlock()
	s := &c.kernel
	if e.Incarnation == 0 {
		e.Incarnation = s.incarnation
	}
	s.leaveLimbo()
	s.lastExit = d.Exit
	if s.isLive {
		s.isLive, s.live = false, make(chan struct{})
	}
	switch {
	case s.restarting != 0 && e.Incarnation <= s.restarting:
		d.Asked = true
	case d.Asked:
		d.Cause = stoppedOutside
	}
	if !d.Asked {
		return &DeathError{d}
	}
	for _, k := range c.calls.open {
		if k.incarnation <= e.Incarnation || k.adopted && k.seen {
			k.death = &d
			c.settle(k)
		}
	}
	return nil
}

// neverCame ends a client whose shim said that the kernel is dead, when nothing explained it in time.
func (c *Client) neverCame() {
	c.end(&DeathError{Death{Cause: "the kernel had already ended", Time: time.Now()}})
}
