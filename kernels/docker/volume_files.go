package docker

import (
	"archive/tar"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"

	"cellblock/internal/fault"
)

// contentName is what a volume's top is called in the engine's archives.
var contentName = path.Base(volumeContent)

// CopyWorkspace calls add for all that is in a workspace's volume, folders before what is in them, with names below the workspace. A kernel
// may work there meanwhile. It is false in found where the engine has no such volume.
func (p *Provisioner) CopyWorkspace(ctx context.Context, name string, add func(*tar.Header, io.Reader) error) (found bool, err error) {
	e, err := p.engine(ctx)
	if err != nil {
		return false, err
	}
	v, err := e.api.VolumeInspect(ctx, p.workspaceVolume(name))
	if cerrdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, engineError(e.host, err)
	}
	err = p.withVolume(ctx, e, v.Labels[labelImage], v.Name, volumeContent, func(id string) error {
		return copyContent(ctx, e, id, add)
	})
	return true, err
}

// copyContent reads a volume in a container. Of a file with several names an archive has one, and links to that: each of those is asked
// for by itself.
func copyContent(ctx context.Context, e *engine, id string, add func(*tar.Header, io.Reader) error) error {
	var links []*tar.Header
	err := eachEntry(ctx, e, id, volumeContent, func(h *tar.Header, content io.Reader) error {
		rel, below := strings.CutPrefix(path.Clean(h.Name), contentName+"/")
		if !below {
			return nil // the top itself
		}
		h.Name = rel
		if h.Typeflag == tar.TypeLink {
			links = append(links, h)
			return nil
		}
		return add(h, content)
	})
	var gone error
	for _, h := range links {
		if err != nil {
			break
		}
		err = eachEntry(ctx, e, id, volumeContent+"/"+h.Name, func(alone *tar.Header, content io.Reader) error {
			if alone.Typeflag != tar.TypeReg {
				return nil // something else has its name by now, a folder perhaps, with all that is in it
			}
			alone.Name = h.Name
			return add(alone, content)
		})
		if cerrdefs.IsNotFound(err) { // it was removed meanwhile, and the others may be there
			gone, err = err, nil
		}
	}
	return cmp.Or(err, gone)
}

// eachEntry calls f for the entries of an archive that the engine makes of a path in a container.
func eachEntry(ctx context.Context, e *engine, id, from string, f func(*tar.Header, io.Reader) error) error {
	archive, _, err := e.api.CopyFromContainer(ctx, id, from)
	if err != nil {
		return engineError(e.host, err)
	}
	defer archive.Close()
	for entries := tar.NewReader(archive); ; {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			h.Mode &= 0o777 // engines write the type there, too
			err = f(h, entries)
		}
		if err != nil {
			return err
		}
	}
}

// fillWorkspace moves what is in a workspace's folder into its volume. No kernel writes into such a folder: what is in it was restored from
// a backup, or is from before the engine came to share no files. As long as it is there, it has not been moved to its end.
func (p *Provisioner) fillWorkspace(ctx context.Context, e *engine, image, folder string) error {
	p.movesOnce.Do(func() { finishMoves(filepath.Dir(folder)) })
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	name := p.workspaceVolume(filepath.Base(folder))
	err = p.withVolume(ctx, e, image, name, volumeContent, func(id string) error {
		archive, filled := io.Pipe()
		go func() { filled.CloseWithError(e.archiveFolder(filled, folder)) }()
		defer archive.Close()
		return e.api.CopyToContainer(ctx, id, path.Dir(volumeContent), archive, container.CopyToContainerOptions{})
	})
	if err != nil {
		return fmt.Errorf("moving the workspace's files into its volume: %w", engineError(e.host, err))
	}
	if err := emptyFolder(folder); err != nil {
		return fault.New(fault.Unavailable, "the workspace's files are in its volume now, but the folder %s cannot be emptied: %w", folder, err).
			WithHint("the operator must let the server's user write there")
	}
	p.cfg.Logger.Info("a workspace's files were moved into its volume", "workspace", filepath.Base(folder))
	return nil
}

// emptyFolder puts another folder in the place of one, and then removes what was there. finishMoves goes on where it was killed.
func emptyFolder(folder string) error {
	info, err := os.Stat(folder)
	if err != nil {
		return err
	}
	away := folder + moved
	if err := os.RemoveAll(away); err != nil {
		return err
	}
	if err := os.Rename(folder, away); err != nil {
		return err
	}
	return finishMove(folder, info.Mode())
}

// moved ends the name of a folder whose files are in its volume.
const moved = ".moved"

// finishMove ends what emptyFolder begins, be it another process that began it.
func finishMove(folder string, mode fs.FileMode) error {
	if err := os.Mkdir(folder, mode.Perm()); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_ = os.RemoveAll(folder + moved) // or the next process does
	return nil
}

// finishMoves ends what killed processes have left of their moves, of sessions too that are never used again.
func finishMoves(workspaces string) {
	entries, _ := os.ReadDir(workspaces)
	for _, entry := range entries {
		name, is := strings.CutSuffix(entry.Name(), moved)
		if info, err := entry.Info(); is && err == nil && info.IsDir() {
			_ = finishMove(filepath.Join(workspaces, name), info.Mode())
		}
	}
}

// archiveFolder writes a folder's content as an engine's archive of a volume's top. All of it becomes the kernel's user's.
func (e *engine) archiveFolder(to io.Writer, folder string) error {
	uid, gid, err := e.user.numbers()
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	w := tar.NewWriter(to)
	err = fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		return archiveEntry(w, root, name, info, uid, gid)
	})
	if err != nil {
		return err // without an end: an engine would take for whole what has one
	}
	return w.Close()
}

// archiveEntry writes a folder, a link or a file. Nothing else comes from a backup.
func archiveEntry(w *tar.Writer, root *os.Root, name string, info fs.FileInfo, uid, gid int) (err error) {
	link, mode := "", info.Mode()
	needed := fs.FileMode(0o400) // by a server that is not root
	if mode.IsDir() {
		needed = 0o500
	}
	switch {
	case mode&fs.ModeSymlink != 0:
		link, err = root.Readlink(name)
	case !mode.IsDir() && !mode.IsRegular():
		return nil
	case mode&needed != needed:
		err = root.Chmod(name, mode.Perm()|needed) // what is written has the old one
	}
	if err != nil {
		return err
	}
	h, err := tar.FileInfoHeader(info, link)
	if err != nil {
		return err
	}
	h.Name, h.Uid, h.Gid, h.Uname, h.Gname = path.Join(contentName, filepath.ToSlash(name)), uid, gid, "", ""
	if err := w.WriteHeader(h); err != nil || !mode.IsRegular() {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
