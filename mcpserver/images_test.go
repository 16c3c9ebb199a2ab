package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/egress"
	"cellblock/images/derived"
	"cellblock/images/packages"
	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/sessions"
)

// fakeLibrary is an ImageLibrary that notes what it is asked, and says what it is told to.
type fakeLibrary struct {
	asked []string
	made  derived.Made
	err   error
	list  []derived.Entry
}

func (l *fakeLibrary) build(log io.Writer, format string, args ...any) (derived.Made, error) {
	l.asked = append(l.asked, fmt.Sprintf(format, args...))
	_, _ = io.WriteString(log, "Collecting polars\n")
	time.Sleep(10 * time.Second) // in a bubble
	return l.made, l.err
}

func (l *fakeLibrary) Create(_ context.Context, owner, name string, languages []string, set packages.Set, log io.Writer) (derived.Made, error) {
	return l.build(log, "create %q %s %s %s", owner, name, languages, set)
}

func (l *fakeLibrary) Extend(_ context.Context, owner, name, image string, set packages.Set, log io.Writer) (derived.Made, error) {
	return l.build(log, "extend %q %s %s %s", owner, name, image, set)
}

func (l *fakeLibrary) List(context.Context, string) ([]derived.Entry, error) { return l.list, l.err }

func (l *fakeLibrary) Delete(_ context.Context, owner, name string) error {
	l.asked = append(l.asked, fmt.Sprintf("delete %q %s", owner, name))
	return l.err
}

// withImages gives a world the toolset images.
func withImages(w *world) *fakeLibrary {
	l := &fakeLibrary{made: derived.Made{Entry: derived.Entry{Name: "ml", Image: "cellblock-derived-1:latest", Base: "cellblock-python:latest", Packages: []string{"pip:polars>=1"}}}}
	w.service.Toolsets, w.service.Images = toolsets, l
	w.server = w.service.server()
	return l
}

func TestCreateImage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := withImages(w)
		got := w.callWith(t.Context(), map[string]any{"name": "create_image", "_meta": map[string]any{"progressToken": "p"},
			"arguments": map[string]any{"name": "ml", "packages": []string{"polars >= 1", "apt:graphviz"}}})
		got.expect(t, false, "Image ml is ready (built in 10 s): cellblock-python:latest with pip:polars>=1", `image: "ml"`, "execute_python")
		if want := fmt.Sprintf(`create %q ml [python] [apt:graphviz pip:polars>=1]`, w.owner.Key()); !slices.Equal(l.asked, []string{want}) {
			t.Errorf("asked %q, want %q", l.asked, want)
		}
		if len(w.notes) < 2 || !strings.Contains(w.notes[0].message, "Collecting polars") || !strings.Contains(w.notes[1].message, "building for 5") {
			t.Errorf("progress: %+v", w.notes)
		}
		l.made.Cached, l.made.Replaced = true, []string{"pip:flask"}
		w.call("create_image", map[string]any{"name": "ml", "packages": []string{"polars"}}).expect(t, false, "The name was another image's, with pip:flask")
		l.asked = l.asked[:1]
		w.call("create_image", map[string]any{"name": "ml", "packages": []string{"d3"}, "languages": []string{"javascript"}}).expect(t, false, "built before")
		if !strings.Contains(l.asked[1], "ml [javascript] [npm:d3]") {
			t.Errorf("asked %q", l.asked)
		}
		l.err = fault.New(fault.Invalid, "pip failed, nothing was installed:\nERROR: No matching distribution found for x").WithHint("check the name")
		w.call("create_image", map[string]any{"name": "ml", "packages": []string{"x"}}).expect(t, true, "No matching distribution", "check the name")
	})
}

// What is wrong with a call is told before anything is built.
func TestImageCallsThatAreWrong(t *testing.T) {
	w := newWorld(t)
	l := withImages(w)
	for _, tt := range []struct {
		tool string
		args map[string]any
		want []string
	}{
		{"create_image", map[string]any{"name": "a"}, []string{"packages: is required"}},
		{"create_image", map[string]any{"packages": []string{"x"}}, []string{"name: is required"}},
		{"create_image", map[string]any{"name": "a", "packages": "x"}, []string{"must be a list of strings, got a string"}},
		{"create_image", map[string]any{"name": "a", "packages": []string{"--index-url=https://evil.example"}}, []string{"is no package of pip", "options cannot be given"}},
		{"create_image", map[string]any{"name": "a", "packages": []string{"x"}, "pip": true}, []string{"no such argument"}},
		{"install_package", map[string]any{"session_id": "absent", "packages": []string{"x"}}, []string{`there is no session "absent"`}},
		{"delete_image", nil, []string{"name: is required"}},
	} {
		w.call(tt.tool, tt.args).expect(t, true, tt.want...)
	}
	if len(l.asked) > 0 {
		t.Errorf("asked %q", l.asked)
	}
}

func TestInstallPackage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		l := withImages(w)
		w.run("s", "print hello").expect(t, false, "hello")
		l.made.Name = "session-s"
		w.call("install_package", map[string]any{"session_id": "s", "packages": []string{"polars"}}).
			expect(t, false, "Image session-s is ready", "Session s still runs without", "move: true")
		if want := fmt.Sprintf("extend %q session-s  [pip:polars]", w.owner.Key()); !slices.Equal(l.asked, []string{want}) {
			t.Errorf("asked %q, want %q", l.asked, want)
		}
		l.made.There = true
		w.call("install_package", map[string]any{"session_id": "s", "packages": []string{"polars"}, "move": true}).
			expect(t, false, "session s has pip:polars>=1 already: nothing was built, and the session is as it was")
		w.run("s", "print still").expect(t, false, "still", "cell 2 · ok")
		l.made.There, l.asked = false, l.asked[:1]
		// The fake provisioner has no images.
		w.call("install_package", map[string]any{"session_id": "s", "packages": []string{"polars"}, "move": true}).
			expect(t, true, "Image session-s is ready", "But session s was not moved", "run in no images")
		w.scopes = []string{"python:execute", ScopeImages}
		w.call("install_package", map[string]any{"session_id": "s", "packages": []string{"polars"}, "move": true}).expect(t, true, ScopeManage)
		if len(l.asked) != 2 {
			t.Errorf("asked %q", l.asked)
		}
	})
}

func TestListAndDeleteImages(t *testing.T) {
	w := newWorld(t)
	l := withImages(w)
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	l.list = []derived.Entry{
		{Name: "cellblock-python:latest", Languages: []string{"python"}, Size: 705_000_000, Created: at},
		{Name: "ml", Image: "cellblock-derived-1:latest", Languages: []string{"python"}, Base: "cellblock-python:latest", Packages: []string{"pip:polars"}, Size: 740_000_000, Created: at, LastUsed: at},
	}
	got := w.call("list_images", nil)
	got.expect(t, false, "cellblock-python:latest · python · the server's own · 705 MB", "ml · python · with pip:polars · 740 MB · used ")
	var list struct{ Images []imageEntry }
	if err := json.Unmarshal(got.structured, &list); err != nil || len(list.Images) != 2 || list.Images[0].Yours || !list.Images[1].Yours || list.Images[1].LastUsed != "2026-01-02T03:04:05Z" {
		t.Errorf("%s, %v", got.structured, err)
	}
	if strings.Contains(string(got.structured), "derived-1") {
		t.Error("a name of the engine's is shown")
	}
	w.call("delete_image", map[string]any{"name": "ml"}).expect(t, false, "Image ml is deleted")
	l.err = fault.New(fault.NotFound, `you have no image "ml"`)
	w.call("delete_image", map[string]any{"name": "ml"}).expect(t, true, "you have no image")
}

// Where kernels run in no images, the tools say what to do, and name a profile to whom may use it in which that can be done: the network
// reaches where packages are, and the session is there when they have been installed.
func TestImagesNeedAnEngine(t *testing.T) {
	w := newWorld(t, func(c *sessions.Config) {
		c.Profiles["a-few-hosts"] = sessions.Profile{Network: egress.Policy{Mode: egress.Hosts, Hosts: []string{"a.example"}}}
		c.Profiles["a-moment"] = sessions.Profile{Network: egress.Policy{Mode: egress.Internet}, Once: true}
	})
	w.service.Toolsets = toolsets
	w.server = w.service.server()
	for tool, args := range map[string]map[string]any{
		"create_image": {"name": "a", "packages": []string{"x"}}, "list_images": nil, "delete_image": {"name": "a"},
		"install_package": {"session_id": "s", "packages": []string{"x"}},
	} {
		w.scopes = []string{ScopeImages, ScopeManage, ProfileScope("a-few-hosts"), ProfileScope("a-moment")}
		w.call(tool, args).expect(t, true, "in no images", "use what is there", "container engine")
		w.scopes = append(w.scopes, ProfileScope("development"))
		w.call(tool, args).expect(t, true, "in no images", `profile: "development"`, "%pip install NAME", "npm install NAME", "container engine")
	}
}

// Sessions with long ids have images of their own all the same.
func TestImageOfSession(t *testing.T) {
	if got := imageOfSession("abc"); got != "session-abc" {
		t.Error(got)
	}
	for length := 1; length <= sessionid.Max; length++ {
		same := strings.Repeat("x", length-1)
		a, b := imageOfSession(same+"a"), imageOfSession(same+"b")
		if a == b || derived.CheckName(a) != nil || !strings.HasPrefix(a, "session-x") && length > 1 {
			t.Errorf("%d characters: %q and %q", length, a, b)
		}
	}
}

// Whoever misses a package, and can have one, is told how.
func TestMissingPackageIsToldOfImages(t *testing.T) {
	for _, here := range []bool{false, true} {
		w := newWorld(t)
		w.service.Toolsets = toolsets
		if here {
			withImages(w)
		}
		said := w.service.bounds(sessions.Choice{Profile: sessions.DefaultProfile}).network.missing("polars", "%pip install polars", "there")
		if strings.Contains(said, "install_package gets") != here {
			t.Errorf("images %v: %s", here, said)
		}
	}
}
