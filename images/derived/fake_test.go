package derived

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/images/packages"
	"cellblock/internal/fault"
)

// fakeEngine has images in memory. building, if it is set, decides what becomes of a build.
type fakeEngine struct {
	mu       sync.Mutex
	images   map[string]Image // by name
	inUse    map[string]bool  // by id
	builds   []Build
	building func(ctx context.Context, b Build, log io.Writer) error
	broken   map[string]func() error // by name: what its removal, or its being given, fails with
	bring    []string                // what packages all images bring; nothing else is there
}

func newFake() *fakeEngine {
	e := &fakeEngine{images: map[string]Image{}, inUse: map[string]bool{}}
	e.add("cellblock-python:latest", "sha256:python", 100, "python")
	e.add("cellblock-full:latest", "sha256:full", 200, "python,javascript")
	return e
}

func (e *fakeEngine) add(name, id string, size int64, languages string) {
	e.images[name] = Image{Name: name, ID: id, Size: size, Labels: map[string]string{images.Label: languages}, Created: time.Now()}
}

func (e *fakeEngine) Image(_ context.Context, name string) (Image, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	i, ok := e.images[name]
	if !ok {
		return i, fault.New(fault.Unavailable, "%s: %w", name, ErrAbsent)
	}
	return i, nil
}

func (e *fakeEngine) Images(_ context.Context, label string) (list []Image, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	key, value, valued := strings.Cut(label, "=")
	for _, name := range slices.Sorted(maps.Keys(e.images)) {
		i := e.images[name]
		if has, ok := i.Labels[key]; ok && (!valued || has == value) {
			list = append(list, i)
		}
	}
	return list, nil
}

func (e *fakeEngine) Build(ctx context.Context, b Build, log io.Writer) error {
	e.mu.Lock()
	if b.Name == "" {
		defer e.mu.Unlock()
		return e.look(b)
	}
	e.builds = append(e.builds, b)
	n := len(e.builds)
	building := e.building
	e.mu.Unlock()
	if building != nil {
		if err := building(ctx, b, log); err != nil {
			return err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	base := e.images[b.Base]
	labels := maps.Clone(base.Labels)
	maps.Copy(labels, b.Labels)
	e.images[b.Name] = Image{Name: b.Name, ID: fmt.Sprintf("sha256:derived%d", n), Size: base.Size + 10, Labels: labels, Created: time.Now()}
	return nil
}

// look succeeds where all that the steps are about is there. The programs that are run are the base's, and nothing is made.
func (e *fakeEngine) look(b Build) error {
	if _, ok := e.images[b.Base]; !ok || b.Network != "none" {
		return errors.New("wrong")
	}
	for _, s := range b.Steps {
		names := s.Argv[slices.Index(s.Argv, "--")+1:]
		if slices.ContainsFunc(names, func(name string) bool { return !slices.Contains(e.bring, name) }) {
			return &StepError{Step: s, ExitCode: 1}
		}
	}
	return nil
}

func (e *fakeEngine) Tag(ctx context.Context, name, other string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.fail(ctx, other); err != nil {
		return err
	}
	i, ok := e.images[name]
	if !ok {
		return fault.New(fault.Unavailable, "no image %s", name)
	}
	i.Name = other
	e.images[other] = i
	return nil
}

func (e *fakeEngine) Remove(ctx context.Context, name string) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.fail(ctx, name); err != nil {
		return err
	}
	i := e.images[name]
	others := 0
	for _, o := range e.images {
		if o.ID == i.ID && o.Name != name {
			others++
		}
	}
	if others == 0 && e.inUse[i.ID] {
		return fault.New(fault.Conflict, "%s is in use", name)
	}
	delete(e.images, name)
	return nil
}

// fail is what comes of a request that is given up, or that is about a name with which something is wrong.
func (e *fakeEngine) fail(ctx context.Context, name string) error {
	if broken := e.broken[name]; broken != nil {
		return broken()
	}
	return ctx.Err()
}

func (e *fakeEngine) names(prefix string) (names []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for name := range e.images {
		if strings.HasPrefix(name, prefix) {
			names = append(names, name)
		}
	}
	return names
}

// world is a library on a fake engine.
type world struct {
	*Library
	t      *testing.T
	engine *fakeEngine
	used   map[string]bool
	kept   map[string]time.Time
}

func newWorld(t *testing.T, change func(*Config)) *world {
	w := &world{t: t, engine: newFake(), used: map[string]bool{}, kept: map[string]time.Time{}}
	cfg := Config{
		Engine: w.engine, Installation: "i", Folder: t.TempDir() + "/images",
		Bases: []Base{{Image: "cellblock-python:latest", Languages: []string{"python"}, Python: "/usr/bin/python3"},
			{Image: "cellblock-full:latest", Languages: []string{"python", "javascript"}, Python: "/usr/bin/python3"}},
		InUse: func(context.Context) (map[string]bool, error) { return w.used, nil },
		Kept:  func(context.Context) (map[string]time.Time, error) { return w.kept, nil },
	}
	if change != nil {
		change(&cfg)
	}
	w.Library = New(cfg)
	return w
}

func set(texts ...string) packages.Set {
	s, err := packages.Parse(texts, packages.Pip)
	if err != nil {
		panic(err)
	}
	return s
}

func (w *world) create(owner, name string, texts ...string) Made {
	w.t.Helper()
	made, err := w.Create(w.t.Context(), owner, name, []string{"python"}, set(texts...), io.Discard)
	if err != nil {
		w.t.Fatal(fault.Text(err))
	}
	return made
}

func (w *world) list(owner string) (names []string) {
	w.t.Helper()
	entries, err := w.List(w.t.Context(), owner)
	if err != nil {
		w.t.Fatal(fault.Text(err))
	}
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

// fails is a build in which a step prints something and ends with an exit code.
func fails(step int, code int, said string) func(context.Context, Build, io.Writer) error {
	return func(_ context.Context, b Build, log io.Writer) error {
		_, err := io.WriteString(log, said)
		return errors.Join(err, &StepError{Step: b.Steps[step], ExitCode: code})
	}
}
