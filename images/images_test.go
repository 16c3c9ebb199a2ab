package images

import (
	"slices"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestLookup(t *testing.T) {
	c, err := New(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"python", "Python"} {
		if l, err := c.Lookup(name); err != nil || l.Name != "python" || l.Image != "cellblock-python:latest" {
			t.Errorf("Lookup(%q) = %+v, %v", name, l, err)
		}
	}
}

func TestLookupUnknownListsKnown(t *testing.T) {
	c, _ := New(nil)
	_, err := c.Lookup("cobol")
	if fault.KindOf(err) != fault.NotFound || !strings.Contains(fault.Text(err), "cobol") || !strings.Contains(fault.Hint(err), "python") {
		t.Fatalf("got %s", fault.Text(err))
	}
}

func TestImagesOverride(t *testing.T) {
	c, err := New(map[string]string{"python": "example.org/ours:3"})
	if err != nil {
		t.Fatal(err)
	}
	if l, _ := c.Lookup("python"); l.Image != "example.org/ours:3" {
		t.Errorf("image %q", l.Image)
	}
	if other, _ := New(nil); other.All()[0].Image != python.Image {
		t.Error("one catalogue's override shows in another")
	}
	if _, err := New(map[string]string{"pyhton": "x"}); fault.KindOf(err) != fault.NotFound {
		t.Errorf("misspelt language: %v", err)
	}
}

// Every language must be launchable: callers build kernelspecs from it without looking.
func TestCatalogueIsComplete(t *testing.T) {
	c, _ := New(nil)
	for _, l := range c.All() {
		if l.Name != strings.ToLower(l.Name) || l.DisplayName == "" || l.Kernel == "" || l.Image == "" {
			t.Errorf("%q: names or image missing: %+v", l.Name, l)
		}
		if !slices.Contains(l.Argv, "{connection_file}") {
			t.Errorf("%q: argv has no {connection_file}", l.Name)
		}
		if !slices.Contains([]string{"signal", "message"}, l.InterruptMode) || !slices.Contains([]string{"ipc", "tcp"}, l.Transport) {
			t.Errorf("%q: interrupt mode %q, transport %q", l.Name, l.InterruptMode, l.Transport)
		}
	}
}

func TestCallersCannotChangeTheCatalogue(t *testing.T) {
	c, _ := New(nil)
	l, _ := c.Lookup("python")
	l.Argv[0] = "/bin/false"
	if again, _ := c.Lookup("python"); again.Argv[0] == "/bin/false" {
		t.Fatal("changed from outside")
	}
}
