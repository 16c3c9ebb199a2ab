package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/kernels/docker"
)

// imageLibrary is an engine with its images.
type imageLibrary interface {
	Images(ctx context.Context, label string) ([]docker.Image, error)
	Image(ctx context.Context, name string) (docker.Image, error)
	ReadImage(ctx context.Context, image, name string, folders ...string) (map[string][]byte, error)
}

// imageLanguages finds out which languages there are in an engine's images.
type imageLanguages struct {
	library imageLibrary
	// named are the images that the configuration names, by language.
	named map[string]string
	known *kernelspecCache
	// offered is what find has found in the images that are used without being named.
	offered []images.Offer
	// problems are what was found and cannot be used.
	problems []error
}

// pythonImage is the image that a fresh installation is told to make.
const pythonImage = "cellblock-python:latest"

// ownImages is how the names of images begin that `make image` makes.
const ownImages = "cellblock-"

// find returns the languages. The error says which image is missing: one that the configuration names, or any at all.
func (f *imageLanguages) find(ctx context.Context) (*images.Set, error) {
	var found []images.Language
	for _, key := range slices.Sorted(maps.Keys(f.named)) {
		if f.named[key] == "" {
			continue
		}
		l, err := f.inNamed(ctx, key, f.named[key])
		if err != nil {
			return nil, err
		}
		found = append(found, l)
	}
	offers, err := f.offers(ctx)
	if err != nil {
		return nil, err
	}
	f.offered = offers
	found = append(found, images.Choose(offers)...)
	if len(found) == 0 {
		if _, err := f.library.Image(ctx, pythonImage); err != nil {
			return nil, err
		}
		return nil, fault.New(fault.Unavailable, "no image of the engine brings a language: none has the label %s", images.Label).
			WithHint("Build one: make image (scripts/image.sh).")
	}
	return images.NewSet(found...), nil
}

// inNamed is a language in the image that the configuration names for it.
func (f *imageLanguages) inNamed(ctx context.Context, key, image string) (images.Language, error) {
	name := images.Name(key)
	i, err := f.library.Image(ctx, image)
	if cerrdefs.IsNotFound(err) && !strings.HasPrefix(image, ownImages) { // the Makefile makes no other's
		err = fault.New(fault.Unavailable, "%w", err).WithHint("Pull or build it on that engine; or correct images.%s in the configuration.", key)
	}
	if err != nil {
		return images.Language{}, err
	}
	inside, err := f.look(ctx, i)
	if err != nil {
		return images.Language{}, err
	}
	set := images.NewSet(inside...)
	l, err := set.Lookup(name)
	switch {
	case err == nil:
	case name == "python": // any image with ipykernel will do
		l = images.Python(images.PythonInterpreter)
	default:
		return l, fault.New(fault.Invalid, "configuration: images.%s: %s brings no kernelspec of that language", key, image).
			WithHint("It has: %s. A kernelspec belongs in /usr/share/jupyter/kernels; see docs/adding-a-language.md.", orNothing(set.Names()))
	}
	l.Image = image
	return l, nil
}

func orNothing(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// offers is what the images bring that are used without being named.
func (f *imageLanguages) offers(ctx context.Context) ([]images.Offer, error) {
	labelled, err := f.library.Images(ctx, images.Label)
	if err != nil {
		return nil, err
	}
	var offers []images.Offer
	for _, i := range labelled {
		if !images.Usable(i.Name) || isDerived(i) {
			continue
		}
		o, err := f.offer(ctx, i)
		switch {
		case err == nil:
			offers = append(offers, o)
		case !f.gone(ctx, i.Name):
			return nil, err
		}
	}
	return offers, nil
}

// gone tells whether an image is not in the list any more. Engines have words of their own for one that is removed while they look at it.
func (f *imageLanguages) gone(ctx context.Context, name string) bool {
	left, err := f.library.Images(ctx, images.Label)
	return err == nil && !slices.ContainsFunc(left, func(i docker.Image) bool { return i.Name == name })
}

// offer is what one image brings of what it says that it does.
func (f *imageLanguages) offer(ctx context.Context, i docker.Image) (images.Offer, error) {
	o := images.Offer{Image: i.Name}
	said := images.Labelled(i.Labels[images.Label])
	if len(said) == 1 && said[0] == "python" { // which needs no kernelspec: nothing is looked into at every start
		o.Languages = []images.Language{images.Python(images.PythonInterpreter)}
		return o, nil
	}
	full, err := f.library.Image(ctx, i.Name)
	if err != nil {
		return o, err
	}
	inside, err := f.look(ctx, full)
	if err != nil {
		return o, err
	}
	set := images.NewSet(inside...)
	for _, name := range said {
		l, err := set.Lookup(name)
		if err != nil {
			f.problems = append(f.problems, fault.New(fault.Invalid, "image %s is labelled with %s, and brings no kernelspec of it", i.Name, name))
			continue
		}
		o.Languages = append(o.Languages, l)
	}
	return o, nil
}

// look reads an image's kernelspecs.
func (f *imageLanguages) look(ctx context.Context, i docker.Image) ([]images.Language, error) {
	folders := images.KernelspecFolders(variable(i.Env, "JUPYTER_PATH"))
	files, ok := f.known.get(i.ID)
	if !ok {
		var err error
		if files, err = f.library.ReadImage(ctx, i.Name, images.KernelspecFile, folders...); err != nil {
			return nil, err
		}
		f.known.put(i.ID, files)
	}
	found, problems := images.ReadKernelspecs(files, folders)
	for _, err := range problems {
		f.problems = append(f.problems, fault.New(fault.Invalid, "image %s: %w", i.Name, err))
	}
	return found, nil
}

// variable is the value of a variable in an environment, "" if it is not set.
func variable(environ []string, name string) string {
	for _, entry := range environ {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// kernelspecCache remembers the kernelspecs of images, by the images' ids, from one start to the next: an id stands for
// what an image holds. It forgets those that were not asked for. A cache that cannot be read or written is an empty one.
type kernelspecCache struct {
	path          string // empty: nothing is remembered
	before, after map[string]map[string][]byte
	changed       bool
}

func openKernelspecCache(path string) *kernelspecCache {
	c := &kernelspecCache{path: path, after: map[string]map[string][]byte{}}
	if data, err := os.ReadFile(path); err == nil {
		_ = json.Unmarshal(data, &c.before)
	}
	return c
}

func (c *kernelspecCache) get(id string) (files map[string][]byte, ok bool) {
	if files, ok = c.after[id]; ok {
		return files, true
	}
	if files, ok = c.before[id]; ok {
		c.after[id] = files
	}
	return files, ok
}

func (c *kernelspecCache) put(id string, files map[string][]byte) {
	c.after[id], c.changed = files, true
}

// save writes what was asked for, if it is not what was there before.
func (c *kernelspecCache) save(logger *slog.Logger) {
	if c.path == "" || !c.changed && len(c.after) == len(c.before) {
		return
	}
	data, err := json.Marshal(c.after)
	if err == nil {
		err = replaceFile(c.path, data)
	}
	if err != nil {
		logger.Debug("the kernelspecs of images are not remembered", "error", err)
	}
}

// replaceFile writes a file whole or not at all.
func replaceFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
