package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/images"
	"cellblock/images/derived"
	"cellblock/internal/fault"
	"cellblock/kernels/docker"
	"cellblock/sessions"
)

// engineImages is a container engine as package derived wants it.
type engineImages struct {
	*docker.Provisioner
	logger *slog.Logger
}

// told is an error of the engine for those who own images, who need not know where it is. The log has it whole, unless it says only that
// there is no such image.
func (e engineImages) told(err error) error {
	if fault.KindOf(err) != fault.Unavailable {
		return err
	}
	if !cerrdefs.IsNotFound(err) {
		e.logger.Warn("the container engine failed at an image", "error", err)
	}
	return fault.WithoutPlaces(err)
}

// Image implements derived.Engine.
func (e engineImages) Image(ctx context.Context, name string) (derived.Image, error) {
	i, err := e.Provisioner.Image(ctx, name)
	err = e.told(err)
	if cerrdefs.IsNotFound(err) {
		err = errors.Join(err, derived.ErrAbsent)
	}
	return imageOf(i), err
}

// Images implements derived.Engine.
func (e engineImages) Images(ctx context.Context, label string) ([]derived.Image, error) {
	list, err := e.Provisioner.Images(ctx, label)
	all := make([]derived.Image, 0, len(list))
	for _, i := range list {
		all = append(all, imageOf(i))
	}
	return all, e.told(err)
}

func imageOf(i docker.Image) derived.Image {
	return derived.Image{Name: i.Name, ID: i.ID, Labels: i.Labels, Size: i.Size, Created: i.Created}
}

// Build implements derived.Engine.
func (e engineImages) Build(ctx context.Context, b derived.Build, log io.Writer) error {
	build := docker.Build{Name: b.Name, Base: b.Base, Labels: b.Labels, Env: b.Env, Files: b.Files, Network: b.Network, Memory: b.Memory, Size: b.Size, Reserve: b.Reserve, Limit: b.Limit}
	for _, s := range b.Steps {
		build.Steps = append(build.Steps, docker.Step{Argv: s.Argv, Env: s.Env})
	}
	_, err := e.BuildImage(ctx, build, log)
	if failed, ok := errors.AsType[*docker.StepError](err); ok {
		i := slices.IndexFunc(build.Steps, func(s docker.Step) bool { return slices.Equal(s.Argv, failed.Step.Argv) })
		if i >= 0 {
			return &derived.StepError{Step: b.Steps[i], ExitCode: failed.ExitCode}
		}
	}
	return e.told(err)
}

// Tag implements derived.Engine.
func (e engineImages) Tag(ctx context.Context, name, other string) error {
	return e.told(e.TagImage(ctx, name, other))
}

// Remove implements derived.Engine.
func (e engineImages) Remove(ctx context.Context, name string) error {
	return e.told(e.RemoveImage(ctx, name))
}

// basesOf are the images that others can be made of: those that languages run in by themselves first, and of several those that
// bring the fewest languages.
func basesOf(set *images.Set, offers []images.Offer) []derived.Base {
	var bases []derived.Base
	add := func(image string, languages ...images.Language) {
		i := slices.IndexFunc(bases, func(b derived.Base) bool { return b.Image == image })
		if i < 0 {
			bases, i = append(bases, derived.Base{Image: image}), len(bases)
		}
		for _, l := range languages {
			if !slices.Contains(bases[i].Languages, l.Name) {
				bases[i].Languages = append(bases[i].Languages, l.Name)
			}
			if l.Name == "python" {
				bases[i].Python = l.Argv[0]
			}
		}
	}
	for _, l := range set.All() {
		add(l.Image, l)
	}
	own := len(bases)
	for _, o := range offers {
		add(o.Image, o.Languages...)
	}
	fewest := func(a, b derived.Base) int { return len(a.Languages) - len(b.Languages) }
	slices.SortStableFunc(bases[:own], fewest)
	slices.SortStableFunc(bases[own:], fewest)
	return bases
}

// collectPause is how often images are looked for that nobody uses.
const collectPause = time.Hour

// openLibrary returns the images with further packages; nil where kernels run in none.
func (a *app) openLibrary(cfg *Config) (*derived.Library, error) {
	if a.backend.images == nil {
		return nil, nil
	}
	sources, err := cfg.ImagesBuild.sources()
	if err != nil {
		return nil, err
	}
	installation, err := installationID(cfg.DataDir)
	if err != nil {
		return nil, err
	}
	b := cfg.ImagesBuild
	return derived.New(derived.Config{
		Engine: engineImages{a.backend.images, a.logger}, Installation: installation, Bases: a.backend.bases, Folder: filepath.Join(cfg.DataDir, "images"),
		Allowed: cfg.ImagesAllowed, Sources: sources, MaxBuilds: b.Max, Limit: b.Limit, Memory: int64(b.Memory), Size: int64(b.MaxBytes), Reserve: int64(b.MinFree),
		MaxAge: b.KeepAge, MaxBytes: int64(b.KeepBytes), Logger: a.logger,
		InUse: func(ctx context.Context) (map[string]bool, error) { return a.sessions.ImagesInUse(ctx) },
		Kept:  func(ctx context.Context) (map[string]time.Time, error) { return a.sessions.ImagesKept(ctx) },
	}), nil
}

// resolveImage is what sessions.Config.Image is; nil where kernels run in no images.
func (a *app) resolveImage() func(ctx context.Context, o sessions.Owner, language, name string) (string, error) {
	if a.library == nil {
		return nil
	}
	return func(ctx context.Context, o sessions.Owner, language, name string) (string, error) {
		return a.library.Resolve(ctx, o.Key(), language, name)
	}
}

// imageName is what sessions.Config.ImageName is; nil where kernels run in no images.
func (a *app) imageName() func(o sessions.Owner, image string) string {
	if a.library == nil {
		return nil
	}
	return func(o sessions.Owner, image string) string { return a.library.Called(o.Key(), image) }
}

// isDerived tells whether an image is one that was made of another: it is nobody's language's own.
func isDerived(i docker.Image) bool {
	return i.Labels[derived.Label] != "" || strings.HasPrefix(i.Name, derived.Prefix)
}
