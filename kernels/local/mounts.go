//go:build linux

package local

import (
	"cmp"
	"context"
	"runtime"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// checkExtras refuses what a kernel here cannot have, and returns what the sources of its mounts really are.
func (p *Provisioner) checkExtras(ctx context.Context, spec kernels.Spec) ([]kernels.Mount, error) {
	const engine = "Use a profile without it, or run kernels in containers (provisioner: docker)."
	switch {
	case spec.Runtime != "":
		return nil, fault.New(fault.Unavailable, "the OCI runtime %s runs containers, and kernels here run in a sandbox of this host", spec.Runtime).WithHint(engine)
	case len(spec.Devices) > 0:
		return nil, fault.New(fault.Unavailable, "the device %s cannot be given to a kernel in a sandbox of this host", spec.Devices[0]).WithHint(engine)
	case len(spec.Mounts) > 0 && p.cfg.Sandbox == SandboxNone:
		return nil, fault.New(fault.Unavailable, "the folder %s cannot be mounted for a kernel without a sandbox", spec.Mounts[0].Source).
			WithHint("Turn the sandbox on (sandbox: bwrap), or use a profile without mounts.")
	}
	return p.mounts.Resolve(ctx, spec.Mounts)
}

// Allows returns why a kernel could not have a Spec's mounts, runtime and devices, without launching it.
func (p *Provisioner) Allows(ctx context.Context, spec kernels.Spec) (doubt, err error) {
	resolved, err := p.checkExtras(ctx, spec)
	if err != nil {
		return nil, err
	}
	c := p.Capabilities()
	doubt, err = p.mounts.Writable(ctx, resolved, c.UID, c.GID)
	return cmp.Or(doubt, spec.Limits.Beyond(runtime.NumCPU(), hostMemory())), err
}

// hostMemory is how much memory this host has, in bytes; 0 if it does not say.
func hostMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}

var _ kernels.Allower = (*Provisioner)(nil)

// mount makes folders of the host appear in a sandbox.
func (p *Provisioner) mount(box *sandbox, st *stage, resolved []kernels.Mount) {
	for _, m := range resolved {
		b := bind{source: m.Source, target: m.Target}
		if p.stages() {
			b.source = st.addExact(m.Source)
		}
		if m.Writable {
			box.writable = append(box.writable, b)
		} else {
			box.shown = append(box.shown, b)
		}
	}
}
