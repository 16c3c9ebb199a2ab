// Package soak puts the real program under mixed load for long and looks at every output by its content: nothing is lost,
// nothing is in the wrong session, and nothing is left behind.
package soak

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

func TestMain(m *testing.M) { rig.Main(m) }

// size is how many sessions work at once, and how many cells each runs. CELLBLOCK_SOAK=full asks for the whole.
func size() (sessions, cells int) {
	if os.Getenv("CELLBLOCK_SOAK") == "full" {
		return 20, 200
	}
	return 6, 12
}

func TestSoak(t *testing.T) {
	_, err := exec.LookPath("bwrap")
	kernelstest.Need(t, err == nil, "bubblewrap")
	kernelstest.NeedPython(t)
	idle := goroutinesAtRest(t)

	s := serve(t)
	open, memory := len(descriptors(t, s)), s.Memory(t)
	warmUp(t, s)

	sessions, cells := size()
	burn(t)
	began := time.Now()
	var all sync.WaitGroup
	var restarts atomic.Int64
	for i := range sessions {
		all.Go(func() { restarts.Add(int64(work(t, s, i, cells))) })
	}
	all.Wait()
	took := time.Since(began)
	t.Logf("%d sessions of %d cells in %s: %.0f cells a second, %d restarts", sessions, cells, took.Round(time.Second),
		float64(sessions*cells)/took.Seconds(), restarts.Load())
	if n := restarts.Load(); n > 1+int64(sessions*cells/100) {
		t.Errorf("%d cells did not stop when they were interrupted", n)
	}

	settle(t, s, open)
	t.Logf("descriptors: %d before, %d after; memory: %d MB before, %d MB after",
		open, len(descriptors(t, s)), memory>>20, s.Memory(t)>>20)
	idle["cellblock/sessions.(*hands).run"] = 4 // they rest, and take the next cells' work
	for starter, n := range s.Goroutines(t) {
		if n > idle[starter] && !strings.HasPrefix(starter, "runtime.") {
			t.Errorf("%d goroutines of %s are left, and %d are in a server that has done next to nothing", n, starter, idle[starter])
		}
	}
}

// goroutinesAtRest is which goroutines a server has that has served a few cells and nothing since.
func goroutinesAtRest(t *testing.T) map[string]int {
	s := serve(t)
	warmUp(t, s)
	settle(t, s, 1<<20)
	return s.Goroutines(t)
}

// serve starts a server without a pool, so that at rest it has nothing.
func serve(t *testing.T) *rig.Server {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("pool_size: 0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return rig.Serve(t, "--provisioner", "local", "--config", config)
}

// warmUp has a server do everything once that it does only once.
func warmUp(t *testing.T, s *rig.Server) {
	for _, handshake := range []bool{true, false} {
		w := &session{c: s.Connect(t, s.Token(t), handshake), owner: "warm", id: fmt.Sprintf("s%t", handshake)}
		if err := w.round(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		w.close(t)
	}
}

// burn keeps a processor busy beside the sessions until the test ends: the end of an output is lost, if it is, when a kernel
// or the server has to wait.
func burn(t *testing.T) {
	busy := exec.CommandContext(t.Context(), "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = busy.Wait() })
}

// settle waits until the server has no kernels any more and no more descriptors than most.
func settle(t *testing.T, s *rig.Server, most int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); s.Children(t) > 0 || len(descriptors(t, s)) > most; {
		if time.Now().After(deadline) {
			open := descriptors(t, s)
			t.Fatalf("at rest there are %d processes, and %d descriptors, not %d:\n%s", s.Children(t), len(open), most, strings.Join(open, "\n"))
		}
		time.Sleep(50 * time.Millisecond) // nothing can tell a test
	}
}

// descriptors is what the server has open but for its database, of which it keeps a few open and how many changes.
func descriptors(t *testing.T, s *rig.Server) []string {
	return slices.DeleteFunc(s.Descriptors(t), func(target string) bool { return strings.Contains(target, "cellblock.db") })
}

// work runs the cells of one session. Sessions of two owners have the same ids, and every other speaks an older revision.
// It returns how many restarts that took.
func work(t *testing.T, server *rig.Server, i, cells int) (restarts int) {
	owner := []string{"alice", "bob"}[i%2]
	s := &session{owner: owner, id: fmt.Sprintf("s%d", i/2), handshake: i/2%2 == 1}
	s.c = server.Connect(t, server.Token(t, "--subject", owner), s.handshake)
	for step := i; len(s.tokens) < cells; step++ { // each begins at another place of the mix
		if err := s.round(t.Context(), step); err != nil {
			t.Errorf("%s of %s, %s: %v", s.id, s.owner, kinds[step%len(kinds)].name, err)
			break
		}
	}
	if err := s.reread(t.Context()); err != nil {
		t.Errorf("%s of %s, read again: %v", s.id, s.owner, err)
	}
	s.close(t)
	return s.restarts
}

// round runs what one step of the mix asks for.
func (s *session) round(ctx context.Context, step int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return kinds[step%len(kinds)].run(ctx, s)
}

// reread reads cells of the whole session again: what was shown is kept.
func (s *session) reread(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	seen := map[string]bool{}
	for number := 1; number <= len(s.tokens); number++ {
		r, err := cell{s: s, number: number}.again(ctx)
		if err != nil {
			return err
		}
		token := anyToken.FindString(r.Text)
		if token == "" || seen[token] {
			return fmt.Errorf("cell %d is lost, or doubled: %s", number, r.Text)
		}
		seen[token] = true
	}
	for _, token := range s.tokens {
		if !seen[token] {
			return fmt.Errorf("%s is lost", token)
		}
	}
	return nil
}

// close ends the session and the client.
func (s *session) close(t *testing.T) {
	if r, err := s.c.Call(t.Context(), "close_session", map[string]any{"session_id": s.id}, nil); err != nil || r.IsError {
		t.Errorf("close_session %s: %v %s", s.id, err, r.Text)
	}
	s.c.Close()
}
