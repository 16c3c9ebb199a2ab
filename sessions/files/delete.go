package files

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"time"

	"cellblock/internal/fault"
)

// maxDeleting bounds the time for one folder: user code may go on filling it.
const maxDeleting = 30 * time.Second

// deleteAll deletes a folder with all that is in it.
func (f *Folder) deleteAll(name string) error {
	if top, err := openDir(f.root, name); err == nil {
		d := deletion{top: top, until: time.Now().Add(maxDeleting), word: rand.Text()}
		for d.pass() {
		}
		_ = top.Close() // nothing was written
	}
	err := f.root.Remove(name)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fault.New(fault.Conflict, "not all of %q could be deleted: %w", name, Pathless(err)).
		WithHint("permissions may forbid it, or code may go on writing there")
}

// deletion empties a folder. User code can make folders in folders beyond the longest path, and beyond the descriptors and the
// memory that there are for each level. So what is in a folder of the top one is moved to the top, until nothing is below it: no path
// has more than two names, and each folder is moved once.
type deletion struct {
	top   *os.Root
	until time.Time
	// word begins the names of what was moved: one that nobody has chosen. moved counts them.
	word  string
	moved int
}

// pass goes through the top folder once. It is false when that has come to nothing, or the time is over.
func (d *deletion) pass() (again bool) {
	for _, name := range d.names(d.top) {
		if d.late() {
			return false
		}
		again = d.remove(name) || d.lift(name) || again
	}
	return again
}

func (d *deletion) late() bool { return time.Now().After(d.until) }

func (d *deletion) names(dir *os.Root) []string {
	w := walk{left: maxLooked, until: d.until, follow: func(string) bool { return true }}
	names, _ := w.names(dir) // what cannot be read is not deleted, which its own error says
	return names
}

func (d *deletion) remove(name string) bool { return d.top.Remove(name) == nil }

// isFolder is false for a link to one.
func (d *deletion) isFolder(name string) bool {
	info, err := d.top.Lstat(name)
	return err == nil && info.IsDir()
}

// lift deletes what is in a folder of the top one, or moves it there, and then the folder. It tells whether it has done anything.
func (d *deletion) lift(name string) (done bool) {
	if !d.isFolder(name) {
		return false
	}
	dir, err := openDir(d.top, name)
	if err != nil {
		return false
	}
	names := d.names(dir)
	_ = dir.Close() // nothing was written
	for _, below := range names {
		if d.late() {
			return done
		}
		below = name + "/" + below
		done = d.remove(below) || d.isFolder(below) && d.move(below) || done
	}
	return d.remove(name) || done
}

func (d *deletion) move(name string) bool {
	d.moved++
	return d.top.Rename(name, d.word+strconv.Itoa(d.moved)) == nil
}
