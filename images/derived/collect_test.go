package derived

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// last says when an image was last used.
func (w *world) last(image string, at time.Time) {
	w.t.Helper()
	if err := os.Chtimes(w.mark(image), at, at); err != nil {
		w.t.Fatal(err)
	}
}

// idle makes an owner's image of one package that was last used so many minutes ago.
func (w *world) idle(owner, name string, minutes int) string {
	w.t.Helper()
	image := w.create(owner, name, "package-"+name).Image
	w.last(image, time.Now().Add(-time.Duration(minutes)*time.Minute))
	return image
}

func (w *world) collected() {
	w.t.Helper()
	if err := w.Collect(w.t.Context()); err != nil {
		w.t.Fatal(fault.Text(err))
	}
}

// has fails the test unless an owner has these images, and no others but the server's own.
func (w *world) has(owner string, want ...string) {
	w.t.Helper()
	if got := w.list(owner)[2:]; !slices.Equal(got, want) {
		w.t.Errorf("%s has %q, want %q", owner, got, want)
	}
}

func TestCollect(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxAge, c.MaxBytes = 24*time.Hour, 25 })
	made := map[string]string{}
	for i, name := range []string{"old", "used", "a", "b", "c"} {
		made[name] = w.create("alice", name, "package-"+name).Image
		at := time.Now().Add(-time.Duration(10-i) * time.Minute)
		if i < 2 {
			at = at.Add(-48 * time.Hour)
		}
		w.last(made[name], at)
	}
	w.used[made["used"]] = true
	w.collected()
	// Of four times 10 bytes beside the base the two longest unused go.
	if got, want := w.list("alice")[2:], []string{"c", "used"}; !slices.Equal(got, want) {
		t.Errorf("left: %q, want %q", got, want)
	}
	if got := len(w.engine.names(Prefix)); got != 2 {
		t.Errorf("%d derived images are left", got)
	}
	if used := w.lastUsed(made["used"]); time.Since(used) > time.Hour {
		t.Errorf("what a session uses was last used at %v", used)
	}
	for folder, most := range map[string]int{"": 3, NamesFolder: 2} { // the names are beside the marks
		if notes, _ := os.ReadDir(filepath.Join(w.cfg.Folder, folder)); len(notes) != most {
			t.Errorf("notes are left: %v", notes)
		}
	}
}

// Who takes less than his share loses nothing to somebody who wants many, however long it was not used.
func TestSharesOfOwners(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 45 })
	w.idle("bob", "oldest", 100)
	for i, name := range []string{"e", "d", "c", "b", "a"} {
		w.idle("alice", name, 50-i)
	}
	w.collected()
	w.has("bob", "oldest")
	w.has("alice", "a", "b", "c")
}

// What nobody has a name for goes first; what two have goes from the one who has too much, and stays for the other.
func TestSharedAndNobodysGoFirst(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 30 })
	w.idle("alice", "both", 9)
	w.create("bob", "his", "package-both")
	w.last(w.create("bob", "his", "package-both").Image, time.Now().Add(-9*time.Minute))
	for i, name := range []string{"x", "y"} {
		w.idle("alice", name, 5-i)
	}
	for _, name := range []string{"unnamed", "spare"} {
		w.idle("alice", name, 1)
		if err := w.engine.Remove(t.Context(), w.shelf("alice")+name); err != nil {
			t.Fatal(err)
		}
	}
	w.collected()
	w.has("alice", "both", "x", "y")
	w.has("bob", "his")
	w.cfg.MaxBytes = 20
	w.collected()
	w.has("alice", "y")
	w.has("bob", "his")
	if got := len(w.engine.names(Prefix)); got != 2 {
		t.Errorf("%d images are left", got)
	}
}

// An image is used as long as a session would run in it, with a kernel or without.
func TestCollectKeepsWhatSessionsComeBackTo(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxAge, c.MaxBytes = time.Hour, 10 })
	left, gone := w.idle("alice", "left", 120), w.idle("alice", "gone", 30)
	w.idle("alice", "old", 120)
	w.kept[left], w.kept[gone] = time.Now().Add(-20*time.Minute), time.Now().Add(-25*time.Minute)
	w.collected()
	w.has("alice", "left")
}

// What a container uses cannot be removed, keeps its names, and does not count as room that was made.
func TestCollectGoesOnWhereAnImageIsInUse(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 15 })
	running := w.idle("alice", "running", 10)
	w.idle("alice", "idle", 9)
	w.idle("alice", "new", 8)
	i, err := w.engine.Image(t.Context(), running)
	if err != nil {
		t.Fatal(err)
	}
	w.engine.inUse[i.ID] = true
	w.collected()
	w.has("alice", "running")
}

// A collection that cannot go on leaves what it has begun with as it was, and the next one takes it.
func TestCollectThatIsInterrupted(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 5 })
	image := w.idle("alice", "a", 10)
	w.engine.broken = map[string]func() error{image: func() error { return fault.New(fault.Unavailable, "the engine does not answer") }}
	if err := w.Collect(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("got %v", err)
	}
	w.has("alice", "a")
	w.engine.broken = nil
	w.collected()
	w.has("alice")
	if got := w.engine.names(Prefix); len(got) > 0 {
		t.Errorf("left: %q", got)
	}
}

// One that is cancelled half-way gives names back all the same.
func TestCollectThatIsCancelled(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 5 })
	image := w.idle("alice", "a", 10)
	ctx, cancel := context.WithCancel(t.Context())
	w.engine.broken = map[string]func() error{image: func() error { cancel(); return ctx.Err() }}
	if err := w.Collect(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.has("alice", "a")
}

// A name that cannot be given back is not lost without a word.
func TestCollectTellsOfNamesThatAreLost(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxBytes = 5 })
	image := w.idle("alice", "a", 10)
	w.engine.broken = map[string]func() error{image: func() error {
		w.engine.broken = map[string]func() error{w.shelf("alice") + "a": func() error { return fault.New(fault.Unavailable, "the engine does not answer") }}
		return fault.New(fault.Conflict, "%s is in use", image)
	}}
	if err := w.Collect(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "lost its name "+w.shelf("alice")+"a") {
		t.Errorf("got %v", err)
	}
}

// What nobody has a name for goes once no session would run in it, however much room there is: a full disk has no use for it.
func TestCollectOrphans(t *testing.T) {
	w := newWorld(t, nil)
	image := w.idle("alice", "a", 90)
	w.kept[image] = time.Now().Add(-80 * time.Minute)
	left := func(want int) {
		t.Helper()
		w.collected()
		if got := w.engine.names(Prefix); len(got) != want {
			t.Errorf("%q are left, want %d", got, want)
		}
	}
	left(1) // it is wanted, and has a name
	if err := w.Delete(t.Context(), "alice", "a"); err != nil {
		t.Fatal(fault.Text(err))
	}
	left(1) // a session would run in it
	clear(w.kept)
	w.used[image] = true
	left(1) // one runs in it
	clear(w.used)
	left(1) // just now
	w.last(image, time.Now().Add(-orphanAge-time.Minute))
	left(0)
	w.idle("alice", "named", 90)
	left(1)
}
