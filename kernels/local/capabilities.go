//go:build linux

package local

import (
	"runtime"

	"cellblock/kernels"
)

// Capabilities says what holds each limit on this host.
func (p *Provisioner) Capabilities() kernels.Capabilities {
	c := kernels.Capabilities{
		Memory: p.cgroups.by(memory), CPU: p.cgroups.by(cpu), PIDs: p.cgroups.by(pids), FileSize: "RLIMIT_FSIZE",
		Cores: runtime.NumCPU(), UID: p.user.uid, GID: p.user.gid,
	}
	c.ReportsOOM = c.Memory != ""
	p.weaker(&c)
	if p.cfg.Sandbox == SandboxNone {
		c.Warnings = append([]string{
			"THERE IS NO SANDBOX (--sandbox=none): code that a kernel runs can read and change whatever uid " + p.user.String() + " can, and has the network.",
		}, c.Warnings...)
		return c
	}
	c.Network, c.Filesystem, c.Processes = "network namespace", "mount namespace (bubblewrap)", "pid namespace (bubblewrap)"
	if !p.stages() {
		c.Warnings = append(c.Warnings, "/tmp, /dev/shm and the home folder allow execution: a server that is not root cannot mount them noexec.")
	}
	if !p.bwrap.sized && p.bwrap.path != "" {
		c.Warnings = append(c.Warnings, "/tmp has no size limit of its own: this bubblewrap is older than 0.7.")
	}
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		c.Warnings = append(c.Warnings, "There is no seccomp filter for "+runtime.GOARCH+".")
	}
	return c
}

// weaker fills in and warns of what stands in for a cgroup.
func (p *Provisioner) weaker(c *kernels.Capabilities) {
	if c.Memory == "" {
		c.Memory = "RLIMIT_DATA"
		c.Warnings = append(c.Warnings, "Memory is bounded for each process alone (RLIMIT_DATA), not for a kernel as a whole: no memory cgroup can be had here.")
	} else if !p.cgroups.countsSwap() {
		c.Warnings = append(c.Warnings, "Swap is not counted by the memory limit: the host does not account for it (boot with swapaccount=1).")
	}
	if c.PIDs == "" && p.boundsByRlimit() {
		c.PIDs = "RLIMIT_NPROC in a user namespace"
	} else if c.PIDs == "" {
		c.Warnings = append(c.Warnings, "Nothing bounds the number of processes: no pids cgroup can be had here.")
	}
	if c.CPU == "" {
		c.Warnings = append(c.Warnings, "Nothing bounds processor time: no cpu cgroup can be had here. Only the number of threads of BLAS and OpenMP is set.")
	}
}
