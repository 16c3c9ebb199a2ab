package main

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"cellblock/internal/words"
	"cellblock/kernels/docker"
)

// volumes are workspaces that a container engine keeps (*docker.Provisioner), because it shares no files with this host.
type volumes interface {
	Workspaces(ctx context.Context) ([]string, error)
	CopyWorkspace(ctx context.Context, name string, add func(*tar.Header, io.Reader) error) (found bool, err error)
	Close() error
}

// openVolumes returns the workspaces that the engine of a configuration keeps; nil where it keeps none.
func openVolumes(ctx context.Context, cfg *Config, logger *slog.Logger) (volumes, error) {
	installation, err := os.ReadFile(filepath.Join(cfg.DataDir, "installation"))
	if cfg.Provisioner == "local" || errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	host, _, err := cfg.engineHost(ctx)
	if err != nil && cfg.Provisioner == "auto" {
		return nil, nil // kernels run in the sandbox
	}
	if err != nil {
		return nil, err
	}
	p, err := docker.New(docker.Config{
		Host: host, Carrier: docker.Carrier(cfg.Docker.Carrier), Files: docker.Files(cfg.Docker.Files), Installation: strings.TrimSpace(string(installation)),
		DataDir: cfg.DataDir, RunDir: filepath.Join(cfg.RunDir, "d"), UID: cfg.KernelUID, GID: cfg.KernelGID, Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	keeps, err := p.KeepsWorkspaces(ctx)
	if err != nil || !keeps {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// copyVolumes copies what an engine keeps of workspaces that have no files here. What cannot be read is told of, and the rest is copied.
func (b *backup) copyVolumes(ctx context.Context, workspaces []string) error {
	if len(workspaces) == 0 {
		return nil
	}
	if b.openVolumes == nil {
		b.troubles.empty = len(workspaces)
		return nil
	}
	v, err := b.openVolumes(ctx)
	if v == nil {
		b.engineFailed(err)
		return ctx.Err()
	}
	defer v.Close()
	kept, err := v.Workspaces(ctx)
	b.engineFailed(err)
	files, bytes, copied := b.files, b.bytes, 0
	for _, workspace := range workspaces {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if !slices.Contains(kept, filepath.Base(workspace)) {
			continue
		}
		if _, err := os.Lstat(filepath.Join(b.data, workspace)); err != nil { // its session has just been deleted
			continue
		}
		t := newTree()
		t.folders["."] = true // it is there, and is not among what an engine has in it
		found, err := v.CopyWorkspace(ctx, filepath.Base(workspace), func(h *tar.Header, content io.Reader) error {
			return b.addFromVolume(workspace, t, h, content)
		})
		if errors.As(err, new(writeError)) {
			return err
		}
		if b.engineFailed(err); found {
			copied++
		}
	}
	if copied > 0 {
		b.say("workspaces in volumes of the container engine: %d, with %s (%s)", copied, words.Count(int64(b.files-files), "file"), words.Bytes(b.bytes-bytes))
	}
	return ctx.Err()
}

// addFromVolume adds one entry of a workspace's volume.
func (b *backup) addFromVolume(workspace string, t *tree, h *tar.Header, content io.Reader) error {
	if h.Typeflag != tar.TypeReg && h.Typeflag != tar.TypeDir && h.Typeflag != tar.TypeSymlink {
		b.troubles.special++
		return nil
	}
	if !filepath.IsLocal(h.Name) || t.add(path.Clean(h.Name), h.Typeflag == tar.TypeDir) != nil {
		b.troubles.unreadable++
		return nil
	}
	entry := &tar.Header{Typeflag: h.Typeflag, Name: filepath.ToSlash(filepath.Join(workspace, h.Name)), Linkname: h.Linkname, Mode: h.Mode, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime}
	switch h.Typeflag {
	case tar.TypeDir:
		entry.Name += "/"
	case tar.TypeReg:
		return b.addFileOf(entry, h.Size, content)
	}
	return b.write(entry, nil)
}

func (b *backup) addFileOf(entry *tar.Header, size int64, content io.Reader) error {
	entry.Size = size
	whole := &exactly{from: content, left: size}
	if err := b.write(entry, whole); err != nil {
		return err
	}
	b.count(size)
	if whole.short {
		b.troubles.changed++
	}
	return nil
}

// engineFailed notes that something of an engine could not be read.
func (b *backup) engineFailed(err error) {
	if err != nil {
		b.troubles.engine = err
	}
}
