//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/e2e/rig"
)

// world is one installation, the sessions that work in it, and what has befallen them.
type world struct {
	t       *testing.T
	seed    uint64
	random  *rand.Rand // of the round, so that what one round needs does not change the next
	install *rig.Installation
	server  *rig.Server
	addr    []string // where every server but the first must listen, as a flag
	clock   *clock
	disk    *disk
	engine  *engine // nil in the sandbox
	uid     int     // of kernels, and of nobody else

	sessions []*session
	folders  map[string]bool // of kernels, by name, that have been seen

	struck                map[string]int
	checked, acknowledged int
	losses, rounds        int
}

// patience bounds what is waited for, so that what hangs is named.
const patience = 90 * time.Second

// config makes kernels findable by their user, and small enough to run out of memory soon.
const config = "kernel_uid: %d\nkernel_gid: %[1]d\nprofiles: {session: {memory: 256MB}}\nlog: {level: debug}\n"

func newWorld(t *testing.T, seed uint64, e *engine, sessions int) *world {
	w := &world{
		t: t, seed: seed, random: rand.New(rand.NewPCG(seed, 0)), engine: e, clock: newClock(t),
		struck: map[string]int{}, folders: map[string]bool{},
	}
	w.uid = 61_000 + os.Getpid()%4_000
	flags := []string{"--provisioner", "local", "--on-shutdown", "keep"}
	if e != nil {
		w.uid += 4_000
		flags = []string{"--provisioner", "docker", "--docker-host", e.host, "--on-shutdown", "keep"}
	}
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, w.uid), 0o644); err != nil {
		t.Fatal(err)
	}
	w.install = rig.Install(t, append(flags, "--config", path)...)
	w.disk = newDisk(t)
	w.install.DataDir, w.install.Env = w.disk.dir, []string{w.clock.environment()}
	w.server = w.install.Serve(t)
	w.addr = []string{"--addr", strings.TrimSuffix(strings.TrimPrefix(w.server.URL, "http://"), "/mcp")}

	w.clock.step(t, -time.Hour) // tokens are good from when they are made
	for i := range sessions {
		s := &session{owner: []string{"alice", "bob"}[i%2], id: fmt.Sprintf("s%d", i/2), generation: 1, files: map[string]bool{}}
		s.c = w.server.Connect(t, w.server.Token(t, "--subject", s.owner), i/2%2 == 1)
		w.sessions = append(w.sessions, s)
	}
	w.clock.step(t, 0)
	return w
}

// begin gives every session its first kernel.
func (w *world) begin() {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	w.check(ctx, "the beginning")
}

// wrong notes something that must not be.
func (w *world) wrong(format string, args ...any) {
	w.t.Helper()
	w.losses++
	w.t.Errorf("%s: round %d: %s", time.Now().Format(time.TimeOnly), w.rounds, fmt.Sprintf(format, args...))
}

// lost notes what was found wrong with sessions, by their place. Nothing is known of those any more, so they are given up.
func (w *world) lost(errs []error, after string) {
	w.t.Helper()
	var sound []*session
	for i, s := range w.sessions {
		if errs[i] == nil {
			sound = append(sound, s)
			continue
		}
		w.wrong("%s, after %s: %v", s, after, errs[i])
		ctx, cancel := context.WithTimeout(w.t.Context(), patience)
		_, _ = s.c.Call(ctx, "close_session", map[string]any{"session_id": s.id, "delete_files": true}, nil)
		cancel()
	}
	if w.sessions = sound; len(sound) < 2 {
		w.t.Fatal("there are too few sessions left")
	}
}

// serve starts a server where the last one has ended.
func (w *world) serve() {
	for _, s := range w.sessions {
		s.c.Disconnect()
	}
	w.server = w.install.Serve(w.t, w.addr...)
}

// deed is what a session does while a fault strikes, and what may come of it.
type deed struct {
	body body
	fate fate
}

// round lets every session run a cell, a fault strike meanwhile, and looks at everything afterwards.
func (w *world) round(f fault) {
	w.rounds++
	w.random = rand.New(rand.NewPCG(w.seed, uint64(w.rounds)))
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	deeds := f.deeds(w)
	w.note("%s", f.name)
	w.struck[f.name]++
	var began, ended sync.WaitGroup
	over := make(chan struct{})
	errs := make([]error, len(w.sessions))
	for i, s := range w.sessions {
		began.Add(1)
		ended.Go(func() {
			once := sync.OnceFunc(began.Done)
			c := s.newCell(deeds[i].body)
			answer, err := s.send(ctx, c, deeds[i].fate, once)
			once()
			<-over
			errs[i] = s.settle(ctx, c, answer, err, deeds[i].fate)
		})
	}
	if w.random.IntN(4) > 0 {
		w.await(ctx, &began)
	} // else it strikes before, or while, cells begin
	if f.strike != nil {
		f.strike(w, deeds)
	}
	close(over)
	w.await(ctx, &ended)
	w.lost(errs, f.name)
	if f.after != nil {
		f.after(w)
	}
	w.check(ctx, f.name)
}

func (w *world) note(format string, args ...any) {
	w.t.Logf("%s: round %d: %s", time.Now().Format(time.TimeOnly), w.rounds, fmt.Sprintf(format, args...))
}

// check holds every session against what it must be, and looks for what is left over.
func (w *world) check(ctx context.Context, after string) {
	var all sync.WaitGroup
	errs := make([]error, len(w.sessions))
	for i, s := range w.sessions {
		known := slices.Clone(s.cells)
		w.random.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
		all.Go(func() { errs[i] = s.check(ctx, known[:min(len(known), 5)]) })
	}
	w.await(ctx, &all)
	w.checked += len(w.sessions)
	w.lost(errs, after)
	if err := w.leftOver(ctx, len(w.sessions), len(w.sessions)+1); err != nil {
		w.wrong("after %s: %v", after, err)
	}
}

// check runs a cell that says how the session is, and reads some of the earlier cells again.
func (s *session) check(ctx context.Context, some []*cell) error {
	if err := s.awaitDeath(ctx); err != nil {
		return err
	}
	for saved := false; !saved; { // after a disk was full that takes a moment
		c := s.newCell(files)
		answer, err := s.send(ctx, c, fate{}, func() {})
		if err := s.settle(ctx, c, answer, err, fate{}); err != nil {
			return err
		}
		saved = !strings.Contains(answer.Text, unsaved)
	}
	now, err := s.now(ctx)
	if err != nil {
		return err
	}
	if now.Generation != s.generation || now.Executions != len(s.cells) || now.State != "idle" || now.BusySeconds < 0 {
		return fmt.Errorf("it is %+v, and should have generation %d and %d cells", now, s.generation, len(s.cells))
	}
	return s.reread(ctx, some)
}

// awaitDeath waits until a kernel that was to die has done so, and for a while where it may.
func (s *session) awaitDeath(ctx context.Context) error {
	var enough <-chan time.Time
	if s.mayDie != "" && s.over == "" {
		s.over, enough = s.mayDie, time.After(settling/3)
	}
	s.mayDie = ""
	for s.over != "" {
		now, err := s.now(ctx)
		if err != nil || now.State == "died" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("its kernel was to die of %s and has not: %+v", s.over, now)
		case <-enough:
			s.over = ""
		case <-time.After(50 * time.Millisecond): // nothing can tell a client
		}
	}
	return nil
}

// now is how the server lists the session.
func (s *session) now(ctx context.Context) (state, error) {
	states, err := list[state](ctx, s.c, "list_sessions", "sessions", nil)
	for _, st := range states {
		if st.ID == s.id {
			return st, nil
		}
	}
	if s.over != "" && err == nil {
		return state{State: "died"}, nil // before its server began; it comes back when it is used
	}
	return state{}, errors.Join(err, fmt.Errorf("%s is not listed: %+v", s, states))
}

// finish reads every cell again, ends everything, and reports.
func (w *world) finish() {
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for _, s := range w.sessions {
		if err := s.reread(ctx, s.cells); err != nil {
			w.wrong("%s, in the end: %v", s, err)
		}
		entries, err := s.entries(ctx, 1000)
		if err != nil || len(entries) != len(s.cells) {
			w.wrong("%s: %d cells are listed of %d, %v", s, len(entries), len(s.cells), err)
		}
		for _, c := range s.cells {
			if c.answered {
				w.acknowledged++
			}
		}
		r, err := s.c.Call(ctx, "close_session", map[string]any{"session_id": s.id, "delete_files": true}, nil)
		if err != nil || r.IsError {
			w.wrong("%s cannot be closed: %v %s", s, err, r.Text)
		}
		s.c.Close()
	}
	w.server.Stop(w.t)
	w.install.Serve(w.t, append(w.addr, "--on-shutdown", "stop")...).Stop(w.t)
	if err := w.nothingLeft(ctx); err != nil {
		w.wrong("in the end: %v", err)
	}
}

// report says what was done, and how it is done again.
func (w *world) report() {
	var faults []string
	for name, n := range w.struck {
		faults = append(faults, fmt.Sprintf("%d × %s", n, name))
	}
	slices.Sort(faults)
	w.t.Logf("seed %d: %d rounds (%s); %d sessions checked, %d cells acknowledged, losses: %d", w.seed, w.rounds,
		strings.Join(faults, ", "), w.checked, w.acknowledged, w.losses)
	if w.t.Failed() {
		w.t.Logf("again with CELLBLOCK_CHAOS_SEED=%d", w.seed)
	}
}
