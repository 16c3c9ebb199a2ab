package sessions

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"cellblock/kernels"
)

// The files of a session go with it, over restarts and deaths, whatever folder its kernel brings; nobody else sees them.
func TestFilesFollowTheSessionIntoPooledFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		folder := func(o Owner) string {
			dir, _ := m.workspaces.Find(key{o, "s"}.workspace())
			return dir
		}
		write := func(path string) {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("alice's"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if folder(alice) != p.spec(0).Workspace {
			t.Error("the session is not in the folder that its kernel was launched in")
		}
		write(filepath.Join(folder(alice), "a.txt"))
		write(filepath.Join(folder(alice), "deep", ".hidden"))
		for i, replace := range []func(){
			func() { _, _ = m.Restart(t.Context(), alice, "s") },
			func() { execute(t, m, alice, "s", "die") },
			func() { execute(t, m, alice, "s", "x") },
		} {
			time.Sleep(time.Minute) // the pool is filled
			before := folder(alice)
			replace()
			e, r := execute(t, m, alice, "s", "x")
			if r.Status != kernels.StatusOK {
				t.Fatalf("%d: %+v", i, r)
			}
			if moved := before != folder(alice); moved != (i < 2) {
				t.Errorf("%d: moved %v", i, moved)
			}
			if i < 2 && (e.Generation() != i+2 || !strings.Contains(e.Preamble(), "files in the workspace")) {
				t.Errorf("%d: generation %d, %q", i, e.Generation(), e.Preamble())
			}
			for _, name := range []string{"a.txt", "deep/.hidden"} {
				if got, err := os.ReadFile(filepath.Join(folder(alice), name)); err != nil || string(got) != "alice's" {
					t.Errorf("%d: %s: %q %v", i, name, got, err)
				}
			}
			if left, _ := filepath.Glob(before + "*"); i < 2 && len(left) > 0 {
				t.Errorf("%d: left %v", i, left)
			}
		}
		execute(t, m, bob, "s", "x")
		if entries, err := os.ReadDir(folder(bob)); err != nil || len(entries) > 0 || folder(bob) == folder(alice) {
			t.Errorf("bob's folder: %v %v", entries, err)
		}
		if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(folder(bob)); err != nil {
			t.Error(err)
		}
	})
}

// What cannot be moved stays where it is, and the kernel starts there.
func TestFilesThatCannotBeMovedStay(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, m *Manager, old, spare string){
		"the kernel has made files": func(t *testing.T, _ *Manager, _, spare string) { put(t, filepath.Join(spare, "cache")) },
		"the folder is gone":        func(t *testing.T, _ *Manager, _, spare string) { _ = os.Remove(spare) },
		"another process uses them": func(t *testing.T, _ *Manager, old, _ string) {
			other := flock.New(old + ".lock")
			if err := other.RLock(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvisioner{}
				m := newTestManager(t, p, poolOf(1))
				defer m.Shutdown(context.Background())
				execute(t, m, alice, "s", "x")
				old := p.spec(0).Workspace
				put(t, filepath.Join(old, "a.txt"))
				m.StartPool()
				time.Sleep(time.Minute)
				spoil(t, m, old, p.spec(1).Workspace)
				if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
					t.Fatal(err)
				}
				if p.spec(2).Workspace != old {
					t.Errorf("the next kernel was launched in %s, want %s", p.spec(2).Workspace, old)
				}
				if _, err := os.Stat(filepath.Join(old, "a.txt")); err != nil {
					t.Error(err)
				}
				if labels, _ := filepath.Glob(filepath.Join(workspacesOf(m), "*.json")); len(labels) > 2 {
					t.Errorf("labels: %v", labels)
				}
			})
		})
	}
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
		t.Fatal(err)
	}
}
