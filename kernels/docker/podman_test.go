package docker

import (
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/system"
)

func TestPodmanIsCorrected(t *testing.T) {
	claims := system.Info{MemoryLimit: true, SwapLimit: true, PidsLimit: true, CPUCfsQuota: true, CgroupVersion: "2",
		SecurityOptions: []string{"name=seccomp,profile=default"}, DockerRootDir: "/home/u/.local/share/containers/storage"}
	tests := map[string]struct {
		version     string
		rootless    bool
		controllers []string
		weak        []string
	}{
		"rootful":                 {"v2", false, []string{"cpu", "memory", "pids"}, nil},
		"rootless, all delegated": {"v2", true, []string{"cpu", "memory", "pids"}, nil},
		"rootless, no cpu":        {"v2", true, []string{"memory", "pids"}, []string{"the CPU limit"}},
		"rootless, cgroup v1":     {"v1", true, nil, []string{"the CPU limit", "processes and threads", "the memory limit"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			info := claims
			info.CgroupVersion = strings.TrimPrefix(tt.version, "v")
			var p podmanInfo
			p.Host.CgroupVersion, p.Host.CgroupControllers, p.Host.Security.Rootless = tt.version, tt.controllers, tt.rootless
			p.Store.GraphRoot = "/elsewhere"
			p.correct(&info)
			if hasSecurity(info, "rootless") != tt.rootless || info.DockerRootDir != "/elsewhere" {
				t.Errorf("%+v", info)
			}
			got := engineWeaknesses(info)
			if len(got) != len(tt.weak) {
				t.Errorf("weak: %v", got)
			}
			for i, want := range tt.weak {
				if i < len(got) && !strings.Contains(got[i], want) {
					t.Errorf("%q instead of %q", got[i], want)
				}
			}
			if !slices.Equal(claims.SecurityOptions, []string{"name=seccomp,profile=default"}) {
				t.Error("changed somebody else's slice")
			}
		})
	}
}
