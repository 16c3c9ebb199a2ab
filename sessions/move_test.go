package sessions

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions/files"
)

var discard = slog.New(slog.DiscardHandler)

const oldFolder, newFolder, bobsFolder = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"

// labeller writes a folder's label: with a link that says From, or by older versions with From in it.
type labeller func(w *workspaces, name string, l label) error

func withLink(w *workspaces, name string, l label) error {
	from := l.From
	if l.From = ""; from == "" {
		return w.write(name, l)
	}
	return errors.Join(w.write(name, l), os.Symlink(from, w.fromPath(name)))
}

var labellers = map[string]labeller{"with a link": withLink, "as older versions do": (*workspaces).write}

// fixture lays out a workspaces folder: labels by name, and files by path.
func fixture(t *testing.T, labels map[string]label, files ...string) (dataDir string) {
	t.Helper()
	return fixtureBy(t, withLink, labels, files...)
}

func fixtureBy(t *testing.T, write labeller, labels map[string]label, files ...string) (dataDir string) {
	t.Helper()
	dataDir = t.TempDir()
	w := &workspaces{root: filepath.Join(dataDir, "workspaces")}
	for name, l := range labels {
		if err := os.MkdirAll(filepath.Join(w.root, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := write(w, name, l); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range files {
		path := filepath.Join(w.root, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, "/") {
			put(t, path)
		}
	}
	return dataDir
}

// names lists what is in a workspaces folder, locks left out.
func names(t *testing.T, dataDir string) []string {
	t.Helper()
	root := filepath.Join(dataDir, "workspaces")
	var found []string
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if rel, _ := filepath.Rel(root, path); rel != "." && filepath.Ext(path) != ".lock" {
			found = append(found, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A process that is killed while it moves a session's files leaves it to the next one to finish, whenever that was.
func TestInterruptedMoveIsFinished(t *testing.T) {
	plain := label{Owner: alice, ID: "s", Language: "python", Created: time.Now()}
	moving := plain
	moving.From = oldFolder
	bobs := label{Owner: bob, ID: "s", Language: "python"}
	for name, tt := range map[string]struct {
		labels map[string]label
		files  []string
	}{
		"before the first file": {map[string]label{oldFolder: plain, newFolder: moving}, []string{oldFolder + "/a", oldFolder + "/d/b"}},
		"old label removed":     {map[string]label{newFolder: moving}, []string{oldFolder + "/a", oldFolder + "/d/b"}},
		"between two files":     {map[string]label{newFolder: moving}, []string{newFolder + "/a", oldFolder + "/d/b"}},
		"after the last file":   {map[string]label{newFolder: moving}, []string{newFolder + "/a", newFolder + "/d/b", oldFolder + "/"}},
		"old folder removed":    {map[string]label{newFolder: moving}, []string{newFolder + "/a", newFolder + "/d/b"}},
	} {
		for how, write := range labellers {
			t.Run(name+", "+how, func(t *testing.T) {
				tt.labels[bobsFolder] = bobs
				finishes(t, fixtureBy(t, write, tt.labels, append(tt.files, bobsFolder+"/a")...), newFolder)
			})
		}
	}
	t.Run("the link alone", func(t *testing.T) {
		labels := map[string]label{oldFolder: plain, newFolder: {Spare: true}, bobsFolder: bobs}
		dir := fixture(t, labels, oldFolder+"/a", oldFolder+"/d/b", bobsFolder+"/a")
		if err := os.Symlink(oldFolder, filepath.Join(workspacesIn(dir), newFolder+".from")); err != nil {
			t.Fatal(err)
		}
		finishes(t, dir, oldFolder)
	})
}

// finishes fails the test unless alice's files are all in one folder when a data folder is opened, and bob's in his.
func finishes(t *testing.T, dir, alices string) {
	t.Helper()
	for range 2 { // doing it again changes nothing
		w := opened(t, dir)
		if got, used, err := w.acquire(key{alice, "s"}, "python"); err != nil || !used || filepath.Base(got) != alices {
			t.Errorf("alice's folder: %s %v %v", got, used, err)
		}
		if got, _ := w.lookup(key{bob, "s"}); got != bobsFolder {
			t.Errorf("bob's folder: %s", got)
		}
		want := []string{alices, alices + "/a", alices + "/d", alices + "/d/b", alices + ".json",
			bobsFolder, bobsFolder + "/a", bobsFolder + ".json"}
		if got := names(t, dir); !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
		if text, err := os.ReadFile(filepath.Join(dir, "workspaces", alices, "a")); err != nil || strings.Contains(string(text), bobsFolder) {
			t.Errorf("%q %v", text, err)
		}
		for _, lock := range w.used {
			lock.Close()
		}
	}
}

// A move that cannot be finished is undone; where that does not work either, nothing is touched, and nobody gets half of it.
func TestInterruptedMoveThatCannotBeFinished(t *testing.T) {
	plain := label{Owner: alice, ID: "s", Language: "python"}
	moving := plain
	moving.From = oldFolder
	for how, write := range labellers {
		t.Run("undone, "+how, func(t *testing.T) {
			dir := fixtureBy(t, write, map[string]label{newFolder: moving}, oldFolder+"/a")
			if err := os.Remove(filepath.Join(dir, "workspaces", newFolder)); err != nil {
				t.Fatal(err)
			}
			w := opened(t, dir)
			if name, ok, err := w.find(key{alice, "s"}); !ok || err != nil || name != oldFolder {
				t.Errorf("%s %v %v", name, ok, err)
			}
			if got, want := names(t, dir), []string{oldFolder, oldFolder + "/a", oldFolder + ".json"}; !slices.Equal(got, want) {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("one name in both", func(t *testing.T) {
		dir := fixture(t, map[string]label{newFolder: moving}, oldFolder+"/a", newFolder+"/a")
		w, err := openWorkspaces(dir, 65534, 65534, discard)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.acquire(key{alice, "s"}, "python"); err == nil {
			t.Error("half of the files were handed out")
		}
		for _, folder := range []string{oldFolder, newFolder} {
			path := filepath.Join(dir, "workspaces", folder, "a")
			if text, err := os.ReadFile(path); err != nil || string(text) != path {
				t.Errorf("%q %v", text, err)
			}
		}
	})
}

// What has a name already keeps it, whether the system sees to that or not.
func TestRenameReplacesNothing(t *testing.T) {
	for name, rename := range map[string]func(from, to string) error{"in one step": renameNew, "after a look": lookAndRename} {
		dir := t.TempDir()
		a, b, c := filepath.Join(dir, "a"), filepath.Join(dir, "b"), filepath.Join(dir, "c")
		put(t, a)
		put(t, b)
		if err := os.Symlink("nowhere", c); err != nil {
			t.Fatal(err)
		}
		for _, taken := range []string{b, c} {
			if err := rename(a, taken); !errors.Is(err, fs.ErrExist) {
				t.Errorf("%s, over %s: %v", name, taken, err)
			}
		}
		if text, err := os.ReadFile(b); err != nil || string(text) != b {
			t.Errorf("%s: %q %v", name, text, err)
		}
		if err := rename(c, filepath.Join(dir, "d")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Folders of kernels that were in a killed process's pool go; those of a process that lives stay.
func TestSpareFoldersOfTheDeadGo(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Spare: true}, bobsFolder: {Owner: bob, ID: "s", Language: "python"}})
	w, err := openWorkspaces(dir, 65534, 65534, discard)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{bobsFolder, bobsFolder + ".json"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f, err := w.spare()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openWorkspaces(dir, 65534, 65534, discard); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.dir); err != nil {
		t.Errorf("the folder of a living process: %v", err)
	}
	w.discard(f)
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("after discard: %v", got)
	}
}

// A label that a loss of power has left empty takes no files with it, in the middle of a move neither: both folders are left alone.
func TestLabelThatThePowerTook(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}, newFolder: {Owner: alice, ID: "s", Language: "python", From: oldFolder}})
	root := filepath.Join(dir, "workspaces")
	for _, folder := range []string{oldFolder, newFolder} {
		if err := errors.Join(os.WriteFile(filepath.Join(root, folder, "of "+folder), nil, 0o600), os.Truncate(filepath.Join(root, folder+".json"), 0)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := openWorkspaces(dir, 65534, 65534, discard)
	if err != nil {
		t.Fatal(err)
	}
	got, used, err := w.acquire(key{alice, "s"}, "python")
	if name := filepath.Base(got); err != nil || used || name == oldFolder || name == newFolder {
		t.Errorf("the session has %s, %v, %v", got, used, err)
	}
	for _, folder := range []string{oldFolder, newFolder} {
		if _, err := os.Stat(filepath.Join(root, folder, "of "+folder)); err != nil {
			t.Error(err)
		}
	}
}

// A folder with very many files is not moved: that would take longer than a start.
func TestVeryManyFilesAreNotMoved(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}})
	for i := range maxMoved + 1 {
		if err := os.Mkdir(filepath.Join(dir, "workspaces", oldFolder, fmt.Sprint(i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	w, err := openWorkspaces(dir, 65534, 65534, discard)
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.spare()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.give(key{alice, "s"}, "python", f); err == nil {
		t.Error("they were moved")
	}
	w.discard(f)
	if got, used, err := w.acquire(key{alice, "s"}, "python"); err != nil || !used || filepath.Base(got) != oldFolder {
		t.Errorf("%s %v %v", got, used, err)
	}
}

// Files can be written while the session's others are on their way to another folder: all are in one folder in the end.
func TestWriteWhileFilesAreMoved(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	execute(t, m, alice, "s", "x")
	k, w := key{alice, "s"}, m.workspaces
	const rounds, folders = 20, 40
	for round := range rounds {
		var writing sync.WaitGroup
		f, err := w.spare()
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
		if _, _, err := w.give(k, "python", f); err != nil {
			t.Errorf("given: %v", err)
			w.discard(f)
		}
		writing.Wait()
	}
	l, err := m.ListFiles(t.Context(), alice, "s", files.Query{Most: 1})
	if err != nil || l.Files != rounds*folders {
		t.Errorf("%d files, %v", l.Files, err)
	}
}

// While somebody copies the workspaces, files stay where they are.
func TestFilesThatAreCopiedAreNotMoved(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}}, oldFolder+"/a")
	w, err := openWorkspaces(dir, 65534, 65534, discard)
	if err != nil {
		t.Fatal(err)
	}
	give := func() error {
		f, err := w.spare()
		if err != nil {
			t.Fatal(err)
		}
		defer w.discard(f)
		_, _, err = w.give(key{alice, "s"}, "python", f)
		return err
	}
	_, release, err := HoldFiles(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := give(); err == nil {
		t.Error("they were moved")
	}
	if got, want := names(t, dir), []string{oldFolder, oldFolder + "/a", oldFolder + ".json"}; !slices.Equal(got, want) {
		t.Errorf("there are %v", got)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if err := give(); err != nil {
		t.Errorf("after the copy: %v", err)
	}
}

// What is deleted while a move is unfinished goes from both folders, whenever this process has last looked.
func TestDeleteAfterAnUnfinishedMove(t *testing.T) {
	plain := label{Owner: alice, ID: "s", Language: "python"}
	moving := plain
	moving.From = oldFolder
	inBoth := []string{oldFolder + "/a", oldFolder + "/b", newFolder + "/a"} // so it can be neither finished nor undone
	for name, tt := range map[string]struct {
		before, after map[string]label
		files         []string
	}{
		"known":                     {before: map[string]label{newFolder: moving}, files: inBoth},
		"known, with the old label": {before: map[string]label{newFolder: moving, oldFolder: plain}, files: inBoth},
		"begun by another process": {before: map[string]label{oldFolder: plain}, after: map[string]label{newFolder: moving, oldFolder: plain},
			files: []string{oldFolder + "/a", newFolder + "/"}},
		"half done by another one": {before: map[string]label{oldFolder: plain}, after: map[string]label{newFolder: moving},
			files: []string{oldFolder + "/a", newFolder + "/b"}},
		"given up by another one": {before: map[string]label{oldFolder: plain}, after: map[string]label{newFolder: moving}, files: inBoth},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fixture(t, tt.before, tt.files...)
			m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.DataDir = dir })
			if tt.after != nil {
				_ = os.Remove(m.workspaces.labelPath(oldFolder))
			}
			for name, l := range tt.after {
				if err := withLink(m.workspaces, name, l); err != nil {
					t.Fatal(err)
				}
			}
			if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
				t.Error(err)
			}
			if left := names(t, dir); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// Whoever looks at files sees all of them, also while they are moved again and again.
func TestFilesAreSeenWholeWhileTheyAreMoved(t *testing.T) {
	const all = 200
	var paths []string
	for i := range all {
		paths = append(paths, fmt.Sprintf("%s/f%d", oldFolder, i))
	}
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}}, paths...)
	m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.DataDir = dir })
	other, err := openWorkspaces(dir, 65534, 65534, discard) // as another process has it
	if err != nil {
		t.Fatal(err)
	}
	k, done := key{alice, "s"}, make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			l, err := m.ListFiles(t.Context(), alice, "s", files.Query{Most: 1})
			if fault.KindOf(err) == fault.Busy {
				continue // the other process is at it
			}
			if err != nil || l.Files != all {
				t.Errorf("%d files, %v", l.Files, err)
			}
			f, _, err := m.OpenFile(t.Context(), alice, "s", fmt.Sprintf("f%d", all-1))
			if err == nil {
				_ = f.Close()
			} else if fault.KindOf(err) != fault.Busy {
				t.Error(err)
			}
		}
	})
	moved := map[*workspaces]int{}
	for round := range 100 {
		w := []*workspaces{m.workspaces, other}[round%2]
		f, err := w.spare()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.give(k, "python", f); err == nil {
			moved[w]++
		} else { // the files are looked at in this moment
			w.discard(f)
		}
		if err := w.release(k, false); err != nil {
			t.Error(err)
		}
	}
	close(done)
	looking.Wait()
	if moved[m.workspaces] == 0 || moved[other] == 0 {
		t.Errorf("moved %d times here, %d times by the other", moved[m.workspaces], moved[other])
	}
}

// Who copies workspaces is told of the folder from which not all files were moved, too.
func TestHeldFilesOfAnUnfinishedMove(t *testing.T) {
	moving := label{Owner: alice, ID: "s", Language: "python", From: oldFolder}
	over := label{Owner: bob, ID: "s", Language: "python", From: "dddddddddddddddd"}
	dir := fixture(t, map[string]label{newFolder: moving, bobsFolder: over}, oldFolder+"/a", newFolder+"/b")
	folders, release, err := HoldFiles(dir)
	if err != nil || !slices.Equal(folders, []string{oldFolder, newFolder, bobsFolder}) {
		t.Errorf("%v, %v", folders, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
