package derived

import (
	"context"
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

func (l *Library) forget(image string) { _ = os.Remove(l.mark(image)) }

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

// derivedImage is one with all its names.
type derivedImage struct {
	Image
	names []string // Name not among them
	used  bool
	at    time.Time
}

// Collect removes images that have not been used for MaxAge, and then the longest unused ones until what is left takes no more than
// MaxBytes, under all names that owners gave them. What sessions run in stays, and counts as used now.
func (l *Library) Collect(ctx context.Context) error {
	used, err := l.cfg.InUse(ctx)
	if err != nil {
		return err
	}
	all, err := l.mine(ctx)
	if err != nil {
		return err
	}
	list, total := l.inventory(ctx, all, used)
	for _, i := range list {
		old := l.cfg.MaxAge > 0 && time.Since(i.at) > l.cfg.MaxAge
		if i.used || !old && (l.cfg.MaxBytes == 0 || total <= l.cfg.MaxBytes) {
			continue
		}
		switch removed, err := l.collect(ctx, i); {
		case err != nil:
			return err
		case !removed:
			continue
		}
		l.cfg.Logger.Info("an image that nobody uses is removed", "image", i.Name, "unused since", i.at.UTC().Format(time.RFC3339))
		total -= i.Size
	}
	return nil
}

// inventory returns the derived images, the longest unused first, and what they take besides their bases.
func (l *Library) inventory(ctx context.Context, all []Image, used map[string]bool) (list []derivedImage, total int64) {
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
		if d.used {
			l.Used(i.Name)
		}
		if d.at = l.lastUsed(i.Name); d.at.IsZero() { // not noted: from now on
			l.Used(i.Name)
			d.at = time.Now()
		}
		for _, o := range all {
			if o.ID == i.ID && o.Name != i.Name {
				d.names = append(d.names, o.Name)
			}
		}
		list, total = append(list, d), total+d.Size
	}
	slices.SortFunc(list, func(a, b derivedImage) int { return a.at.Compare(b.at) })
	return list, total
}

// collect removes an image with all its names, and tells whether it did. One that a container uses stays.
func (l *Library) collect(ctx context.Context, i derivedImage) (removed bool, err error) {
	for _, name := range append(i.names, i.Name) {
		err := l.drop(ctx, name)
		switch {
		case err != nil && fault.KindOf(err) == fault.Conflict:
			return false, nil
		case err != nil:
			return false, err
		}
	}
	return true, nil
}
