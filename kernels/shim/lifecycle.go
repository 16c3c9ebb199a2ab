//go:build linux

package shim

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// rungs is how many waits there are on the way from a polite request to KILL.
const rungs = 2

// killTimeout is how long a killed kernel may take to end before the shim gives up waiting.
const killTimeout = 10 * time.Second

var (
	errNoKernel   = errors.New("the kernel does not run")
	errUnkillable = errors.New("the kernel process does not end, although it was killed")
)

// start starts the next incarnation. Whether it worked is also an event.
func (s *Shim) start() error {
	s.mu.Lock()
	s.incarnation++
	n := s.incarnation
	s.mu.Unlock()
	if n > 1 {
		s.markCPU() // before the first there was nothing
	}
	oom := s.cgroup.oomKills()
	k, err := startKernel(s.config, s.reaper, n)
	if err != nil {
		s.outbox.discard(false)
		exit := stream.Exit{Code: -1, Failed: err.Error()}
		s.journal.report(stream.Event{Kind: stream.EventExited, Incarnation: n, Exit: &exit})
		s.log.Error("the kernel could not be started", "error", err)
		return err
	}
	k.oomBefore = oom
	s.mu.Lock()
	s.kernel = k
	s.mu.Unlock()
	s.report(k, stream.EventStarted)
	s.log.Info("the kernel was started", "pid", k.pid)
	s.wg.Go(func() { s.supervise(k) })
	return nil
}

// supervise keeps k connected until its process ends, and then reports that and removes what is left of it.
func (s *Shim) supervise(k *kernel) {
	defer close(k.gone)
	ctx, cancel := context.WithCancel(context.Background())
	last := make(chan *link, 1)
	go func() { last <- s.stayConnected(ctx, k) }()
	<-k.done
	cancel()
	if !k.asked.Load() {
		s.outbox.discard(false)
	}
	if l := <-last; l != nil {
		l.drain()
		k.setLink(nil)
		l.Close()
	}
	s.gate.end()
	s.drops.flush()
	exit := k.exit(s.cgroup.oomKills() > max(k.oomBefore, s.gate.meter.outlived()))
	s.journal.report(stream.Event{Kind: stream.EventExited, Incarnation: k.incarnation, PID: k.pid, Exit: &exit})
	s.log.Info("the kernel has ended", "pid", k.pid, "code", exit.Code, "signal", exit.Signal, "oom", exit.OOM, "asked", exit.Asked)
	if _, err := killOthers(0); err != nil {
		s.log.Warn("what the kernel left running could not be looked for", "error", err)
	}
	k.files.remove()
}

// report appends an event about k.
func (s *Shim) report(k *kernel, kind stream.EventKind) {
	s.journal.report(stream.Event{Kind: kind, Incarnation: k.incarnation, PID: k.pid})
}

// current returns the kernel that runs or that ran last, nil if none could be started.
func (s *Shim) current() *kernel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kernel
}

// announceEnd notes that the kernel's end is wanted. What waits to be sent to it is given up; what comes now is for the
// next one, if there will be one.
func (s *Shim) announceEnd(next bool) {
	if k := s.current(); k != nil && k.alive() {
		k.asked.Store(true)
	}
	s.outbox.discard(next)
}

// restart ends the kernel and starts the next.
func (s *Shim) restart(grace time.Duration) error {
	s.life.Lock()
	defer s.life.Unlock()
	if s.ended {
		return errNoKernel
	}
	if err := s.end(grace, true); err != nil {
		return err
	}
	return s.start()
}

// shutdown ends the kernel for good.
func (s *Shim) shutdown() error {
	s.life.Lock()
	defer s.life.Unlock()
	s.ended = true
	return s.end(termGrace, false)
}

// end ends the kernel: politely, by TERM when half of grace is over, by KILL when all of it is. It returns when nothing
// of it is left.
func (s *Shim) end(grace time.Duration, restart bool) error {
	k := s.current()
	if k == nil {
		return nil
	}
	if k.alive() {
		k.asked.Store(true)
	}
	if grace > 0 && k.alive() {
		half := time.Duration(0)
		if s.ask(k, restart) {
			half = grace / 2
		}
		if !s.waits(k.done, half) {
			_ = s.reaper.signal(k.child, unix.SIGTERM, true)
			s.waits(k.done, grace-half)
		}
	}
	_ = s.reaper.signal(k.child, unix.SIGKILL, true)
	if !ends(k.done, killTimeout) {
		return errUnkillable
	}
	<-k.gone
	return nil
}

// ask sends a shutdown_request (Jupyter messaging, "Kernel shutdown"). It is false if there is no way to.
func (s *Shim) ask(k *kernel, restart bool) bool {
	l := k.connected()
	return l != nil && l.Send(stream.Control, request("shutdown_request", map[string]bool{"restart": restart})) == nil
}

// hurry cuts one wait of an end short, the present one first.
func (s *Shim) hurry() {
	select {
	case s.rush <- struct{}{}:
	default: // none is left to be cut
	}
}

// waits is ends, unless somebody is in a hurry.
func (s *Shim) waits(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-s.rush:
	}
	return false
}

// ends waits for done, at most for d.
func ends(done <-chan struct{}, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
		return false
	}
}

// request makes a message of the shim's own.
func request(msgType string, content any) [][]byte {
	return wire.Message{Header: wire.NewHeader(newID(), shimSession, msgType), Content: encode(content)}.Parts()
}
