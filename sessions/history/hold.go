package history

import (
	"os"
	"sync/atomic"

	"github.com/gofrs/flock"
)

// keeper sees to it that no file goes that somebody copies. Who copies holds a lock on the data folder, shared with others
// who do, and files are removed only by who gets it alone. What is left so is swept later.
type keeper struct {
	folder string
	left   atomic.Bool // files that no row names
}

func folderLock(folder string) *flock.Flock { return flock.New(folder, flock.SetFlag(os.O_RDONLY)) }

// mayRemove tells whether files may be removed, until unlock. Where folders cannot be locked nobody holds one.
func (k *keeper) mayRemove() (unlock func(), ok bool) {
	lock := folderLock(k.folder)
	free, err := lock.TryLock()
	if err == nil && !free {
		k.left.Store(true)
	}
	return func() { _ = lock.Close() }, free || err != nil
}
