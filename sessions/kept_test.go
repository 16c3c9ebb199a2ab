package sessions

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions/files"
)

// keepingProvisioner keeps workspaces itself. In which of them something is, is written in what.
type keepingProvisioner struct {
	fakeProvisioner
	mu   sync.Mutex
	down bool // the engine has never answered
	away bool // it does not answer any more
	what map[string]bool
	slow func() // what happens before it tells whether a workspace is empty
}

var errDown = fault.New(fault.Unavailable, "the engine is down").WithHint("start the engine")

func newKeeping() *keepingProvisioner { return &keepingProvisioner{what: map[string]bool{}} }

func (p *keepingProvisioner) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	h, err := p.fakeProvisioner.Launch(ctx, spec)
	p.mu.Lock()
	defer p.mu.Unlock()
	name := filepath.Base(spec.Workspace)
	if _, there := p.what[name]; err == nil && !there {
		p.what[name] = false
	}
	return h, err
}

func (p *keepingProvisioner) answer() error {
	if p.down || p.away {
		return errDown
	}
	return nil
}

func (p *keepingProvisioner) KeepsWorkspaces(context.Context) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.down {
		return false, errDown
	}
	return true, nil
}

func (p *keepingProvisioner) Workspaces(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.what)), p.answer()
}

func (p *keepingProvisioner) RemoveWorkspace(_ context.Context, name string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer() == nil {
		delete(p.what, name)
	}
	return p.answer()
}

func (p *keepingProvisioner) RemoveEmptyWorkspace(_ context.Context, name string) (bool, error) {
	if p.slow != nil {
		p.slow()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.answer() != nil || p.what[name] {
		return false, p.answer()
	}
	delete(p.what, name)
	return true, nil
}

// set says whether the engine answers, and whether there are files in its workspaces.
func (p *keepingProvisioner) set(away, files bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down, p.away = false, away
	for name := range p.what {
		p.what[name] = files
	}
}

func (p *keepingProvisioner) kept(t *testing.T) []string {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.what))
}

func newKeepingManager(t *testing.T, p *keepingProvisioner) *Manager {
	t.Helper()
	return newTestManager(t, &p.fakeProvisioner, func(c *Config) { c.Provisioner = p })
}

// File tools say why they cannot work, and do not write where no kernel sees it; that is asked anew each time.
func TestKeptWorkspacesAreOutOfReach(t *testing.T) {
	p := newKeeping()
	p.down = true // when the server starts
	m := newKeepingManager(t, p)
	for _, want := range []string{"start the engine", "let code"} {
		_, _, err := m.WriteFile(t.Context(), alice, "s", "a", nil)
		_, listErr := m.ListFiles(t.Context(), alice, "s", files.Query{})
		_, deleteErr := m.DeleteFile(t.Context(), alice, "s", "a", false)
		for _, err := range []error{err, listErr, deleteErr} {
			if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Text(err), want) {
				t.Errorf("%v, want %q", err, want)
			}
		}
		p.set(false, false)
	}
	execute(t, m, alice, "s", "x")
}

// What is kept stays as long as files in folders would: until it is deleted, or its session ends and nothing is in it.
func TestKeptWorkspacesGoWithTheirSessions(t *testing.T) {
	for name, tt := range map[string]struct {
		files, delete, kept bool
	}{
		"empty": {}, "with files": {files: true, kept: true}, "with files, deleted": {files: true, delete: true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newKeeping()
			m := newKeepingManager(t, p)
			execute(t, m, alice, "s", "x")
			first := p.spec(0).Workspace
			p.set(false, tt.files)
			if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: tt.delete}); err != nil {
				t.Error(err)
			}
			if left := p.kept(t); (len(left) == 1) != tt.kept || m.workspaces.Known(key{alice, "s"}.workspace()) != tt.kept {
				t.Errorf("kept are %v", left)
			}
			execute(t, m, alice, "s", "x")
			if second := p.spec(1).Workspace; (second == first) != tt.kept {
				t.Errorf("the folders are %s and %s", first, second)
			}
		})
	}
}

// What could not be deleted because the engine was down goes when it is back: it is nobody's.
func TestKeptWorkspacesThatAreNobodysAreSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newKeeping()
		m := newKeepingManager(t, p)
		execute(t, m, alice, "s", "x")
		execute(t, m, bob, "s", "x")
		bobs := filepath.Base(p.spec(1).Workspace)
		p.set(true, true)
		err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true})
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "deleted later") {
			t.Errorf("deleted while the engine is down: %v", err)
		}
		p.set(false, true)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); m.KeepSwept(ctx) }()
		synctest.Wait()
		if left := p.kept(t); len(left) != 2 {
			t.Errorf("at once there are %v", left)
		}
		time.Sleep(sweepGrace + sweepPause)
		synctest.Wait()
		if left := p.kept(t); !slices.Equal(left, []string{bobs}) {
			t.Errorf("later there are %v, want bob's %s", left, bobs)
		}
		cancel()
		<-done
		_ = m.Shutdown(t.Context())
	})
}

// Without the folder of the labels, as when its disk is not mounted, nobody knows which workspaces are nobody's.
func TestKeptWorkspacesStayWhileTheDataFolderIsAway(t *testing.T) {
	p := newKeeping()
	m := newKeepingManager(t, p)
	execute(t, m, alice, "s", "x")
	p.set(false, true)
	root := workspacesOf(m)
	away := root + ".away"
	if err := os.Rename(root, away); err != nil {
		t.Fatal(err)
	}
	m.workspaces.SweepKept(t.Context(), func(map[string]bool) []string { return p.kept(t) })
	if left := p.kept(t); len(left) != 1 {
		t.Errorf("left are %v", left)
	}
	if err := os.Rename(away, root); err != nil {
		t.Fatal(err)
	}
}

// An engine that does not answer holds up the session whose workspace it is asked about, and no other one's files.
func TestSlowEngineHoldsUpNobodyElse(t *testing.T) {
	p := newKeeping()
	m := newKeepingManager(t, p)
	execute(t, m, alice, "s", "x")
	asked, answer := make(chan struct{}), make(chan struct{})
	p.slow = func() {
		close(asked)
		<-answer
	}
	closed := make(chan error, 1)
	go func() { closed <- m.Close(context.Background(), alice, "s", CloseOptions{}) }()
	<-asked
	others := make(chan struct{})
	go func() {
		defer close(others)
		for i := range 2000 { // more than there could be locks for
			m.workspaces.Find(key{bob, strconv.Itoa(i)}.workspace())
		}
	}()
	select {
	case <-others:
	case <-time.After(time.Minute):
		t.Error("another owner waits for the engine too")
	}
	close(answer)
	<-others
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
