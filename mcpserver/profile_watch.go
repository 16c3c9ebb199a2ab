package mcpserver

import (
	"context"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

const (
	// lookAge is how old a look at a profile may be that a report shows, failedLookAge one that found something wrong: whoever has
	// mended it asks again.
	lookAge, failedLookAge = time.Minute, 2 * time.Second
	// lookPatience is how long a report waits for a look: less than a liveness probe does.
	lookPatience = 2 * time.Second
	// lookTimeout bounds what a look asks an engine.
	lookTimeout = 10 * time.Second
)

// ProfileWatch looks at what profiles want of the machine, beside what asks for it: a folder whose file system does not answer
// holds up no report, and no other profile. A look that hangs is not begun again.
type ProfileWatch struct {
	allower  kernels.Allower // nil: everything is allowed
	profiles map[string]sessions.Profile
	ctx      context.Context
	stop     context.CancelFunc
	mu       sync.Mutex // guards looks
	looks    map[string]*look
}

// look is one look at one profile. What it found may be read when done is closed.
type look struct {
	began      time.Time
	done       chan struct{}
	doubt, err error
}

// WatchProfiles begins the first looks at a manager's profiles. Stop ends the watch.
func WatchProfiles(cfg sessions.Config) *ProfileWatch {
	w := &ProfileWatch{profiles: cfg.Profiles, looks: map[string]*look{}}
	w.allower, _ = cfg.Provisioner.(kernels.Allower)
	w.ctx, w.stop = context.WithCancel(context.Background())
	for name := range w.profiles {
		w.due(name)
	}
	return w
}

// Stop ends the looks. For one that hangs in a file system it does not wait: nothing could end that.
func (w *ProfileWatch) Stop() {
	if w != nil {
		w.stop()
	}
}

// due returns the newest look at a profile, after beginning one if the last is old.
func (w *ProfileWatch) due(name string) *look {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := w.looks[name]
	if last != nil && (!last.ended() || time.Since(last.began) < last.holds()) {
		return last
	}
	l := &look{began: time.Now(), done: make(chan struct{})}
	w.looks[name] = l
	go func() {
		defer close(l.done)
		p := w.profiles[name]
		ctx, cancel := context.WithTimeout(w.ctx, lookTimeout)
		defer cancel()
		if w.allower != nil {
			l.doubt, l.err = w.allower.Allows(ctx, kernels.Spec{Limits: p.Limits, Mounts: p.Mounts, Runtime: p.Runtime, Devices: p.Devices})
		}
	}()
	return l
}

// holds is how long after its begin a look that has ended is shown.
func (l *look) holds() time.Duration {
	if l.err != nil || l.doubt != nil {
		return failedLookAge
	}
	return lookAge
}

func (l *look) ended() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// found returns what a look has found, or that it found nothing in time: once for each look somebody waits.
func (l *look) found(ctx context.Context) (doubt, err error) {
	ctx, cancel := context.WithDeadline(ctx, l.began.Add(lookPatience))
	defer cancel()
	select {
	case <-l.done:
	case <-ctx.Done():
		if !l.ended() {
			return nil, fault.New(fault.Unavailable, "a folder that it mounts, or the engine, does not answer").
				WithHint("Look at its mounts with: ls SOURCE. A file system of another machine may be gone.")
		}
	}
	return l.doubt, l.err
}
