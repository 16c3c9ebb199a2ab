package docker

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// extras are what a profile gives a kernel beside its limits.
type extras struct {
	mounts  []mount.Mount
	runtime string
	devices []container.DeviceMapping
	// requests are devices by their names of the Container Device Interface.
	requests []container.DeviceRequest
}

// Allows returns why a kernel could not have a Spec's mounts, runtime and devices, without launching it. Whether an engine elsewhere has
// the devices shows only then.
func (p *Provisioner) Allows(ctx context.Context, spec kernels.Spec) (doubt, err error) {
	e, err := p.engine(ctx)
	if err == nil {
		_, err = p.extras(ctx, e, spec)
	}
	if err == nil {
		err = e.lacks(spec.Devices)
	}
	if err != nil {
		return nil, err
	}
	resolved, err := p.mounts.Resolve(ctx, spec.Mounts)
	if err != nil {
		return nil, err
	}
	doubt, err = p.mounts.Writable(ctx, resolved, e.user.uid, e.user.gid)
	return cmp.Or(doubt, spec.Limits.Beyond(e.info.NCPU, e.info.MemTotal)), err
}

// lacks is the error of a device that an engine of this very system has not got.
func (e *engine) lacks(devices []string) error {
	if locate(e.host, e.info) != placeHere {
		return nil
	}
	for _, device := range devices {
		if strings.HasPrefix(device, "/") && !exists(device) {
			return fault.New(fault.Unavailable, "there is no device %s on this host", device).WithHint("Name one that is there in the profile, or load its driver.")
		}
	}
	return nil
}

var _ kernels.Allower = (*Provisioner)(nil)

// extras checks what a Spec wants of this host, and of the engine.
func (p *Provisioner) extras(ctx context.Context, e *engine, spec kernels.Spec) (x extras, err error) {
	if x.runtime, err = e.runtime(ctx, spec.Runtime); err != nil {
		return x, err
	}
	if x.mounts, err = p.hostMounts(ctx, e, spec.Mounts); err != nil {
		return x, err
	}
	var named []string
	for _, device := range spec.Devices {
		if strings.HasPrefix(device, "/") {
			x.devices = append(x.devices, container.DeviceMapping{PathOnHost: device, PathInContainer: device, CgroupPermissions: "rw"})
		} else {
			named = append(named, device)
		}
	}
	if len(named) > 0 && e.kind == KindPodman { // whose API for Docker's clients takes no notice of them
		return x, fault.New(fault.Unavailable, "Podman at %s is not to be told of the device %s by its name", e.host, named[0]).
			WithHint("Name the paths of its devices in the profile (/dev/…), or use Docker.")
	}
	if len(named) > 0 {
		x.requests = []container.DeviceRequest{{Driver: "cdi", DeviceIDs: named}}
	}
	return x, nil
}

// runtime returns an OCI runtime that the engine has; empty is its own choice.
func (e *engine) runtime(ctx context.Context, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	info, err := e.api.Info(ctx) // the operator may have added it since the engine was met
	if err != nil {
		return "", engineError(e.host, err)
	}
	if _, ok := info.Runtimes[name]; ok {
		return name, nil
	}
	return "", fault.New(fault.Unavailable, "the container engine at %s has no OCI runtime %s", e.host, name).
		WithHint("It has %s. Install %s and name it in the engine's configuration (Docker: runtimes in /etc/docker/daemon.json), or use another profile.",
			strings.Join(slices.Sorted(maps.Keys(info.Runtimes)), ", "), name)
}

// hostMounts are folders of this host for a container. What is mounted below a read-only one is left out: older engines would let
// it be written to.
func (p *Provisioner) hostMounts(ctx context.Context, e *engine, wanted []kernels.Mount) (all []mount.Mount, err error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	if e.files != FilesBind {
		return nil, fault.New(fault.Unavailable, "the folder %s cannot be mounted: the container engine at %s shares no files with this server", wanted[0].Source, e.host).
			WithHint("Run the server where the engine runs, or use a profile without mounts.")
	}
	resolved, err := p.mounts.Resolve(ctx, wanted)
	if err != nil {
		return nil, err
	}
	for _, m := range resolved {
		all = append(all, mount.Mount{
			Type: mount.TypeBind, Source: m.Source, Target: m.Target, ReadOnly: !m.Writable,
			BindOptions: &mount.BindOptions{Propagation: mount.PropagationRPrivate, NonRecursive: !m.Writable},
		})
	}
	return all, nil
}
