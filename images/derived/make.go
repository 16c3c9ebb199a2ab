package derived

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"cellblock/images"
	"cellblock/images/packages"
	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// Made is an image that was asked for.
type Made struct {
	Entry
	// Cached tells that it was there already.
	Cached bool
	// There tells that the image which was to get packages has them all: none was made, and only Packages is set, to those.
	There bool
	// Replaced are the packages of another image of the owner that had the name before.
	Replaced []string
}

// Create makes an image of the server's own that brings the languages, with packages, and gives it an owner's name, also
// if another image of his had it. What its build prints goes to log. One that was made of the same before is only named. The error is
// Invalid for a name of the server's own.
func (l *Library) Create(ctx context.Context, owner, name string, languages []string, set packages.Set, log io.Writer) (Made, error) {
	if err := CheckName(name); err != nil {
		return Made{}, err
	}
	if b, own := l.base(withTag(name)); own {
		return Made{}, fault.New(fault.Invalid, "name: %s is the server's own", b.Image).WithHint("choose another name")
	}
	base, err := l.baseFor(languages)
	if err != nil {
		return Made{}, err
	}
	before, err := l.find(ctx, owner, name)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return Made{}, err
	}
	made, err := l.make(ctx, owner, name, base, set, log)
	if err == nil && before.Image != made.Image {
		made.Replaced = before.Packages
	}
	return made, err
}

// Extend makes an image that has further packages than another, which an owner's session of a language runs in, and gives it
// a name of his. Where it has them all none is made.
func (l *Library) Extend(ctx context.Context, owner, name, image string, set packages.Set, log io.Writer) (Made, error) {
	if err := CheckName(name); err != nil {
		return Made{}, err
	}
	if base, ok := l.base(image); ok {
		if l.has(ctx, image, base, nil, set) {
			return there(set), nil
		}
		return l.make(ctx, owner, name, base, set, log)
	}
	i, err := l.cfg.Engine.Image(ctx, image)
	if err != nil {
		return Made{}, err
	}
	base, ok := l.base(i.Labels[labelBase])
	if !ok {
		return Made{}, fault.New(fault.Invalid, "packages cannot be installed into the image %s", image).
			WithHint("use a session in one of the server's own images or of yours; list_images names them")
	}
	had, err := packages.Parse(strings.FieldsFunc(i.Labels[labelPackages], func(r rune) bool { return r == ';' }), packages.Apt)
	if err == nil && l.has(ctx, image, base, had, set) {
		return there(set), nil
	}
	if err == nil {
		set, err = had.With(set)
	}
	if err != nil {
		return Made{}, err
	}
	return l.make(ctx, owner, name, base, set, log)
}

func there(set packages.Set) Made { return Made{There: true, Entry: Entry{Packages: set.Strings()}} }

// baseFor returns the first of the server's images that brings all of the languages.
func (l *Library) baseFor(languages []string) (Base, error) {
	brings := func(b Base) bool {
		return !slices.ContainsFunc(languages, func(wanted string) bool { return !slices.Contains(b.Languages, images.Name(wanted)) })
	}
	if i := slices.IndexFunc(l.cfg.Bases, brings); i >= 0 && len(languages) > 0 {
		return l.cfg.Bases[i], nil
	}
	var there []string
	for _, b := range l.cfg.Bases {
		there = append(there, b.Image+" ("+strings.Join(b.Languages, ", ")+")")
	}
	return Base{}, fault.New(fault.Invalid, "languages: no image of the server brings %s", strings.Join(languages, " and ")).
		WithHint("there are %s", strings.Join(there, "; "))
}

func (l *Library) base(image string) (Base, bool) {
	i := slices.IndexFunc(l.cfg.Bases, func(b Base) bool { return b.Image == image })
	if i < 0 {
		return Base{}, false
	}
	return l.cfg.Bases[i], true
}

// make returns the image of a base and packages, under an owner's name.
func (l *Library) make(ctx context.Context, owner, name string, base Base, set packages.Set, log io.Writer) (Made, error) {
	if len(set) == 0 {
		return Made{}, fault.New(fault.Invalid, "packages: none are named").WithHint(`name some, such as ["polars", "apt:graphviz"]`)
	}
	from, err := l.cfg.Engine.Image(ctx, base.Image)
	if err != nil {
		return Made{}, err
	}
	image := l.nameOf(from, set)
	cached, err := l.ensure(ctx, image, base, set, log)
	if err != nil {
		return Made{}, err
	}
	l.Used(image)
	if err := l.cfg.Engine.Tag(ctx, image, l.shelf(owner)+name); err != nil {
		return Made{}, err
	}
	l.noteName(owner, image, name)
	e, err := l.find(ctx, owner, name)
	return Made{Entry: e, Cached: cached}, err
}

// ensure builds an image that is not there. Several callers who want the same wait for the first; when he fails or gives up, the
// next one tries.
func (l *Library) ensure(ctx context.Context, image string, base Base, set packages.Set, log io.Writer) (cached bool, err error) {
	for {
		_, err := l.cfg.Engine.Image(ctx, image)
		if err == nil || fault.KindOf(err) != fault.Unavailable || !isAbsent(err) {
			return err == nil, err
		}
		others, mine := l.claim(image)
		if mine != nil {
			defer mine()
			return false, l.build(ctx, image, base, set, log)
		}
		_, _ = io.WriteString(log, "somebody else is making the same image: waiting for it\n")
		select {
		case <-others:
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// ErrAbsent is in the error of Engine.Image when the engine answers, and has no such image.
var ErrAbsent = errors.New("no such image")

func isAbsent(err error) bool { return errors.Is(err, ErrAbsent) }

// claim makes the caller the one who builds an image, until he calls mine; else others closes when whoever does has ended.
func (l *Library) claim(image string) (others <-chan struct{}, mine func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if others := l.building[image]; others != nil {
		return others, nil
	}
	done := make(chan struct{})
	l.building[image] = done
	return nil, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.building, image)
		close(done)
	}
}

// build makes an image, in its turn and its time.
func (l *Library) build(ctx context.Context, image string, base Base, set packages.Set, log io.Writer) error {
	done, err := l.turn(ctx, log)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, l.cfg.Limit, fault.New(fault.Timeout, "the image was not made within %s", words.Length(l.cfg.Limit)).
		WithHint("install fewer packages at once; only the operator can allow more time (images_build.limit)"))
	defer cancel()
	b, err := l.recipe(base, set)
	if err != nil {
		return err
	}
	b.Name = image
	last := &lastLines{}
	err = l.cfg.Engine.Build(ctx, b, io.MultiWriter(last, log))
	if err == nil {
		return nil
	}
	if cause, ok := errors.AsType[*fault.Error](context.Cause(ctx)); ok && ctx.Err() != nil {
		return cause
	}
	return explain(err, last, base)
}

// turn waits until a build may begin.
func (l *Library) turn(ctx context.Context, log io.Writer) (done func(), err error) {
	done = func() { <-l.turns }
	select {
	case l.turns <- struct{}{}:
		return done, nil
	default:
	}
	if !l.wait(1) {
		return nil, fault.New(fault.Busy, "%d images are being made and %d wait, the most that may", l.cfg.MaxBuilds, l.cfg.MaxWaiting).
			WithHint("try again in a few minutes")
	}
	defer l.wait(-1)
	_, _ = io.WriteString(log, "other images are being made: waiting for a turn\n")
	select {
	case l.turns <- struct{}{}:
		return done, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// wait counts who waits, and tells whether that many may.
func (l *Library) wait(more int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting+more > l.cfg.MaxWaiting {
		return false
	}
	l.waiting += more
	return true
}
