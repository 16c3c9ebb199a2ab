package viewer

import (
	"context"
	"encoding/json"
	"reflect"
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

// A visitor is offered his images, for each language that he may run; and none where there are no images.
func TestImageChoices(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", "python:execute")
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
	(&browser{pages: p}).want(401, "GET", "/images", nil)
}
