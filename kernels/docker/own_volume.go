package docker

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/docker/api/types/versions"

	"cellblock/internal/fault"
)

// A server that runs in a container itself shares no folder with an engine, but it may share a volume: the one that holds its data
// folder. Kernels get folders of that, so that server, viewer and backups have workspaces at hand as on a host.

// subpathAPI is the version of the engine's API since which a container may have a folder of a volume (Docker 26.0).
const subpathAPI = "1.45"

// ownVolume is a volume that the server's own container has.
type ownVolume struct {
	name string
	// at is where that container has it.
	at string
	// source is where the engine's host has it, for an engine that knows no folders of volumes; else empty.
	source string
}

// mount brings a folder of the volume into a container. The folder is named as the server's container names it.
func (v *ownVolume) mount(folder string) (mount.Mount, error) {
	below, ok := v.below(folder)
	if info, err := os.Stat(folder); !ok || err != nil || !info.IsDir() {
		return mount.Mount{}, fault.New(fault.Invalid, "the workspace %s is not a folder of the volume %s", folder, v.name)
	}
	if v.source != "" {
		return mount.Mount{Type: mount.TypeBind, Source: path.Join(v.source, below), Target: workspaceDir}, nil
	}
	return mount.Mount{Type: mount.TypeVolume, Source: v.name, Target: workspaceDir,
		VolumeOptions: &mount.VolumeOptions{NoCopy: true, Subpath: below}}, nil
}

// below is a folder's name from the volume's top, false for one that is elsewhere.
func (v *ownVolume) below(folder string) (string, bool) {
	rel, err := filepath.Rel(v.at, folder)
	return filepath.ToSlash(rel), err == nil && filepath.IsLocal(rel)
}

// shareOwnVolume has kernels get folders of the volume that the server's own container has for workspaces, if the engine runs that
// container and can give them. One that runs it sees no folder of the server's in any other way, whatever it is. What an installation
// has in volumes of its workspaces stays there.
func (p *Provisioner) shareOwnVolume(ctx context.Context, e *engine) error {
	switch {
	case p.cfg.Files != FilesAuto, p.cfg.DataDir == "", e.carrier == CarrierSocket, e.kind == KindPodman,
		runtime.GOOS != "linux", locate(e.host, e.info) == placeHere:
		return nil
	}
	own, err := e.ownContainer(ctx, p.cfg.DataDir)
	if err != nil || own == nil {
		return err
	}
	e.files = FilesVolume
	v, err := e.volumeIn(ctx, own, p.cfg.DataDir)
	if err != nil || v == nil {
		return err
	}
	kept, err := p.workspacesOf(ctx, e)
	if err != nil {
		return err
	}
	if len(kept) > 0 {
		p.cfg.Logger.Info("workspaces stay in volumes of their own: this installation has some", "volumes", len(kept))
		return nil
	}
	// Whatever the engine makes of users' numbers, it does so to both containers.
	uid, gid := p.cfg.runAs()
	e.files, e.own, e.user = FilesShared, v, identity{uid: uid, gid: gid, user: user(uid, gid)}
	return nil
}

// containerID is how the engine's files for a container are named that it mounts into it: /etc/hostname and others.
var containerID = regexp.MustCompile(`/containers/([0-9a-f]{64})/\S+ /etc/(?:hostname|hosts|resolv\.conf) `)

// ownName is what an engine may call the container that this process runs in: by its files here, or else by this system's name, which is
// the host's where the container has the host's network.
func ownName() string {
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	if m := containerID.FindSubmatch(mounts); m != nil {
		return string(m[1])
	}
	name, _ := os.Hostname()
	return name
}

// ownContainer is the server's container, if this engine runs it: the one that sees what the server writes.
func (e *engine) ownContainer(ctx context.Context, folder string) (*container.InspectResponse, error) {
	name := ownName()
	if name == "" {
		return nil, nil
	}
	inspect, err := e.api.ContainerInspect(ctx, name)
	if cerrdefs.IsNotFound(err) || err == nil && inspect.ContainerJSONBase == nil {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	sign, err := os.CreateTemp(folder, ".seen-*")
	if err != nil {
		return nil, nil //nolint:nilerr // where nothing can be written no kernel is launched either
	}
	defer os.Remove(sign.Name())
	_ = sign.Close()
	_, err = e.api.ContainerStatPath(ctx, inspect.ID, sign.Name())
	if cerrdefs.IsNotFound(err) {
		return nil, nil // another one of that name
	}
	return &inspect, err
}

// volumeIn is the volume that a container has a folder in, nil if it has none there whose folders others can get.
func (e *engine) volumeIn(ctx context.Context, c *container.InspectResponse, folder string) (*ownVolume, error) {
	var found *container.MountPoint
	for i, m := range c.Mounts {
		v := ownVolume{at: m.Destination}
		if _, in := v.below(folder); in && (found == nil || len(m.Destination) > len(found.Destination)) {
			found = &c.Mounts[i]
		}
	}
	if found == nil || found.Type != mount.TypeVolume || !found.RW {
		return nil, nil
	}
	v := &ownVolume{name: found.Name, at: found.Destination}
	if versions.GreaterThanOrEqualTo(e.api.ClientVersion(), subpathAPI) {
		return v, nil
	}
	inspect, err := e.api.VolumeInspect(ctx, found.Name)
	if err != nil {
		return nil, err
	}
	if inspect.Driver != "local" || strings.Contains(e.info.OperatingSystem, "Docker Desktop") { // whose paths are another system's
		return nil, nil
	}
	v.source = inspect.Mountpoint
	return v, nil
}
