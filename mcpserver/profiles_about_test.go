package mcpserver

import (
	"strings"
	"testing"

	"cellblock/egress"
	"cellblock/kernels"
	"cellblock/sessions"
)

// oneCore is a provisioner on a small machine.
type oneCore struct{ kernels.Provisioner }

func (p oneCore) Capabilities() kernels.Capabilities {
	c := p.Provisioner.Capabilities()
	c.Cores = 1
	return c
}

// What a profile gives is said with its name, to whom may use it; and what network there is without one.
func TestProfilesAreDescribed(t *testing.T) {
	w := newWorld(t, func(c *sessions.Config) {
		c.Profiles = map[string]sessions.Profile{
			"session":  {Limits: kernels.Limits{Memory: 2 << 30, CPUs: 1.5}},
			"isolated": {Limits: kernels.Limits{Memory: 512 << 20}, Once: true},
			"lab": {Limits: kernels.Limits{Memory: 2 << 30}, Network: egress.Policy{Mode: egress.Hosts, Hosts: []string{"a.example", "b.example", "c.example"}},
				Mounts: []kernels.Mount{{Target: "/data"}, {Target: "/out", Writable: true}}},
		}
	})
	described := func() string {
		tools, _ := w.list()
		for _, tool := range tools {
			if tool.Name == "execute_python" {
				return tool.Description + "\n" + tool.InputSchema.Properties["profile"].Description
			}
		}
		return ""
	}
	if got := described(); !strings.Contains(got, "No network by default; 2 GiB memory, 1.5 cores.") || !strings.HasSuffix(got, "\nisolated: for this call only, 512 MiB memory") {
		t.Errorf("to anybody: %s", got)
	}
	w.scopes = append(w.scopes, "profile:lab")
	if got := described(); !strings.HasSuffix(got, "; lab: network to a.example, b.example and 1 more, /data, /out (writable)") {
		t.Errorf("with its scope: %s", got)
	}
	for limits, want := range map[kernels.Limits]string{{}: "No network", {CPUs: 1}: "No network; 1 core", {Memory: 512 << 20}: "No network; 512 MiB memory"} {
		w := newWorld(t, func(c *sessions.Config) { c.Profiles = map[string]sessions.Profile{"session": {Limits: limits}} })
		if got := w.service.usualNote(); got != want {
			t.Errorf("the limits %+v: %q", limits, got)
		}
	}
	few := newWorld(t, func(c *sessions.Config) {
		c.Provisioner = oneCore{c.Provisioner}
		c.Profiles = map[string]sessions.Profile{"session": {Limits: kernels.Limits{CPUs: 2}}}
	})
	if got := few.service.usualNote(); got != "No network; 1 core" {
		t.Errorf("on a machine with one core: %q", got)
	}
	for mode, want := range map[egress.Mode]string{"": "No network", egress.None: "No network", egress.Internet: "Network: internet"} {
		w := newWorld(t, func(c *sessions.Config) {
			c.Profiles = map[string]sessions.Profile{"session": {Network: egress.Policy{Mode: mode}}}
		})
		if got := w.service.networkNote(); got != want || !strings.Contains(w.service.instructions(), want+". ") {
			t.Errorf("the mode %q: %q", mode, got)
		}
	}
}
