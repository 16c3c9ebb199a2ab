package derived

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cellblock/internal/fault"
)

// An image's last use is the time of an empty file with its name: every process on the data folder notes it there, and nobody has
// to be asked.

// Used notes that an image is used now.
func (l *Library) Used(image string) {
	path := l.mark(image)
	now := time.Now()
	err := os.Chtimes(path, now, now)
	if os.IsNotExist(err) {
		if err = os.MkdirAll(l.cfg.Folder, 0o700); err == nil {
			err = os.WriteFile(path, nil, 0o600)
		}
	}
	if err != nil {
		l.cfg.Logger.Warn("an image's use could not be noted: it may be collected too early", "image", image, "error", err)
	}
}

func (l *Library) mark(image string) string {
	return filepath.Join(l.cfg.Folder, strings.TrimSuffix(image, ":latest"))
}

func (l *Library) lastUsed(image string) time.Time {
	info, err := os.Stat(l.mark(image))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func (l *Library) forget(image string) {
	_ = os.Remove(l.mark(image))
	l.forgetNames(image)
}

// KeepCollected collects every so often, until ctx ends.
func (l *Library) KeepCollected(ctx context.Context, pause time.Duration) {
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		if err := l.Collect(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Logger.Warn("images that nobody uses could not be collected", "error", err, "hint", fault.Hint(err))
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// derivedImage is one with the names that owners gave it.
type derivedImage struct {
	Image
	names []string
	// used tells that a session runs in it, wanted that one would, too, that has no kernel now.
	used, wanted bool
	at           time.Time
}

// orphanAge is how long an image is left alone that nobody has a name for and no session wants: one that has just been made gets both.
const orphanAge = time.Hour

// expired tells whether an image goes whatever room there is.
func (l *Library) expired(i derivedImage) bool {
	age := time.Since(i.at)
	orphan := len(i.names) == 0 && !i.wanted && age > orphanAge
	return !i.used && (orphan || l.cfg.MaxAge > 0 && age > l.cfg.MaxAge)
}

// Collect removes images that nobody has a name for and no session wants, those that have not been used for MaxAge, and then makes room
// (see makeRoom). What sessions run in stays, and counts as used now; what sessions without a kernel would run in counts as used when
// they last were.
func (l *Library) Collect(ctx context.Context) error {
	list, err := l.inventory(ctx)
	if err != nil {
		return err
	}
	var kept []derivedImage
	for _, i := range list {
		gone := false
		if l.expired(i) {
			if gone, err = l.take(ctx, i, i.names); err != nil {
				return err
			}
		}
		if !gone {
			kept = append(kept, i)
		}
	}
	return l.makeRoom(ctx, kept)
}

// inventory returns the derived images, the longest unused first. Their sizes are without their bases.
func (l *Library) inventory(ctx context.Context) (list []derivedImage, err error) {
	used, err := l.cfg.InUse(ctx)
	if err != nil {
		return nil, err
	}
	kept, err := l.cfg.Kept(ctx)
	if err != nil {
		return nil, err
	}
	all, err := l.mine(ctx)
	if err != nil {
		return nil, err
	}
	bases := map[string]int64{}
	for _, i := range all {
		if !strings.HasPrefix(i.Name, Prefix) {
			continue
		}
		base := i.Labels[labelBase]
		if _, known := bases[base]; !known {
			b, _ := l.cfg.Engine.Image(ctx, base) // one that is gone is not shared
			bases[base] = b.Size
		}
		d := derivedImage{Image: i, used: used[i.Name]}
		d.Size = max(i.Size-bases[base], 0)
		if d.used || l.lastUsed(i.Name).IsZero() { // not noted: from now on
			l.Used(i.Name)
		}
		d.at = l.lastUsed(i.Name)
		at, wanted := kept[i.Name]
		if d.wanted = wanted; at.After(d.at) {
			d.at = at
		}
		for _, o := range all {
			if o.ID == i.ID && o.Name != i.Name {
				d.names = append(d.names, o.Name)
			}
		}
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b derivedImage) int { return a.at.Compare(b.at) })
	return list, nil
}

// take removes names that owners gave an image, and the image if no others are left. It tells whether it did: an image that has come
// into use meanwhile keeps all its names. What is interrupted half-way leaves an image without them, which a later collection finds.
func (l *Library) take(ctx context.Context, i derivedImage, names []string) (done bool, err error) {
	if l.lastUsed(i.Name).After(i.at) {
		return false, nil
	}
	last := len(names) == len(i.names)
	if last {
		names = append(slices.Clip(names), i.Name)
	}
	for n, name := range names {
		err := l.cfg.Engine.Remove(ctx, name)
		if err == nil {
			continue
		}
		lost := l.giveBack(ctx, i.Name, names[:n])
		if fault.KindOf(err) == fault.Conflict {
			err = nil
		}
		return false, errors.Join(err, lost)
	}
	if last {
		l.forget(i.Name)
		l.cfg.Logger.Info("an image that nobody uses is removed", "image", i.Name, "unused since", i.at.UTC().Format(time.RFC3339))
	}
	return true, nil
}

// giveBackTime bounds how long an image's names are given back.
const giveBackTime = 30 * time.Second

// giveBack gives an image names that were taken from it, also when ctx has ended. The error names those that are lost.
func (l *Library) giveBack(ctx context.Context, image string, names []string) (lost error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBackTime)
	defer cancel()
	for _, name := range names {
		if err := l.cfg.Engine.Tag(ctx, image, name); err != nil {
			lost = errors.Join(lost, fault.New(fault.KindOf(err), "the image %s has lost its name %s: %w", image, name, err))
		}
	}
	return lost
}
