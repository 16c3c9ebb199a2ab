package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/system"
	"github.com/docker/go-units"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// soundInfo is what an engine says that enforces everything.
func soundInfo() system.Info {
	return system.Info{MemoryLimit: true, SwapLimit: true, CPUCfsQuota: true, PidsLimit: true, CgroupVersion: "2",
		SecurityOptions: []string{"name=seccomp,profile=builtin", "name=cgroupns"}}
}

func TestEngineWeaknesses(t *testing.T) {
	tests := map[string]struct {
		change func(*system.Info)
		want   string
	}{
		"sound":      {func(*system.Info) {}, ""},
		"no memory":  {func(i *system.Info) { i.MemoryLimit = false }, "the memory limit"},
		"no pids":    {func(i *system.Info) { i.PidsLimit = false }, "processes and threads"},
		"no cpu":     {func(i *system.Info) { i.CPUCfsQuota = false }, "the CPU limit"},
		"no seccomp": {func(i *system.Info) { i.SecurityOptions = nil }, "seccomp"},
		"unconfined": {func(i *system.Info) { i.SecurityOptions = []string{"name=seccomp,profile=unconfined"} }, "seccomp"},
		"rootless, cgroup 1": {func(i *system.Info) {
			i.SecurityOptions = append(i.SecurityOptions, "name=rootless")
			i.CgroupVersion = "1"
		}, "the memory limit"},
		"rootless, cgroup 2": {func(i *system.Info) { i.SecurityOptions = append(i.SecurityOptions, "name=rootless") }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			info := soundInfo()
			tt.change(&info)
			got := strings.Join(engineWeaknesses(info), "; ")
			if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// What an engine does to a host configuration when it cannot enforce it, and what must be noticed.
func TestConfigWeaknesses(t *testing.T) {
	tests := map[string]struct {
		change func(*container.HostConfig)
		want   string
	}{
		"same":            {func(*container.HostConfig) {}, ""},
		"cpus as a quota": {func(h *container.HostConfig) { h.NanoCPUs, h.CPUPeriod, h.CPUQuota = 0, 100_000, 150_000 }, ""},
		"podman's names": {func(h *container.HostConfig) {
			h.Ulimits[1] = &units.Ulimit{Name: "RLIMIT_FSIZE", Soft: 1 << 30, Hard: 1 << 30}
		}, ""},
		"memory dropped":      {func(h *container.HostConfig) { h.Memory, h.MemorySwap = 0, 0 }, "the memory limit"},
		"pids dropped":        {func(h *container.HostConfig) { h.PidsLimit = nil }, "processes and threads"},
		"pids unlimited":      {func(h *container.HostConfig) { n := int64(-1); h.PidsLimit = &n }, "processes and threads"},
		"cpus dropped":        {func(h *container.HostConfig) { h.NanoCPUs = 0 }, "the CPU limit"},
		"file size dropped":   {func(h *container.HostConfig) { h.Ulimits = h.Ulimits[:1] }, "the limit fsize"},
		"root writable":       {func(h *container.HostConfig) { h.ReadonlyRootfs = false }, "the read-only root"},
		"network":             {func(h *container.HostConfig) { h.NetworkMode = "bridge" }, "no network"},
		"privileged":          {func(h *container.HostConfig) { h.Privileged = true }, "no privileges"},
		"capabilities to add": {func(h *container.HostConfig) { h.CapAdd = []string{"SYS_ADMIN"} }, "no privileges"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, asked := examplePlan().config()
			_, got := examplePlan().config()
			tt.change(got)
			text := strings.Join(configWeaknesses(asked, got), "; ")
			if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
				t.Errorf("got %q", text)
			}
		})
	}
}

func TestProcessWeaknesses(t *testing.T) {
	limits := kernels.Limits{Memory: 1 << 30, CPUs: 0.5, PIDs: 64}
	sound := processState{capEff: "0000000000000000", seccomp: "2", noNewPrivs: "1", memory: 1 << 30, pids: 64, cpus: 0.5}
	tests := map[string]struct {
		got  processState
		want string
	}{
		"sound":        {sound, ""},
		"unknown":      {processState{}, ""},
		"capability":   {processState{capEff: "0000000000000400"}, "no capabilities"},
		"no seccomp":   {processState{seccomp: "0"}, "seccomp"},
		"privileges":   {processState{noNewPrivs: "0"}, "no-new-privileges"},
		"no memory":    {processState{memory: -1}, "the memory limit"},
		"more memory":  {processState{memory: 2 << 30}, "the memory limit"},
		"no pids":      {processState{pids: -1}, "processes and threads"},
		"no cpu limit": {processState{cpus: -1}, "the CPU limit"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(processWeaknesses(limits, tt.got), "; ")
			if (text == "") != (tt.want == "") || !strings.Contains(text, tt.want) {
				t.Errorf("got %q", text)
			}
		})
	}
}

func TestRefuseUnlessAllowed(t *testing.T) {
	p := &Provisioner{}
	err := p.refuse([]string{"the memory limit", "x"})
	if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" || !strings.Contains(err.Error(), "the memory limit, x") {
		t.Errorf("got %v", err)
	}
	p.cfg.AllowUnenforced = true
	if err := p.refuse([]string{"x"}); err != nil {
		t.Errorf("allowed, and yet: %v", err)
	}
}

func TestCapabilitiesSayWhatIsNotEnforced(t *testing.T) {
	info := soundInfo()
	e := &engine{info: info, weaknesses: engineWeaknesses(info)}
	if c := e.capabilities(); c.Memory != "cgroup v2" || !c.ReportsOOM || len(c.Warnings) != 0 {
		t.Errorf("%+v", c)
	}
	info.MemoryLimit = false
	e = &engine{info: info, weaknesses: engineWeaknesses(info)}
	if c := e.capabilities(); c.Memory != "" || c.ReportsOOM || !slices.ContainsFunc(c.Warnings, func(w string) bool { return strings.Contains(w, "memory limit") }) {
		t.Errorf("%+v", c)
	}
}
