// Package derived makes images with further packages out of those that the server has, and keeps them.
//
// A derived image stands for its base and its packages: its name is a hash of both, so that what one caller has asked for is there
// at once for the next. What owners call their images are further names of them, one set for each owner; the engine keeps all of
// them, and so every process on the data folder finds the same. Images that no session uses any more are collected.
package derived

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/images/packages"
	"cellblock/internal/fault"
)

// Labels of derived images, beside those that they have of their base.
const (
	// Label has the installation that made it.
	Label = "cellblock.derived"
	// labelBase names the image that it was made of, labelPackages lists what it has more, with ";" between them.
	labelBase     = "cellblock.derived.base"
	labelPackages = "cellblock.derived.packages"
)

// Prefix begins the names of derived images, ownedPrefix the names that owners gave them.
const (
	Prefix      = "cellblock-derived-"
	ownedPrefix = "cellblock-owned-"
)

// Engine has the images.
type Engine interface {
	// Image returns an image by its name. The error is Unavailable when there is none.
	Image(ctx context.Context, name string) (Image, error)
	// Images returns all images with a label, one for each of their names.
	Images(ctx context.Context, label string) ([]Image, error)
	// Build makes an image; what its steps print goes to log. The error is a *StepError when one of them fails. Nothing is left of
	// a build that did not succeed.
	Build(ctx context.Context, b Build, log io.Writer) error
	// Tag gives an image another name, and Remove takes one away: with the last one the image. Its error is Conflict while a
	// container uses that.
	Tag(ctx context.Context, name, other string) error
	Remove(ctx context.Context, name string) error
}

// Image is one image of the engine under one of its names.
type Image struct {
	Name, ID string
	Labels   map[string]string
	Size     int64 // in bytes, with all that it was made of
	Created  time.Time
}

// Build says how an image is made: the steps are run in a container of the base. Without a name none is made: it is about what they say.
type Build struct {
	Name, Base string
	Labels     map[string]string
	Env        []string
	Steps      []Step
	Files      map[string][]byte // in the folder Scratch while the steps run
	Network    string
	Memory     int64
	Size       int64
	Reserve    int64
	Limit      time.Duration
}

// Step is one program.
type Step struct {
	Argv, Env []string
	// Manager is whose it is.
	Manager packages.Manager
}

// StepError is the end of a step that did not succeed.
type StepError struct {
	Step     Step
	ExitCode int
}

// Error says which manager it was.
func (e *StepError) Error() string { return string(e.Step.Manager) + " failed" }

// Base is an image that others can be made of.
type Base struct {
	Image string
	// Languages are those that it brings.
	Languages []string
	// Python is the interpreter of its Python kernel; empty: it has none.
	Python string
}

// Config says how a Library works. Engine, Installation, Bases, Folder, InUse and Kept are required.
type Config struct {
	Engine       Engine
	Installation string
	// Bases are the images that others can be made of. Where several bring what is wanted, the first is taken.
	Bases []Base
	// Folder notes when each image was last used, and what its owners called it.
	Folder string
	// Allowed are further images that sessions may run in; "*" at the end of one stands for anything.
	Allowed []string
	// InUse names the images of sessions that run, or whose kernel an earlier process has left running.
	InUse func(ctx context.Context) (map[string]bool, error)
	// Kept names the images that a session would run in that has no kernel now, too, with when such a session was last used.
	Kept func(ctx context.Context) (map[string]time.Time, error)
	// Sources says where packages come from.
	Sources Sources
	// MaxBuilds is how many images are made at once (2), MaxWaiting how many may wait for that (16), Limit how long each may
	// take (15 min), Memory and Size what it may use and by how much the image may grow, in bytes (2 GiB, 4 GiB), Reserve how much of the
	// engine's disk builds leave alone (0: nothing).
	MaxBuilds, MaxWaiting int
	Limit                 time.Duration
	Memory, Size, Reserve int64
	// MaxAge is how long an image is kept that nothing uses (30 days), MaxBytes what all of them may take (20 GiB), of which
	// each owner has a share. 0: no limit.
	MaxAge   time.Duration
	MaxBytes int64
	Logger   *slog.Logger
}

// Library is the derived images of an installation. It has no state but builds that go on, and what images were last called.
type Library struct {
	cfg   Config
	turns chan struct{} // as many as builds go on

	mu       sync.Mutex
	waiting  int
	building map[string]chan struct{} // by name; closed when the build has ended
	owned    map[string][]string      // by image: what owners call it, as it was when they were last looked at
}

// New returns a library. It does not talk to the engine.
func New(cfg Config) *Library {
	setDefault(&cfg.MaxBuilds, 2)
	setDefault(&cfg.MaxWaiting, 16)
	setDefault(&cfg.Limit, 15*time.Minute)
	setDefault(&cfg.Memory, 2<<30)
	setDefault(&cfg.Size, 4<<30)
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	return &Library{cfg: cfg, turns: make(chan struct{}, cfg.MaxBuilds), building: map[string]chan struct{}{}}
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Entry is an image that an owner may use.
type Entry struct {
	// Name is what he calls it, Image what the engine does.
	Name, Image string
	Languages   []string
	// Base is what it was made of, Packages what it has more. Both are empty for an image that is the server's own.
	Base     string
	Packages []string
	Size     int64
	Created  time.Time
	// LastUsed is when it was last made, named or found in use; zero when that is not known.
	LastUsed time.Time
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName refuses what cannot be an image's name.
func CheckName(name string) error {
	if !nameRule.MatchString(name) {
		return fault.New(fault.Invalid, "name: %.80q is no name for an image", name).
			WithHint("use letters, digits, '.', '_' and '-', at most 64, the first a letter or a digit")
	}
	return nil
}

// shelf begins the names that an owner gave his images; the name is the tag.
func (l *Library) shelf(owner string) string {
	sum := sha256.Sum256([]byte(l.cfg.Installation + "\x00" + owner))
	return ownedPrefix + hex.EncodeToString(sum[:])[:24] + ":"
}

// nameOf is what an image of these packages is called.
func (l *Library) nameOf(base Image, set packages.Set) string {
	return Prefix + set.Hash(base.ID, l.cfg.Installation, recipeVersion, l.cfg.Sources.kind()) + ":latest"
}

// mine returns the derived images of this installation, under all their names.
func (l *Library) mine(ctx context.Context) ([]Image, error) {
	all, err := l.cfg.Engine.Images(ctx, Label+"="+l.cfg.Installation)
	all = slices.DeleteFunc(all, func(i Image) bool {
		return !strings.HasPrefix(i.Name, Prefix) && !strings.HasPrefix(i.Name, ownedPrefix)
	})
	if err == nil {
		l.note(all)
	}
	return all, err
}

// List returns the images that an owner may use: the server's own that the engine has, then his, each sorted by name.
func (l *Library) List(ctx context.Context, owner string) ([]Entry, error) {
	var entries []Entry
	for _, b := range l.cfg.Bases {
		i, err := l.cfg.Engine.Image(ctx, b.Image)
		if isAbsent(err) {
			continue // somebody has removed it: the others are there
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, Entry{Name: b.Image, Image: b.Image, Languages: b.Languages, Size: i.Size, Created: i.Created})
	}
	all, err := l.mine(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range all {
		if name, his := strings.CutPrefix(i.Name, l.shelf(owner)); his {
			entries = append(entries, l.entry(name, i, all))
		}
	}
	return entries, nil
}

// entry describes one of an owner's images.
func (l *Library) entry(name string, i Image, all []Image) Entry {
	e := Entry{Name: name, Image: i.Name, Languages: languagesOf(i), Base: i.Labels[labelBase], Size: i.Size, Created: i.Created}
	if list := i.Labels[labelPackages]; list != "" {
		e.Packages = strings.Split(list, ";")
	}
	for _, other := range all { // what sessions know it by
		if other.ID == i.ID && strings.HasPrefix(other.Name, Prefix) {
			e.Image = other.Name
		}
	}
	e.LastUsed = l.lastUsed(e.Image)
	return e
}

// Delete takes a name from an owner. The image goes with its last name, unless a session runs in it or would: then it is collected
// once all of these are closed. The error is NotFound for a name that is not his, Forbidden for one of the server's own.
func (l *Library) Delete(ctx context.Context, owner, name string) error {
	e, err := l.find(ctx, owner, name)
	if err != nil {
		return l.refuseBase(name, err)
	}
	if err := l.cfg.Engine.Remove(ctx, l.shelf(owner)+name); err != nil {
		return err
	}
	_ = os.Remove(l.nameFile(owner, name)) // what is left of it is a name that nobody asks for
	all, err := l.mine(ctx)
	if err != nil {
		return err
	}
	used, err := l.cfg.InUse(ctx)
	if err != nil || used[e.Image] || isOwned(e.Image, all) {
		return err
	}
	kept, err := l.cfg.Kept(ctx)
	if _, would := kept[e.Image]; err != nil || would {
		return err
	}
	err = l.cfg.Engine.Remove(ctx, e.Image)
	if err == nil {
		l.forget(e.Image)
	}
	if fault.KindOf(err) == fault.Conflict { // something has just begun to use it: it is collected later
		return nil
	}
	return err
}

// refuseBase is what an owner is told of a name that was not found among his own: one of the server's may be meant.
func (l *Library) refuseBase(name string, err error) error {
	b, ok := l.base(withTag(name))
	if kind := fault.KindOf(err); !ok || kind != fault.NotFound && kind != fault.Invalid {
		return err
	}
	return fault.New(fault.Forbidden, "the image %s is the server's own, and not deleted by who uses it", b.Image).
		WithHint("list_images shows which are yours")
}

// isOwned tells whether an owner has a name for an image.
func isOwned(image string, all []Image) bool {
	i := slices.IndexFunc(all, func(i Image) bool { return i.Name == image })
	return i >= 0 && slices.ContainsFunc(all, func(o Image) bool { return o.ID == all[i].ID && strings.HasPrefix(o.Name, ownedPrefix) })
}

// find returns an owner's image by the name that he gave it.
func (l *Library) find(ctx context.Context, owner, name string) (Entry, error) {
	if err := CheckName(name); err != nil {
		return Entry{}, err
	}
	all, err := l.mine(ctx)
	if err != nil {
		return Entry{}, err
	}
	var names []string
	for _, i := range all {
		own, his := strings.CutPrefix(i.Name, l.shelf(owner))
		if his && own == name {
			return l.entry(name, i, all), nil
		}
		if his {
			names = append(names, own)
		}
	}
	return Entry{}, fault.New(fault.NotFound, "you have no image %q", name).WithHint("%s", yours(names))
}

func yours(names []string) string {
	if len(names) == 0 {
		return "you have made none; create_image makes one"
	}
	slices.Sort(names)
	return "yours are " + strings.Join(names, ", ")
}
