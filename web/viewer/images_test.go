package viewer

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// imageList is a library of which only the list is asked.
type imageList struct {
	mcpserver.ImageLibrary
	owner   string
	entries []derived.Entry
}

func (l imageList) List(_ context.Context, owner string) ([]derived.Entry, error) {
	if owner != l.owner {
		return nil, fault.New(fault.Internal, "asked for %q", owner)
	}
	return l.entries, nil
}

// Who may see images is offered his, for each language that he may run; and none where there are no images. Others can but name one.
func TestImageChoices(t *testing.T) {
	p := newPages(t)
	b, runs := p.signIn("ann", "python:execute", "images:manage"), p.signIn("ann", "python:execute")
	const list, field = "<select data-images>", `<label>Image <input name="image"`
	if page := runs.want(200, "GET", "/", nil); strings.Contains(page, list) || strings.Contains(page, field) {
		t.Error("without images, one is asked for")
	}
	choices := func() (found map[string][]imageChoice) {
		t.Helper()
		if err := json.Unmarshal([]byte(b.want(200, "GET", "/images", nil)), &found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	if got := choices(); len(got) != 0 {
		t.Errorf("without images: %v", got)
	}
	p.viewer.Images = imageList{owner: b.who.owner.Key(), entries: []derived.Entry{
		{Name: "base", Languages: []string{"python", "bash"}}, {Name: "ml", Languages: []string{"python"}, Base: "base", Packages: []string{"pip:polars>=1", "apt:graphviz"}, Size: 3 << 20},
		{Name: "tools", Languages: []string{"bash"}, Base: "base"},
	}}
	want := map[string][]imageChoice{"python": {{"base", "the server's own"}, {"ml", "with pip:polars>=1, apt:graphviz, 3 MiB"}}}
	if got := choices(); !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	runs.want(403, "GET", "/images", nil)
	if page := runs.want(200, "GET", "/", nil); strings.Contains(page, list) || !strings.Contains(page, field) {
		t.Error("who may not see the images cannot name one")
	}
	if page := b.want(200, "GET", "/", nil); !strings.Contains(page, list) || strings.Contains(page, field) {
		t.Error("who may see the images cannot choose one")
	}
	(&browser{pages: p}).want(401, "GET", "/images", nil)
}
