package derived

import (
	"reflect"
	"testing"

	"cellblock/internal/fault"
)

// An owner is told of an image by the name that he gave it last, and only he.
func TestCalled(t *testing.T) {
	w := newWorld(t, nil)
	image := w.create("alice", "zoo", "polars").Image
	called := func(owner, want string) {
		t.Helper()
		if got := w.Called(owner, image); got != want {
			t.Errorf("%s calls it %q, want %q", owner, got, want)
		}
	}
	called("alice", "zoo")
	called("bob", image[:len(image)-len(":latest")])
	w.create("bob", "his", "polars")
	w.create("alice", "ark", "polars")
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
	called("alice", image[:len(image)-len(":latest")])
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
