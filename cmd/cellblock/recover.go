package main

import (
	"context"
	"sync"
	"time"

	"cellblock/sessions"
)

// What config's on_shutdown may be. Empty stands for keep under serve, which is restarted and upgraded while people work,
// and for stop under stdio, which a client starts for itself.
const (
	keepKernels = "keep"
	stopKernels = "stop"
)

const (
	// recoverTime bounds how long the start waits for kernels that an earlier process has left. Sessions whose kernel takes
	// longer go on looking for it.
	recoverTime = 30 * time.Second
	// leaveTime bounds how long leaving kernels to the next start may take, also when the server is to stop at once.
	leaveTime = 5 * time.Second
)

// recover takes up the kernels that the last process in this slot has left running, and stops those that belong to no
// session. It must be called before anybody uses a session.
func (a *app) recover(ctx context.Context) {
	stopping, stop := context.WithCancel(ctx)
	var orphans sync.WaitGroup
	a.swept = func() { stop(); orphans.Wait() }
	ctx, cancel := context.WithTimeout(ctx, recoverTime)
	defer cancel()
	unknown, err := a.sessions.Recover(ctx)
	if err != nil {
		a.logger.Warn("not every kernel that an earlier process left running was found again", "error", err)
	}
	if n := kernelsOf(a.sessions.Stats()); n > 0 {
		a.logger.Info("sessions go on with their kernels", "sessions", n)
	}
	for _, ref := range unknown {
		orphans.Go(func() { a.sessions.StopOrphan(stopping, ref) })
	}
	orphans.Go(func() { a.sessions.KeepSwept(stopping) })
	if a.library != nil && a.slot.first() {
		orphans.Go(func() { a.library.KeepCollected(stopping, collectPause) })
	}
}

// endSessions ends this process's work on the sessions, with their kernels or without.
func (a *app) endSessions(ctx context.Context) error {
	if !a.keep {
		running := kernelsOf(a.sessions.Stats())
		err := a.sessions.Shutdown(ctx)
		if running > 0 && err == nil {
			a.logger.Info("kernels were stopped", "kernels", running)
		}
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	left, err := a.sessions.Leave(ctx)
	if left > 0 {
		a.logger.Info("kernels keep running for the next start; --on-shutdown stop ends them", "kernels", left)
	}
	return err
}

// kernelsOf counts the kernels that run.
func kernelsOf(s sessions.Stats) int {
	return s.Sessions[sessions.Starting] + s.Sessions[sessions.Idle] + s.Sessions[sessions.Busy]
}
