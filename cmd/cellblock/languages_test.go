package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/docker"
)

// fakeLibrary is an engine with some images, by name.
type fakeLibrary struct {
	images map[string]fakeImage
	looked []string
	// broken is an image that cannot be looked at; it is removed by then, if goes.
	broken string
	goes   bool
}

type fakeImage struct {
	label string
	env   []string
	// files are kernelspecs' contents by path.
	files map[string]string
}

func (l *fakeLibrary) Images(context.Context, string) (all []docker.Image, err error) {
	for name, i := range l.images {
		if i.label != "" {
			all = append(all, docker.Image{Name: name, ID: "id of " + name, Labels: map[string]string{"cellblock.languages": i.label}})
		}
	}
	return all, nil
}

func (l *fakeLibrary) Image(_ context.Context, name string) (docker.Image, error) {
	i, ok := l.images[name]
	if name == l.broken {
		if l.goes {
			delete(l.images, name)
		}
		return docker.Image{}, fault.New(fault.Unavailable, "image not known")
	}
	if !ok {
		return docker.Image{}, fault.New(fault.Unavailable, "no image %s: %w", name, cerrdefs.ErrNotFound).WithHint("Build it: make image.")
	}
	return docker.Image{Name: name, ID: "id of " + name, Env: i.env}, nil
}

func (l *fakeLibrary) ReadImage(_ context.Context, image, name string, folders ...string) (map[string][]byte, error) {
	l.looked = append(l.looked, image)
	files := map[string][]byte{}
	for path, text := range l.images[image].files {
		if filepath.Base(path) == name && slices.Contains(folders, filepath.Dir(filepath.Dir(path))) {
			files[path] = []byte(text)
		}
	}
	return files, nil
}

func specText(language string) string {
	return fmt.Sprintf(`{"argv": ["%s-kernel", "{connection_file}"], "language": %q}`, strings.ToLower(language), language)
}

// found is what a search finds: "language image", or the error.
func (l *fakeLibrary) found(named map[string]string, cache string) (got string, problems []error) {
	f := &imageLanguages{library: l, named: named, known: openKernelspecCache(cache)}
	set, err := f.find(context.Background())
	if err != nil {
		return "error: " + fault.Text(err), f.problems
	}
	f.known.save(slog.New(slog.DiscardHandler))
	var parts []string
	for _, found := range set.All() {
		parts = append(parts, found.Name+" "+found.Image)
	}
	return strings.Join(parts, ", "), f.problems
}

const kernelFolder = "/usr/share/jupyter/kernels/"

// An image that somebody removes while a server starts is no reason not to; one that cannot be looked at is.
func TestLanguagesOfAnImageThatGoes(t *testing.T) {
	for _, goes := range []bool{true, false} {
		l := &fakeLibrary{broken: "cellblock-bash:latest", goes: goes, images: map[string]fakeImage{
			"cellblock-python:latest": {label: "python"}, "cellblock-bash:latest": {label: "bash"},
		}}
		want := "error: image not known"
		if goes {
			want = "python cellblock-python:latest"
		}
		if got, problems := l.found(nil, ""); got != want || len(problems) > 0 {
			t.Errorf("it goes: %v, found %s, %v", goes, got, problems)
		}
	}
}

func TestLanguagesOfImages(t *testing.T) {
	l := &fakeLibrary{images: map[string]fakeImage{
		"cellblock-python:latest": {label: "python"},
		"cellblock-bash:latest":   {label: "bash", files: map[string]string{kernelFolder + "bash/kernel.json": specText("bash")}},
		"cellblock-full:latest": {label: "python,bash,r,cobol", env: []string{"JUPYTER_PATH=/opt/more"}, files: map[string]string{
			kernelFolder + "bash/kernel.json": specText("bash"), "/opt/more/kernels/ir/kernel.json": specText("R"),
			kernelFolder + "python3/kernel.json": specText("python"), kernelFolder + "lua/kernel.json": specText("lua"),
		}},
		"other:1": {label: "go", files: map[string]string{kernelFolder + "gonb/kernel.json": specText("go")}},
		"bare:1":  {},
	}}
	got, problems := l.found(nil, "")
	if want := "bash cellblock-bash:latest, python cellblock-python:latest, r cellblock-full:latest"; got != want {
		t.Errorf("got %s", got)
	}
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), "cobol") {
		t.Errorf("problems: %v", problems)
	}
	if slices.Contains(l.looked, "cellblock-python:latest") {
		t.Error("an image of Python alone was looked into")
	}
	for _, tt := range []struct {
		named map[string]string
		want  string
	}{
		{map[string]string{"go": "other:1", "bash": "cellblock-full:latest", "r": ""}, "bash cellblock-full:latest, go other:1, python cellblock-python:latest, r cellblock-full:latest"},
		{map[string]string{"python": "bare:1"}, "bash cellblock-bash:latest, python bare:1, r cellblock-full:latest"},
		{map[string]string{"lua": "other:1"}, "error: configuration: images.lua: other:1 brings no kernelspec of that language\nHint: It has: go."},
		{map[string]string{"go": "absent:1"}, "error: no image absent:1: not found\nHint: Pull or build it on that engine; or correct images.go"},
		{map[string]string{"go": "cellblock-go:1"}, "error: no image cellblock-go:1: not found\nHint: Build it: make image"},
	} {
		if got, _ := l.found(tt.named, ""); !strings.HasPrefix(got, tt.want) {
			t.Errorf("%v: %s", tt.named, got)
		}
	}
}

func TestNoLanguagesAtAll(t *testing.T) {
	l := &fakeLibrary{}
	if got, _ := l.found(nil, ""); !strings.HasPrefix(got, "error: no image cellblock-python:latest") {
		t.Errorf("got %s", got)
	}
	l.images = map[string]fakeImage{"cellblock-python:latest": {}}
	if got, _ := l.found(nil, ""); !strings.Contains(got, "cellblock.languages") || !strings.Contains(got, "make image") {
		t.Errorf("got %s", got)
	}
}

// An image is looked into once, also by the next process, and is forgotten when it is gone.
func TestKernelspecsAreRemembered(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "kernelspecs.json")
	l := &fakeLibrary{images: map[string]fakeImage{
		"cellblock-bash:latest": {label: "bash", files: map[string]string{kernelFolder + "bash/kernel.json": specText("bash")}},
		"cellblock-r:latest":    {label: "r", files: map[string]string{kernelFolder + "ir/kernel.json": specText("R")}},
	}}
	for range 3 {
		if got, _ := l.found(nil, cache); got != "bash cellblock-bash:latest, r cellblock-r:latest" {
			t.Fatal(got)
		}
	}
	if len(l.looked) != 2 {
		t.Errorf("looked into %v", l.looked)
	}
	delete(l.images, "cellblock-r:latest")
	l.found(nil, cache)
	if data, _ := os.ReadFile(cache); !strings.Contains(string(data), "cellblock-bash") || strings.Contains(string(data), "cellblock-r:") {
		t.Errorf("remembered: %s", data)
	}
	if err := os.WriteFile(cache, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, _ := l.found(nil, cache); got != "bash cellblock-bash:latest" {
		t.Errorf("with a damaged cache: %s", got)
	}
}

func TestLanguagesOfTheHost(t *testing.T) {
	data, path := t.TempDir(), t.TempDir()
	t.Setenv("JUPYTER_DATA_DIR", data)
	t.Setenv("JUPYTER_PATH", path)
	write := func(dir, name, text string) {
		folder := filepath.Join(dir, "kernels", name)
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "kernel.json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(data, "tiny", `{"argv": ["sh", "{resource_dir}/kernel", "{connection_file}"], "language": "tiny"}`)
	write(data, "lua", specText("lua"))
	write(path, "lua2", specText("lua"))
	write(data, "broken", "{")
	h, err := findHostLanguages(t.Context(), &Config{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(h.readPaths(), filepath.Join(data, "kernels", "tiny")) || slices.Contains(h.readPaths(), filepath.Join(data, "kernels", "lua")) {
		t.Errorf("shown: %v", h.readPaths())
	}
	set, err := h.usable(func(k kernels.Kernelspec) error {
		if k.Name == "tiny" {
			return fault.New(fault.Unavailable, "no program")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if l, err := set.Lookup("lua"); err != nil || l.Kernel != "lua2" {
		t.Errorf("lua: %+v, %v", l, err)
	}
	if _, err := set.Lookup("tiny"); err == nil || len(h.problems) != 2 {
		t.Errorf("problems: %v", h.problems)
	}
	if _, err := h.usable(func(kernels.Kernelspec) error { return fault.New(fault.Unavailable, "nothing") }); err == nil || err.Error() != "nothing" {
		t.Errorf("none usable: %v", err)
	}
}
