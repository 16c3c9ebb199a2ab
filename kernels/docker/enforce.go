package docker

import (
	"fmt"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// engineWeaknesses says what the engine admits that it does not enforce, for any container.
func engineWeaknesses(info system.Info) []string {
	var weak []string
	// A user without root has no say over the groups of cgroup v1, whatever the engine claims.
	can := !(hasSecurity(info, "rootless") && info.CgroupVersion == "1")
	for what, enforced := range map[string]bool{
		"the memory limit":                   can && info.MemoryLimit,
		"the CPU limit":                      can && info.CPUCfsQuota,
		"the limit on processes and threads": can && info.PidsLimit,
	} {
		if !enforced {
			weak = append(weak, what+" (the cgroup controller is missing or not delegated)")
		}
	}
	if !info.SwapLimit && info.MemoryLimit && hostSwap() {
		weak = append(weak, "memory without swap (swap accounting is off: boot with swapaccount=1, or turn swap off)")
	}
	if !seccompOn(info) {
		weak = append(weak, "the seccomp profile (system calls are not filtered)")
	}
	slices.Sort(weak)
	return weak
}

// seccompOn reports whether the engine filters system calls by default.
func seccompOn(info system.Info) bool {
	return slices.ContainsFunc(info.SecurityOptions, func(option string) bool {
		return strings.HasPrefix(option+",", "name=seccomp,") && !strings.Contains(option, "unconfined")
	})
}

// configWeaknesses compares what was asked of the engine with what it says the container got: an engine that cannot
// enforce a limit drops it with a warning, or without.
func configWeaknesses(asked, got *container.HostConfig) []string {
	var weak []string
	differs := func(what string, same bool) {
		if !same {
			weak = append(weak, what)
		}
	}
	differs("the memory limit", got.Memory == asked.Memory)
	differs("memory without swap", asked.Memory == 0 || got.MemorySwap == asked.MemorySwap || !hostSwap())
	differs("the CPU limit", cpus(got) == cpus(asked))
	differs("the limit on processes and threads", asked.PidsLimit == nil || got.PidsLimit != nil && *got.PidsLimit == *asked.PidsLimit)
	differs("the read-only root", got.ReadonlyRootfs)
	differs("no network", got.NetworkMode.IsNone())
	differs("no privileges", !got.Privileged && len(got.CapAdd) == 0)
	for _, u := range asked.Ulimits {
		differs("the limit "+u.Name, slices.ContainsFunc(got.Ulimits, func(o *container.Ulimit) bool {
			return strings.TrimPrefix(strings.ToLower(o.Name), "rlimit_") == u.Name && o.Hard == u.Hard
		}))
	}
	return weak
}

// cpus is the limit in the engine's unit; an engine may have turned it into a quota of a period.
func cpus(c *container.HostConfig) int64 {
	if c.NanoCPUs == 0 && c.CPUPeriod > 0 {
		return c.CPUQuota * cpuUnit / c.CPUPeriod
	}
	return c.NanoCPUs
}

// refuse returns an error if there is something that is not enforced and that nobody allowed.
func (p *Provisioner) refuse(weak []string) error {
	if len(weak) == 0 || p.cfg.AllowUnenforced {
		return nil
	}
	return fault.New(fault.Unavailable, "the container engine would silently ignore %s", strings.Join(weak, ", ")).
		WithHint("Mend the host (cgroup v2 with delegated controllers, seccomp), or accept it with --allow-unenforced.")
}

// processWeaknesses compares what was asked with what the kernel of this host really does to the container's first
// process. What cannot be read (another machine, another pid namespace) is not complained about.
func processWeaknesses(l kernels.Limits, got processState) []string {
	var weak []string
	differs := func(what string, known, same bool) {
		if known && !same {
			weak = append(weak, what)
		}
	}
	differs(fmt.Sprintf("no capabilities (CapEff %s)", got.capEff), got.capEff != "", strings.Trim(got.capEff, "0") == "")
	differs(fmt.Sprintf("the seccomp profile (Seccomp %s)", got.seccomp), got.seccomp != "", got.seccomp == "2")
	differs(fmt.Sprintf("no-new-privileges (NoNewPrivs %s)", got.noNewPrivs), got.noNewPrivs != "", got.noNewPrivs == "1")
	differs(fmt.Sprintf("the memory limit (%d bytes)", got.memory), got.memory != 0 && l.Memory > 0, got.memory > 0 && got.memory <= l.Memory)
	differs(fmt.Sprintf("the limit on processes and threads (%d)", got.pids), got.pids != 0 && l.PIDs > 0, got.pids > 0 && got.pids <= l.PIDs)
	differs(fmt.Sprintf("the CPU limit (%.2f cores)", got.cpus), got.cpus != 0 && l.CPUs > 0, got.cpus > 0 && got.cpus <= l.CPUs*1.01)
	return weak
}

// processState is what the host says about a container's first process. A zero value is not known; -1 is no limit.
type processState struct {
	capEff, seccomp, noNewPrivs string
	memory, pids                int64
	cpus                        float64
}
