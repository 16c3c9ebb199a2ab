package derived

import (
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"cellblock/internal/fault"
)

// An owner is told of an image by the first in the alphabet of the names that he gave it, whichever came last, and only he.
func TestCalled(t *testing.T) {
	w := newWorld(t, nil)
	image := w.create("alice", "ark", "polars").Image
	called := func(owner, want string) {
		t.Helper()
		if got := w.Called(owner, image); got != want {
			t.Errorf("%s calls it %q, want %q", owner, got, want)
		}
	}
	called("alice", "ark")
	called("bob", Unnamed)
	w.create("bob", "his", "polars")
	w.create("alice", "zoo", "polars")
	called("alice", "ark")
	called("bob", "his")
	w.used[image] = true
	if err := w.Delete(t.Context(), "alice", "ark"); err != nil {
		t.Fatal(err)
	}
	called("alice", "zoo")
	again := New(w.cfg) // a server that starts looks before it collects
	if err := again.Collect(t.Context()); err != nil || again.Called("alice", image) != "zoo" {
		t.Errorf("after a restart: %q, %v", again.Called("alice", image), err)
	}
	w.create("alice", "zoo", "flask")
	called("alice", Unnamed)
}

// restored is another installation's library that has the names of w's backup, but none of its images.
func (w *world) restored() *Library {
	w.t.Helper()
	cfg := w.cfg
	cfg.Installation, cfg.Folder = "restored", w.t.TempDir()
	cfg.Engine = newFake()
	if err := os.CopyFS(filepath.Join(cfg.Folder, NamesFolder), os.DirFS(filepath.Join(w.cfg.Folder, NamesFolder))); err != nil {
		w.t.Fatal(err)
	}
	return New(cfg)
}

// An image that is known from a backup only, by another installation, is called what its owner called it, unless he calls another so.
func TestCalledInABackup(t *testing.T) {
	w := newWorld(t, nil)
	w.cfg.Folder = filepath.Join(w.cfg.Folder, "of [all") // a name is no pattern
	w.Library = New(w.cfg)
	image := w.create("alice", "ml", "polars").Image
	restored := w.restored()
	if got := restored.Called("alice", image); got != "ml" {
		t.Errorf("its owner is told of %q", got)
	}
	for _, other := range []string{"bob", "../alice", ""} {
		if got := restored.Called(other, image); got != Unnamed {
			t.Errorf("%q is told of %q", other, got)
		}
	}
	if _, err := restored.Create(t.Context(), "alice", "ml", []string{"python"}, set("flask"), io.Discard); err != nil {
		t.Fatal(err)
	}
	if got := restored.Called("alice", image); got != Unnamed {
		t.Errorf("two images are called %q", got)
	}
	if got := restored.Called("alice", "registry.example/lab:1"); got != "registry.example/lab:1" {
		t.Errorf("the operator's image is called %q", got)
	}
	w.forget(image)
	if got := New(w.cfg).Called("alice", image); got != Unnamed {
		t.Errorf("an image that is gone is called %q", got)
	}
}

// Whatever an owner called his images, gave to others and deleted: each is called the same when its backup is restored.
func TestCalledInABackupAsBefore(t *testing.T) {
	w := newWorld(t, nil)
	two := w.create("alice", "ark", "polars").Image
	w.create("alice", "zoo", "polars")
	w.create("bob", "zoo", "polars")
	if err := w.Delete(t.Context(), "alice", "zoo"); err != nil {
		t.Fatal(err)
	}
	before, after := w.create("alice", "ml", "numpy").Image, w.create("alice", "ml", "flask").Image
	restored := w.restored()
	for _, tt := range []struct{ owner, image, want string }{
		{"alice", two, "ark"}, {"bob", two, "zoo"}, {"alice", before, Unnamed}, {"alice", after, "ml"}, {"bob", after, Unnamed},
	} {
		if was, is := w.Called(tt.owner, tt.image), restored.Called(tt.owner, tt.image); was != tt.want || is != tt.want {
			t.Errorf("%s has called %s %q, and calls it %q, want %q", tt.owner, tt.image, was, is, tt.want)
		}
	}
}

// A name that is given to another image is said to have been one's; the server's own names are nobody's.
func TestNamesThatAreTaken(t *testing.T) {
	w := newWorld(t, nil)
	if made := w.create("alice", "ml", "polars"); made.Replaced != nil {
		t.Errorf("%+v", made)
	}
	if made := w.create("alice", "ml", "polars"); made.Replaced != nil {
		t.Errorf("the same again: %+v", made)
	}
	if made := w.create("alice", "ml", "flask"); !reflect.DeepEqual(made.Replaced, []string{"pip:polars"}) {
		t.Errorf("%+v", made)
	}
	for _, name := range []string{"cellblock-full", "cellblock-full:latest"} {
		if err := w.Delete(t.Context(), "alice", name); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What an owner called an image before the server offered one of that name stays his to use and to delete.
func TestDeleteOfANameThatTheServerHasLater(t *testing.T) {
	w := newWorld(t, nil)
	made := w.create("alice", "ml", "polars")
	w.cfg.Bases = append(w.cfg.Bases, Base{Image: "ml:latest", Languages: []string{"python"}})
	w.engine.add("ml:latest", "sha256:ml", 100, "python")
	if got, err := w.Resolve(t.Context(), "alice", "python", "ml"); got != made.Image {
		t.Errorf("ml is %q, %v", got, err)
	}
	if err := w.Delete(t.Context(), "alice", "ml"); err != nil {
		t.Error(fault.Text(err))
	}
	if err := w.Delete(t.Context(), "alice", "ml"); fault.KindOf(err) != fault.Forbidden {
		t.Errorf("the server's own: %v", err)
	}
	if left := w.engine.names(""); len(left) != 3 {
		t.Errorf("the engine has %q", left)
	}
}
