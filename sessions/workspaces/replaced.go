package workspaces

import (
	"os"
	"runtime"
)

// replaced are files and folders whose names a hand-over takes away while somebody waits for its kernel. What is open keeps its
// place on the disk, and to give that back takes time: a file system that tells its disk so (the mount option discard) may wait
// for it, a millisecond each.
type replaced struct{ open []*os.File }

// hold keeps what has a name open, so that removing it, or replacing it, costs a name alone.
func (r *replaced) hold(path string) {
	if runtime.GOOS != "linux" {
		return // others may refuse to remove what is open
	}
	if f, err := os.Open(path); err == nil {
		r.open = append(r.open, f)
	}
}

// letGo gives back the place of all that was held.
func (r *replaced) letGo() {
	for _, f := range r.open {
		_ = f.Close()
	}
	r.open = nil
}
