package workspaces

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Of two processes one moves a session's files from folder to folder while the other one asks for them: that one gets the
// folder that has them, or hears that it has to wait, and never makes another folder for the session.
func TestFolderIsMovedWhileAnotherProcessAsksForIt(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Owner: alice, ID: "s", Language: "python"}}, oldFolder+"/a")
	one, k := opened(t, dir), Key{alice, "s"}
	for range 300 {
		if err := one.write(newName(), label{Owner: bob, ID: newName(), Language: "python"}); err != nil {
			t.Fatal(err)
		}
	}
	const moves = 60
	var spares []*Spare // made before, as those of kernels in the pool are
	for range moves {
		f, err := one.NewSpare()
		if err != nil {
			t.Fatal(err)
		}
		spares = append(spares, f)
	}
	other, done := opened(t, dir), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			_, used, err := other.Acquire(k, "")
			if errors.Is(err, errElsewhere) {
				continue
			}
			if err != nil || !used {
				t.Errorf("the files are there: %v, %v", used, err)
			}
			if err := other.Release(k, false); err != nil {
				t.Error(err)
			}
		}
	})
	moved := 0
	for _, f := range spares {
		if _, _, err := one.Give(k, "python", f); err == nil {
			moved++
		} else { // the other one has them in this moment
			one.Discard(f)
		}
		if err := one.Release(k, false); err != nil {
			t.Error(err)
		}
	}
	close(done)
	asking.Wait()
	labels, _, err := one.labels()
	if err != nil {
		t.Fatal(err)
	}
	var folders []string
	for name, l := range labels {
		if l.ID == k.ID {
			folders = append(folders, name)
		}
	}
	if len(folders) != 1 || moved == 0 {
		t.Errorf("after %d moves the session's folders are %v", moved, folders)
	}
}

// opened is what one process has of a data folder.
func opened(t *testing.T, dataDir string) *Folders {
	t.Helper()
	w, err := New(Options{DataDir: dataDir, UID: 65534, GID: 65534})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// A folder whose label another process has taken away since it was read is not the session's any more.
func TestLabelThatWentMeanwhile(t *testing.T) {
	plain := label{Owner: alice, ID: "s", Language: "python"}
	dir := fixture(t, map[string]label{oldFolder: plain}, oldFolder+"/a")
	w, k := opened(t, dir), Key{alice, "s"}
	lock := w.lock(oldFolder) // of who moves them
	if free, err := lock.TryLock(); err != nil || !free {
		t.Fatal(free, err)
	}
	got := make(chan string, 1)
	go func() {
		folder, _, err := w.Acquire(k, "")
		if err != nil {
			t.Error(err)
		}
		got <- filepath.Base(folder)
	}()
	for !w.uses(k) { // it has found the folder, and waits for the lock
		select {
		case name := <-got:
			t.Fatalf("%s was got while it was locked", name)
		default:
			runtime.Gosched()
		}
	}
	for _, err := range []error{
		os.Rename(filepath.Join(w.root, oldFolder), filepath.Join(w.root, newFolder)),
		os.Rename(w.labelPath(oldFolder), w.labelPath(newFolder)), os.Remove(lock.Path()), lock.Close(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if name := <-got; name != newFolder {
		t.Errorf("got %s", name)
	}
	if got, want := names(t, dir), []string{newFolder, newFolder + "/a", newFolder + ".json"}; !slices.Equal(got, want) {
		t.Errorf("there are %v", got)
	}
}

// A folder that is no session's goes, but not with files in it: they may be of a move whose label the disk has not got.
func TestSpareFolderWithFilesIsKept(t *testing.T) {
	dir := fixture(t, map[string]label{oldFolder: {Spare: true}, newFolder: {Spare: true}}, newFolder+"/a")
	opened(t, dir)
	if got, want := names(t, dir), []string{newFolder, newFolder + "/a", newFolder + ".json"}; !slices.Equal(got, want) {
		t.Errorf("there are %v", got)
	}
}

// That cells have run is written down once the files are in one folder, and no sooner; then nothing is to come any more.
func TestRanIsNotedWhenFilesAreInOneFolder(t *testing.T) {
	moving := label{Owner: alice, ID: "s", From: oldFolder}
	for name, tt := range map[string]struct {
		files []string
		want  label
	}{
		"not all moved":    {[]string{newFolder + "/a", oldFolder + "/b"}, moving},
		"all moved before": {[]string{newFolder + "/a"}, label{Owner: alice, ID: "s", Language: "python"}},
	} {
		dir := fixture(t, nil, tt.files...)
		w, k := &Folders{root: in(dir), log: slog.New(slog.DiscardHandler), byKey: map[Key]string{{alice, "s"}: newFolder}}, Key{alice, "s"}
		if err := w.write(newFolder, moving); err != nil {
			t.Fatal(err)
		}
		w.NoteRan(k, "python")
		if l, err := w.read(newFolder); err != nil || l != tt.want {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
	}
}
