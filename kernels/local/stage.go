//go:build linux

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"

	"cellblock/kernels/mounts"
)

// A stage is how a server that is root shows a kernel's user folders that lie where this user may not pass, such as a data
// folder under /root, without opening them to anybody else. It is a mount namespace of bubblewrap's own with a tmpfs at
// /tmp in which the folders are bound under numbers; there, root can also mount what a plain user cannot, a tmpfs
// without execution. The namespace is nobody else's, so nothing of it shows on the host, and it ends with bubblewrap.
//
// A server that is a plain user runs kernels as itself and needs no stage.
type stage struct {
	sources []stageSource
	scratch []stageScratch
	turns   *mounts.Finder                      // shared by all stages: of those that open a source that hangs, all but one can give up
	open    func(stageSource) (*os.File, error) // of a source; nil is openPath
}

// stageSource is a path of the host, whether it must be a folder and no link, and whether there must be no link on the way to it
// either.
type stageSource struct {
	path          string
	folder, exact bool
}

// stageScratch is a tmpfs for the sandbox, as large as that in bytes.
type stageScratch struct {
	path string
	size int64
	user user
}

// stageDir is where the stage is mounted: a folder that exists everywhere and that every user may pass. Bubblewrap
// mounts its own things there too, but on top and after it has left the place behind.
const stageDir = "/tmp"

// add returns the path under which a path of the host will be on the stage.
func (s *stage) add(path string, folder bool) string {
	s.sources = append(s.sources, stageSource{path: path, folder: folder})
	return filepath.Join(stageDir, strconv.Itoa(len(s.sources)-1))
}

// addExact is add for a folder whose path has been resolved: should there be a link in it by now, there is no stage.
func (s *stage) addExact(path string) string {
	staged := s.add(path, true)
	s.sources[len(s.sources)-1].exact = true
	return staged
}

// addScratch returns the path under which there will be an empty tmpfs without execution.
func (s *stage) addScratch(size int64, u user) string {
	path := filepath.Join(stageDir, "scratch"+strconv.Itoa(len(s.scratch)))
	s.scratch = append(s.scratch, stageScratch{path, size, u})
	return path
}

// start starts a command in the stage. When ctx ends first nothing is started, now or later: a source that does not answer holds up
// one thread, however many stages want it, and nobody else.
func (s *stage) start(ctx context.Context, cmd *exec.Cmd) error {
	built, started := make(chan error), make(chan error, 1)
	go s.enter(ctx, built, func() { started <- cmd.Start() })
	select {
	case err := <-built:
		if err != nil {
			return err
		}
		return <-started
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// enter builds the stage and, when somebody still takes the result, calls then in it. The goroutine's thread gets the namespace and
// ends with the goroutine.
func (s *stage) enter(ctx context.Context, built chan<- error, then func()) {
	runtime.LockOSThread()
	if unix.Gettid() == unix.Getpid() {
		// The main thread is what /proc/self shows. It stays out, and as it is held here another one is used.
		defer runtime.UnlockOSThread()
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.enter(ctx, built, then)
		}()
		<-done
		return
	}
	err := s.build(ctx)
	select {
	case built <- err:
		if err == nil {
			then()
		}
	case <-ctx.Done():
	}
}

// build makes the stage in a new mount namespace of the calling thread.
func (s *stage) build(ctx context.Context) error {
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	// A slave: what the operator unmounts goes away here too, what is mounted here stays here.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SLAVE, ""); err != nil {
		return fmt.Errorf("mount propagation: %w", err)
	}
	var files []*os.File // opened before the stage covers what they may lie under
	defer func() {
		for _, f := range files {
			_ = f.Close()
		}
	}()
	for _, src := range s.sources {
		f, err := s.openInTurn(ctx, src)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	if err := unix.Mount("tmpfs", stageDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=0755,size=1m"); err != nil {
		return fmt.Errorf("stage: %w", err)
	}
	for i, f := range files {
		if err := bindFile(f, filepath.Join(stageDir, strconv.Itoa(i))); err != nil {
			return fmt.Errorf("stage %s: %w", s.sources[i].path, err)
		}
	}
	for _, scratch := range s.scratch {
		if err := scratch.mount(); err != nil {
			return fmt.Errorf("stage: %w", err)
		}
	}
	return nil
}

// openInTurn opens a source once no other stage does. It must be the calling thread: what another namespace has opened cannot be bound.
func (s *stage) openInTurn(ctx context.Context, src stageSource) (*os.File, error) {
	end, err := s.turns.Turn(ctx, src.path)
	if err != nil {
		return nil, err
	}
	defer end()
	if s.open != nil {
		return s.open(src)
	}
	return openPath(src)
}

func openPath(src stageSource) (*os.File, error) {
	flags := unix.O_PATH | unix.O_CLOEXEC
	if src.folder {
		flags |= unix.O_NOFOLLOW | unix.O_DIRECTORY
	}
	if !src.exact {
		return os.OpenFile(src.path, flags, 0)
	}
	fd, err := unix.Openat2(unix.AT_FDCWD, src.path, &unix.OpenHow{Flags: uint64(flags), Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: src.path, Err: err}
	}
	return os.NewFile(uintptr(fd), src.path), nil
}

// bindFile binds an open file or folder at target, which it makes.
func bindFile(f *os.File, target string) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.IsDir() {
		err = os.Mkdir(target, 0o755)
	} else {
		err = os.WriteFile(target, nil, 0o644)
	}
	if err != nil {
		return err
	}
	source := "/proc/self/fd/" + strconv.Itoa(int(f.Fd()))
	return unix.Mount(source, target, "", unix.MS_BIND|unix.MS_REC, "")
}

func (t stageScratch) mount() error {
	if err := os.Mkdir(t.path, 0o755); err != nil {
		return err
	}
	options := fmt.Sprintf("mode=0700,uid=%d,gid=%d,size=%d", t.user.uid, t.user.gid, t.size)
	return unix.Mount("tmpfs", t.path, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options)
}
