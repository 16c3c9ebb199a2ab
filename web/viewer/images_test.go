package viewer

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
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

// imaged is a provisioner that runs kernels in images.
type imaged struct{ kernels.Provisioner }

func (p imaged) Capabilities() kernels.Capabilities {
	c := p.Provisioner.Capabilities()
	c.Images = true
	return c
}

// The list, which is told anew as it changes, calls a session's image as its owner does, whether the session runs or not.
func TestImagesAreCalledByTheirOwnersNames(t *testing.T) {
	p := newPages(t, func(c *sessions.Config) {
		c.Provisioner, c.Store = imaged{c.Provisioner}, storetest.NewMemory()
		c.Image = func(context.Context, sessions.Owner, string, string) (string, error) { return "made-0123:latest", nil }
		c.ImageName = func(sessions.Owner, string) string { return "ml" }
	})
	b := p.signIn("ann", all...)
	e, err := p.sessions.Execute(t.Context(), b.who.owner, sessions.Request{SessionID: "s", Language: "python", Image: "ml", Code: "print a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	check := func(when string) {
		t.Helper()
		for _, path := range []string{"/", "/s/s/details"} {
			if page := b.want(200, "GET", path, nil); strings.Contains(page, "made-0123") || !strings.Contains(page, ">ml<") {
				t.Errorf("%s, %s does not call the image ml", when, path)
			}
		}
		if rows, err := p.viewer.rows(t.Context(), b.who); err != nil || len(rows) != 1 || rows[0].Image != "ml" {
			t.Errorf("%s: %+v, %v", when, rows, err)
		}
	}
	check("while it runs")
	if err := p.sessions.Close(t.Context(), b.who.owner, "s", sessions.CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	check("when it has ended")
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
