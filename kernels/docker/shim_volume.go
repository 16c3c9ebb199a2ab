package docker

import (
	"archive/tar"
	"context"
	"os"
	"strings"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/volume"
)

// An engine that shares no files with the server has the shim in a volume that is named after its content: one for all servers
// of one build. What earlier builds left goes when a server first needs its own.

// shimVolumePrefix begins the name of every such volume; the label some of them lack.
const shimVolumePrefix = "cellblock-shim-"

// shimKept is how old another build's volume must be that no container uses before it goes.
const shimKept = 24 * time.Hour

// shimVolumeFor returns the volume that holds the shim. Another server may have taken it for an old one and removed it, and an
// engine makes what a container names and is missing: empty, and without our label. So it is looked at each time.
func (p *Provisioner) shimVolumeFor(ctx context.Context, e *engine, image string, shim shimFile) (string, error) {
	name := shimVolumePrefix + shim.digest
	p.volumes.Lock()
	defer p.volumes.Unlock()
	if p.shimVolume == name {
		if v, err := e.api.VolumeInspect(ctx, name); err == nil && making(v) == p.shimMade {
			return name, nil
		}
	}
	if err := p.fillShimVolume(ctx, e, image, name, shim); err != nil {
		return "", err
	}
	v, err := e.api.VolumeInspect(ctx, name)
	if err != nil {
		return "", err
	}
	if p.shimVolume == "" {
		p.sweepShimVolumes(ctx, e, name)
	}
	p.shimVolume, p.shimMade = name, making(v)
	return name, nil
}

// making tells a volume from another that took its name: an engine's clock may count whole seconds, and what it makes by itself
// has no label.
func making(v volume.Volume) string { return v.CreatedAt + " " + v.Labels[labelShim] }

// fillShimVolume puts the shim into the volume unless it is there.
func (p *Provisioner) fillShimVolume(ctx context.Context, e *engine, image, name string, shim shimFile) error {
	if err := p.makeVolume(ctx, e, name, map[string]string{labelShim: shim.digest}); err != nil {
		return err
	}
	return p.withVolume(ctx, e, image, name, volumeContent, func(id string) error {
		stat, err := e.api.ContainerStatPath(ctx, id, volumeContent+"/shim")
		if err == nil && stat.Size == shim.size {
			return nil
		}
		program, err := os.ReadFile(shim.path)
		if err != nil {
			return err
		}
		archive := archiveOf(&tar.Header{Name: "shim", Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(program))}, program)
		return e.api.CopyToContainer(ctx, id, volumeContent, archive, container.CopyToContainerOptions{})
	})
}

// sweepShimVolumes removes the volumes of other builds that are old and that no container uses: an engine refuses to remove
// others. A server that still needs one makes it again at its next launch.
func (p *Provisioner) sweepShimVolumes(ctx context.Context, e *engine, own string) {
	list, err := e.api.VolumeList(ctx, volume.ListOptions{Filters: filters.NewArgs(filters.Arg("name", shimVolumePrefix))})
	if err != nil {
		return // it is tried again by the next server
	}
	for _, v := range list.Volumes {
		made, err := time.Parse(time.RFC3339, v.CreatedAt)
		if v.Name == own || !strings.HasPrefix(v.Name, shimVolumePrefix) || err != nil || time.Since(made) < shimKept {
			continue
		}
		err = e.api.VolumeRemove(ctx, v.Name, false)
		if err != nil && !cerrdefs.IsConflict(err) && !cerrdefs.IsNotFound(err) {
			p.cfg.Logger.Warn("an old shim's volume could not be removed", "volume", v.Name, "error", err)
		}
	}
}
