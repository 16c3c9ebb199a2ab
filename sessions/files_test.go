package sessions

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
	"cellblock/sessions/files"
)

func fileText(t *testing.T, m *Manager, o Owner, id, path string) string {
	t.Helper()
	f, _, err := m.OpenFile(t.Context(), o, id, path)
	if err != nil {
		return fault.Text(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// Files are there before the first cell, without a kernel, after the session, and after the server's restart; the first
// cell is told nothing of an earlier session, later ones are.
func TestFilesWithoutAKernel(t *testing.T) {
	dir, p := t.TempDir(), &fakeProvisioner{}
	inDir := func(c *Config) { c.DataDir = dir }
	m := newTestManager(t, p, inDir)
	if _, err := m.ListFiles(t.Context(), alice, "s", files.Query{}); fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Text(err), "write_file") {
		t.Errorf("an unknown session: %v", err)
	}
	e, created, err := m.WriteFile(t.Context(), alice, "s", "data/a.txt", []byte("one"))
	if err != nil || !created || e.Path != "data/a.txt" || p.launched.Load() != 0 {
		t.Fatalf("%+v %v %v", e, created, err)
	}
	if got := fileText(t, m, alice, "s", "/workspace/data/a.txt"); got != "one" {
		t.Error(got)
	}
	if l, err := m.ListFiles(t.Context(), bob, "s", files.Query{Most: 9}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("bob sees %v", l)
	}
	if cell, _ := execute(t, m, alice, "s", "x"); cell.Preamble() != "" {
		t.Errorf("the first cell is told %q", cell.Preamble())
	}
	if got, err := os.ReadFile(filepath.Join(p.specs[0].Workspace, "data/a.txt")); string(got) != "one" {
		t.Errorf("the kernel's workspace: %v", err)
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	m = newTestManager(t, p, inDir)
	if _, _, err := m.WriteFile(t.Context(), alice, "s", "b", []byte("two")); err != nil {
		t.Error(err)
	}
	if l, err := m.ListFiles(t.Context(), alice, "s", files.Query{Most: 9}); err != nil || l.Files != 2 {
		t.Errorf("%+v %v", l, err)
	}
	if cell, _ := execute(t, m, alice, "s", "x"); !strings.Contains(cell.Preamble(), "files in the workspace") {
		t.Errorf("a later cell is told %q", cell.Preamble())
	}
	if _, err := m.DeleteFile(t.Context(), alice, "s", "data", true); err != nil {
		t.Error(err)
	}
	if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
		t.Error(err)
	}
	if got := fileText(t, m, alice, "s", "b"); got != "two" {
		t.Errorf("after the session: %q", got)
	}
	if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
		t.Error(err)
	}
	if got := fileText(t, m, alice, "s", "b"); !strings.Contains(got, "there is no session") {
		t.Errorf("after files were deleted: %q", got)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "workspaces")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// A write that fails leaves no workspace behind, and one that succeeds leaves no lock: another process may delete the files.
func TestWriteLeavesNothingHeld(t *testing.T) {
	dir, p := t.TempDir(), &fakeProvisioner{}
	one, other := newTestManager(t, p, func(c *Config) { c.DataDir = dir }), newTestManager(t, p, func(c *Config) { c.DataDir = dir })
	if _, _, err := one.WriteFile(t.Context(), alice, "s", "..", nil); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "workspaces")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if _, _, err := one.WriteFile(t.Context(), alice, "s", "a", nil); err != nil {
		t.Error(err)
	}
	if _, err := other.ListFiles(t.Context(), alice, "s", files.Query{}); err != nil {
		t.Errorf("the other process: %v", err)
	}
	if err := other.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
		t.Error(err)
	}
	if _, _, err := one.WriteFile(t.Context(), alice, "s", "big", bytes.Repeat([]byte("x"), MaxFile+1)); fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
}

func TestWorkspaceHasALimit(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.WorkspaceBytes = 1000 })
	write := func(path string, size int) error {
		_, _, err := m.WriteFile(t.Context(), alice, "s", path, bytes.Repeat([]byte("x"), size))
		return err
	}
	if err := write("d/a", 600); err != nil {
		t.Error(err)
	}
	if err := write("b", 600); fault.KindOf(err) != fault.Conflict || !strings.Contains(fault.Text(err), "delete files") {
		t.Errorf("beyond the limit: %v", err)
	}
	if _, err := m.DeleteFile(t.Context(), alice, "s", "d", true); err != nil {
		t.Error(err)
	}
	if err := write("b", 600); err != nil {
		t.Error(err)
	}
}

// A workspace is not looked through before each part of a file, but what it holds is not believed for long.
func TestRoomIsRememberedForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.WorkspaceBytes = 1000 })
		add := func(offset int64) error {
			_, err := m.AddToFile(t.Context(), alice, "s", "a", "w", offset, make([]byte, 100))
			return err
		}
		if err := add(0); err != nil {
			t.Fatal(err)
		}
		dir, _ := m.workspaces.Find(key{alice, "s"}.workspace())
		if err := os.WriteFile(filepath.Join(dir, "a cell's"), make([]byte, 1000), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := add(100); err != nil {
			t.Errorf("it was looked through again: %v", err)
		}
		time.Sleep(roomFor + time.Millisecond)
		if err := add(200); fault.KindOf(err) != fault.Conflict {
			t.Errorf("later: %v", err)
		}
		if err := os.Remove(filepath.Join(dir, "a cell's")); err != nil {
			t.Fatal(err)
		}
		for offset := int64(200); offset < 1000; offset += 100 {
			if err := add(offset); err != nil {
				t.Error(err)
			}
		}
		if err := add(1000); fault.KindOf(err) != fault.Conflict {
			t.Errorf("beyond the limit: %v", err)
		}
	})
}

// Sessions begin and end while files are written: none is lost.
func TestWriteWhileSessionsComeAndGo(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 25 {
				if _, _, err := m.WriteFile(t.Context(), alice, "s", fmt.Sprintf("%d/%d", i, j), []byte("x")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Go(func() {
		for range 10 {
			execute(t, m, alice, "s", "x")
			if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	all.Wait()
	if l, err := m.ListFiles(t.Context(), alice, "s", files.Query{Most: 1}); err != nil || l.Files != 100 {
		t.Errorf("%d files, %v", l.Files, err)
	}
}

// A workspace that no session has is kept from other processes by each who writes to it, not only by the first.
func TestWritersKeepOtherProcessesOut(t *testing.T) {
	dir, p := t.TempDir(), &fakeProvisioner{}
	m := newTestManager(t, p, func(c *Config) { c.DataDir = dir })
	k := key{alice, "s"}
	if _, _, err := m.WriteFile(t.Context(), alice, "s", "a", nil); err != nil {
		t.Fatal(err)
	}
	folder, _ := m.workspaces.Find(k.workspace())
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				_, _, err := m.write(k, 0, func(*files.Folder) (e files.Entry, created bool, err error) {
					lock := flock.New(folder + ".lock")
					defer lock.Close()
					if alone, err := lock.TryLock(); err != nil || alone {
						t.Errorf("another process has the files alone while they are written: %v", err)
					}
					return e, false, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}

// What a cell writes is in its result, and nothing else: not what was there, not what write_file wrote.
func TestFilesThatACellWrote(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	if _, _, err := m.WriteFile(t.Context(), alice, "s", "there", []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, r := execute(t, m, alice, "s", "x"); len(r.Files) != 0 {
		t.Errorf("nothing was written: %v", r.Files)
	}
	// what is written between two cells stands for what the second one writes
	workspace := p.specs[0].Workspace
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("there", "xx")
	write("new", "1")
	if _, _, err := m.WriteFile(t.Context(), alice, "s", "given", []byte("x")); err != nil {
		t.Fatal(err)
	}
	e, r := execute(t, m, alice, "s", "x")
	if got := fmt.Sprint(r.Files, r.MoreFiles); got != "[{new true false 1} {there false false 2}] 0" {
		t.Error(got)
	}
	if info := e.Info(); len(info.Result.Files) != 2 {
		t.Errorf("%+v", info)
	}
	for i := range 15 {
		write(fmt.Sprint(i), "x")
	}
	if _, r := execute(t, m, alice, "s", "x"); len(r.Files) != maxWritten || r.MoreFiles != 5 {
		t.Errorf("%v %d", r.Files, r.MoreFiles)
	}
	if _, r := execute(t, m, alice, "s", "x"); len(r.Files) != 0 {
		t.Errorf("told twice: %v", r.Files)
	}
}

// A workspace with too many files is looked at less and less often, and again when it has fewer.
func TestLookingPauses(t *testing.T) {
	dir := t.TempDir()
	f, err := files.Open(dir, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	many := filepath.Join(dir, "many")
	if err := os.Mkdir(many, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 2100 {
		if err := os.WriteFile(filepath.Join(many, fmt.Sprint(i)), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var w written
	var pauses []int
	for range 100 {
		if w.look(f); w.skip == w.pause {
			pauses = append(pauses, w.pause)
		}
	}
	if got := fmt.Sprint(pauses); got != "[1 2 4 8 16 32 32]" {
		t.Error(got)
	}
	if err := os.RemoveAll(many); err != nil {
		t.Fatal(err)
	}
	for range maxPause + 1 {
		w.look(f)
	}
	if _, _, err := f.Write("new", nil); err != nil {
		t.Fatal(err)
	}
	if changes := w.look(f); len(changes) != 1 {
		t.Errorf("%v", changes)
	}
}

// Files can be written while the session's others are on their way to another folder: all are in one folder in the end.
func TestWriteWhileFilesAreMoved(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	execute(t, m, alice, "s", "x")
	k, w := key{alice, "s"}.workspace(), m.workspaces
	const rounds, folders = 20, 40
	for round := range rounds {
		var writing sync.WaitGroup
		f, err := w.NewSpare()
		if err != nil {
			t.Fatal(err)
		}
		writing.Go(func() {
			for i := range folders {
				name := fmt.Sprintf("d%d/f%d", i, round)
				if _, _, err := m.WriteFile(t.Context(), alice, "s", name, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
		time.Sleep(time.Duration(round) * time.Millisecond / 5) // somewhere in the middle
		if _, _, err := w.Give(k, "python", f); err != nil {
			t.Errorf("given: %v", err)
			w.Discard(f)
		}
		writing.Wait()
	}
	l, err := m.ListFiles(t.Context(), alice, "s", files.Query{Most: 1})
	if err != nil || l.Files != rounds*folders {
		t.Errorf("%d files, %v", l.Files, err)
	}
}
