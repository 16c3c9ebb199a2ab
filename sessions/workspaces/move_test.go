package workspaces

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/sessions/files"
)

var alice, bob = Owner{Issuer: "test", Subject: "alice"}, Owner{Issuer: "test", Subject: "bob"}

const oldFolder, newFolder, bobsFolder = "aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb", "cccccccccccccccc"

// labeller writes a folder's label: with a link that says From, or by older versions with From in it.
type labeller func(w *Folders, name string, l label) error

func withLink(w *Folders, name string, l label) error {
	from := l.From
	if l.From = ""; from == "" {
		return w.write(name, l)
	}
	return errors.Join(w.write(name, l), os.Symlink(from, w.fromPath(name)))
}

var labellers = map[string]labeller{"with a link": withLink, "as older versions do": (*Folders).write}

// fixture lays out a workspaces folder: labels by name, and files by path.
func fixture(t *testing.T, labels map[string]label, files ...string) (dataDir string) {
	t.Helper()
	return fixtureBy(t, withLink, labels, files...)
}

func fixtureBy(t *testing.T, write labeller, labels map[string]label, files ...string) (dataDir string) {
	t.Helper()
	dataDir = t.TempDir()
	w := &Folders{root: filepath.Join(dataDir, "workspaces")}
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

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
		t.Fatal(err)
	}
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
		if err := os.Symlink(oldFolder, filepath.Join(in(dir), newFolder+".from")); err != nil {
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
		if got, used, err := w.Acquire(Key{alice, "s"}, "python"); err != nil || !used || filepath.Base(got) != alices {
			t.Errorf("alice's folder: %s %v %v", got, used, err)
		}
		if got, _ := w.lookup(Key{bob, "s"}); got != bobsFolder {
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
			if name, ok, err := w.find(Key{alice, "s"}); !ok || err != nil || name != oldFolder {
				t.Errorf("%s %v %v", name, ok, err)
			}
			if got, want := names(t, dir), []string{oldFolder, oldFolder + "/a", oldFolder + ".json"}; !slices.Equal(got, want) {
				t.Errorf("got %v", got)
			}
		})
	}
	t.Run("one name in both", func(t *testing.T) {
		dir := fixture(t, map[string]label{newFolder: moving}, oldFolder+"/a", newFolder+"/a")
		w, err := New(Options{DataDir: dir, UID: 65534, GID: 65534})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Acquire(Key{alice, "s"}, "python"); err == nil {
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
	w, err := New(Options{DataDir: dir, UID: 65534, GID: 65534})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := names(t, dir), []string{bobsFolder, bobsFolder + ".json"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	f, err := w.NewSpare()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{DataDir: dir, UID: 65534, GID: 65534}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(f.Dir); err != nil {
		t.Errorf("the folder of a living process: %v", err)
	}
	w.Discard(f)
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
	w, err := New(Options{DataDir: dir, UID: 65534, GID: 65534})
	if err != nil {
		t.Fatal(err)
	}
	got, used, err := w.Acquire(Key{alice, "s"}, "python")
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
	w, err := New(Options{DataDir: dir, UID: 65534, GID: 65534})
	if err != nil {
		t.Fatal(err)
	}
	f, err := w.NewSpare()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.Give(Key{alice, "s"}, "python", f); err == nil {
		t.Error("they were moved")
	}
	w.Discard(f)
	if got, used, err := w.Acquire(Key{alice, "s"}, "python"); err != nil || !used || filepath.Base(got) != oldFolder {
		t.Errorf("%s %v %v", got, used, err)
	}
}

// While somebody copies the workspaces, files stay where they are.
func TestFilesThatAreCopiedAreNotMoved(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}}, oldFolder+"/a")
	w, err := New(Options{DataDir: dir, UID: 65534, GID: 65534})
	if err != nil {
		t.Fatal(err)
	}
	give := func() error {
		f, err := w.NewSpare()
		if err != nil {
			t.Fatal(err)
		}
		defer w.Discard(f)
		_, _, err = w.Give(Key{alice, "s"}, "python", f)
		return err
	}
	_, release, err := HoldAll(dir)
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
			w := opened(t, dir)
			if tt.after != nil {
				_ = os.Remove(w.labelPath(oldFolder))
			}
			for name, l := range tt.after {
				if err := withLink(w, name, l); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.Release(Key{alice, "s"}, true); err != nil {
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
	one, other := opened(t, dir), opened(t, dir) // as two processes have it
	k, done := Key{alice, "s"}, make(chan struct{})
	var looking sync.WaitGroup
	looking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			f, err := one.Open(k)
			if errors.Is(err, errElsewhere) {
				continue // the other process is at it
			}
			if err != nil {
				t.Error(err)
				return
			}
			l, err := f.List(files.Query{Most: 1})
			if err != nil || l.Files != all {
				t.Errorf("%d files, %v", l.Files, err)
			}
			last, _, err := f.OpenFile(fmt.Sprintf("f%d", all-1))
			if err != nil {
				t.Error(err)
			}
			_ = errors.Join(last.Close(), f.Close())
		}
	})
	moved := map[*Folders]int{}
	for round := range 100 {
		w := []*Folders{one, other}[round%2]
		f, err := w.NewSpare()
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := w.Give(k, "python", f); err == nil {
			moved[w]++
		} else { // the files are looked at in this moment
			w.Discard(f)
		}
		if err := w.Release(k, false); err != nil {
			t.Error(err)
		}
	}
	close(done)
	looking.Wait()
	if moved[one] == 0 || moved[other] == 0 {
		t.Errorf("moved %d times here, %d times by the other", moved[one], moved[other])
	}
}

// Who copies workspaces is told of the folder from which not all files were moved, too.
func TestHeldFilesOfAnUnfinishedMove(t *testing.T) {
	moving := label{Owner: alice, ID: "s", Language: "python", From: oldFolder}
	over := label{Owner: bob, ID: "s", Language: "python", From: "dddddddddddddddd"}
	dir := fixture(t, map[string]label{newFolder: moving, bobsFolder: over}, oldFolder+"/a", newFolder+"/b")
	folders, release, err := HoldAll(dir)
	if err != nil || !slices.Equal(folders, []string{oldFolder, newFolder, bobsFolder}) {
		t.Errorf("%v, %v", folders, err)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
}
