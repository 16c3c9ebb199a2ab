package docker

import (
	"archive/tar"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/volume"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// An engine that shares no files with the server keeps workspaces in named volumes. Every process that works on the same
// data folder finds them: their names come of the installation that the processes share, and of the folder's own name.

// helperGrace is how old a container that only reaches a volume must be before it can be nobody's: it is used at once.
const helperGrace = 10 * time.Minute

// volumeContent is where a container that only reaches a volume has it.
const volumeContent = "/volume/content"

// KeepsWorkspaces tells whether workspaces are volumes of the engine.
func (p *Provisioner) KeepsWorkspaces(ctx context.Context) (bool, error) {
	if p.cfg.Files != FilesAuto {
		return p.cfg.Files == FilesVolume, nil
	}
	e, err := p.engine(ctx)
	if err != nil {
		return false, err
	}
	return e.files == FilesVolume, nil
}

// Workspaces names the workspaces of which the engine has a volume.
func (p *Provisioner) Workspaces(ctx context.Context) ([]string, error) {
	e, err := p.engine(ctx)
	if err != nil {
		return nil, err
	}
	return p.workspacesOf(ctx, e)
}

func (p *Provisioner) workspacesOf(ctx context.Context, e *engine) ([]string, error) {
	ours := filters.NewArgs(filters.Arg("label", labelInstallation+"="+p.cfg.Installation), filters.Arg("label", labelWorkspace))
	list, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: ours})
	if err != nil {
		return nil, engineError(e.host, err)
	}
	var names []string
	for _, v := range list.Volumes {
		names = append(names, v.Labels[labelWorkspace])
	}
	return names, nil
}

// RemoveWorkspace removes a workspace's volume, whatever is in it.
func (p *Provisioner) RemoveWorkspace(ctx context.Context, name string) error {
	e, err := p.engine(ctx)
	if err != nil {
		return err
	}
	err = e.api.VolumeRemove(ctx, p.workspaceVolume(name), false)
	if cerrdefs.IsConflict(err) { // perhaps only a container that a killed process made to reach it
		p.sweepHelpers(ctx, e)
		err = e.api.VolumeRemove(ctx, p.workspaceVolume(name), false)
	}
	if cerrdefs.IsNotFound(err) {
		return nil
	}
	return engineError(e.host, err)
}

// RemoveEmptyWorkspace removes a workspace's volume if nothing is in it, and tells whether there is none any more.
func (p *Provisioner) RemoveEmptyWorkspace(ctx context.Context, name string) (gone bool, err error) {
	e, err := p.engine(ctx)
	if err != nil {
		return false, err
	}
	v, err := e.api.VolumeInspect(ctx, p.workspaceVolume(name))
	if cerrdefs.IsNotFound(err) {
		return true, nil
	}
	holds := false
	if err == nil {
		holds, err = p.holdsFiles(ctx, e, v)
	}
	if err != nil || holds {
		return false, engineError(e.host, err)
	}
	return true, p.RemoveWorkspace(ctx, name)
}

// holdsFiles looks into a volume, with the image that it was made with.
func (p *Provisioner) holdsFiles(ctx context.Context, e *engine, v volume.Volume) (holds bool, err error) {
	err = p.withVolume(ctx, e, v.Labels[labelImage], v.Name, volumeContent, func(id string) error {
		archive, _, err := e.api.CopyFromContainer(ctx, id, volumeContent)
		if err != nil {
			return err
		}
		defer archive.Close()
		entries := tar.NewReader(archive)
		if _, err := entries.Next(); err != nil { // the top itself
			return err
		}
		_, err = entries.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		holds = err == nil
		return err
	})
	return holds, err
}

// workspaceMount brings the workspace into the container: the folder itself, as the engine sees it, or a volume that stands for it and
// that the kernel's user owns.
func (p *Provisioner) workspaceMount(ctx context.Context, e *engine, image, folder string) (mount.Mount, error) {
	switch e.files {
	case FilesShared:
		return e.own.mount(folder)
	case FilesBind:
		// Podman would make a missing one, as root.
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return mount.Mount{}, fault.New(fault.Invalid, "the workspace %s is not a folder", folder)
		}
		return mount.Mount{Type: mount.TypeBind, Source: folder, Target: workspaceDir}, nil
	}
	name := p.workspaceVolume(filepath.Base(folder))
	_, err := e.api.VolumeInspect(ctx, name)
	if cerrdefs.IsNotFound(err) {
		err = p.makeWorkspaceVolume(ctx, e, image, filepath.Base(folder))
	}
	if err != nil {
		return mount.Mount{}, fmt.Errorf("making the workspace's volume: %w", engineError(e.host, err))
	}
	if err := p.fillWorkspace(ctx, e, image, folder); err != nil {
		return mount.Mount{}, err
	}
	return mount.Mount{Type: mount.TypeVolume, Source: name, Target: workspaceDir,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true}}, nil // or an empty one would become the image's
}

// workspaceVolume is the volume that stands for a workspace.
func (p *Provisioner) workspaceVolume(workspace string) string {
	sum := sha256.Sum256([]byte(p.cfg.Installation + "\x00" + workspace))
	return "cellblock-workspace-" + hex.EncodeToString(sum[:])[:24]
}

// makeWorkspaceVolume makes a volume whose top belongs to the kernel's user.
func (p *Provisioner) makeWorkspaceVolume(ctx context.Context, e *engine, image, workspace string) error {
	uid, gid, err := e.user.numbers()
	if err != nil {
		return err
	}
	name, labels := p.workspaceVolume(workspace), map[string]string{labelWorkspace: workspace, labelImage: image}
	if err := p.makeVolume(ctx, e, name, labels); err != nil {
		return err
	}
	return p.withVolume(ctx, e, image, name, volumeContent, func(id string) error {
		archive := archiveOf(&tar.Header{Name: "content/", Typeflag: tar.TypeDir, Mode: 0o700, Uid: uid, Gid: gid}, nil)
		return e.api.CopyToContainer(ctx, id, "/volume", archive, container.CopyToContainerOptions{})
	})
}

// makeVolume makes a volume if it is missing.
func (p *Provisioner) makeVolume(ctx context.Context, e *engine, name string, labels map[string]string) error {
	labels[labelInstallation] = p.cfg.Installation
	_, err := e.api.VolumeCreate(ctx, volume.CreateOptions{Name: name, Labels: labels})
	return err
}

// withVolume gives use a container, never started, that has a volume mounted: the only way to reach what is in a volume of
// an engine that shares no file system with us.
func (p *Provisioner) withVolume(ctx context.Context, e *engine, image, name, target string, use func(containerID string) error) error {
	helper := "cellblock-volume-" + rand.Text()
	c := p.sweeper.create(ctx, e,
		&container.Config{Image: image, Entrypoint: []string{shimPath}, Labels: map[string]string{labelInstallation: p.cfg.Installation, labelHelper: name}},
		&container.HostConfig{NetworkMode: "none", Mounts: []mount.Mount{{Type: mount.TypeVolume, Source: name, Target: target,
			VolumeOptions: &mount.VolumeOptions{NoCopy: true}}}}, helper)
	defer p.discard(ctx, debt{e: e, name: helper, creation: c, clean: func() error { return nil }})
	if _, err := c.wait(ctx); err != nil {
		return err
	}
	return use(helper)
}

// sweepHelpers removes containers that reach volumes, or show an image's files, for a process that is no more.
func (p *Provisioner) sweepHelpers(ctx context.Context, e *engine) {
	ours := filters.NewArgs(filters.Arg("label", labelInstallation+"="+p.cfg.Installation), filters.Arg("label", labelHelper))
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: ours})
	if err != nil {
		return
	}
	for _, c := range list {
		if time.Since(time.Unix(c.Created, 0)) < helperGrace {
			continue
		}
		if err := remove(ctx, e, c.ID); err != nil && !cerrdefs.IsNotFound(err) {
			p.cfg.Logger.Warn("a container that nobody uses could not be removed", "container", c.ID, "error", err)
		}
	}
}

var _ kernels.WorkspaceKeeper = (*Provisioner)(nil)
