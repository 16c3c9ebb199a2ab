package docker

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/mount"
	"github.com/docker/go-units"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

var update = flag.Bool("update", false, "rewrite golden files")

// examplePlan is a plan with everything in it.
func examplePlan() plan {
	return plan{
		spec: kernels.Spec{
			ID: "k0123456789", Image: "cellblock-python:latest", Workspace: "/srv/w",
			Kernelspec: kernels.Kernelspec{Name: "python3", Language: "python", Argv: []string{"python3", "-f", "{connection_file}"},
				Env: map[string]string{"FROM": "kernelspec"}},
			Limits: kernels.Limits{Memory: 2 << 30, CPUs: 1.5, PIDs: 256, FileSize: 1 << 30, Tmp: 256 << 20, Files: 4096},
			Env:    map[string]string{"FROM": "caller", "OMP_NUM_THREADS": "7"},
			Labels: map[string]string{"team": "blue", labelKernel: "forged"},
		},
		installation: "test",
		slot:         "s0",
		user:         identity{uid: DefaultUID, gid: DefaultUID, user: "59437:59437"},
		imageEnv:     []string{"PATH=/image/bin", "FROM=image", "MPLCONFIGDIR=/x", "HOME=/root"},
		shim:         mount.Mount{Type: mount.TypeBind, Source: "/opt/shim", Target: shimPath, ReadOnly: true},
		workspace:    mount.Mount{Type: mount.TypeBind, Source: "/srv/w", Target: workspaceDir},
		socket:       "/run/cellblock/k0123456789",
	}
}

func TestContainerGolden(t *testing.T) {
	stdio := examplePlan()
	stdio.socket, stdio.attachKey = "", strings.Repeat("0", 32)
	stdio.user = identity{user: "1000:1000", userns: "keep-id"}
	stdio.extras.runtime = "runsc"
	bare := examplePlan()
	bare.spec.Limits, bare.spec.Env, bare.spec.Labels, bare.imageEnv = kernels.Limits{}, nil, nil, nil
	for name, p := range map[string]plan{"socket": examplePlan(), "stdio": stdio, "bare": bare} {
		t.Run(name, func(t *testing.T) {
			config, host := p.config()
			got, err := json.MarshalIndent(map[string]any{"config": config, "host": host, "shim": json.RawMessage(p.shimConfig())}, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, '\n')
			path := filepath.Join("testdata", "container-"+name+".json")
			if *update {
				if err := os.WriteFile(path, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || string(got) != string(want) {
				t.Errorf("differs from %s (-update rewrites it): %v\n%s", path, err, firstDifference(string(got), string(want)))
			}
		})
	}
}

// firstDifference is the first line of got that is not in its place in want.
func firstDifference(got, want string) string {
	lines := strings.Split(want, "\n")
	for i, line := range strings.Split(got, "\n") {
		if i >= len(lines) || lines[i] != line {
			return line
		}
	}
	return "shorter than wanted"
}

// What must hold for every container, whatever the plan says.
func TestContainerIsAlwaysConfined(t *testing.T) {
	hostile := examplePlan()
	hostile.spec.Labels = map[string]string{labelInstallation: "another", labelSlot: "s9", labelCarrier: "x"}
	hostile.spec.Env = map[string]string{stream.ConfigEnv: "{}"}
	for _, p := range []plan{examplePlan(), hostile, {}} {
		config, host := p.config()
		switch {
		case host.Privileged, !host.ReadonlyRootfs, !host.NetworkMode.IsNone(), host.AutoRemove, host.PidMode != "", !host.IpcMode.IsPrivate(),
			!slices.Equal(host.CapDrop, []string{"ALL"}), len(host.CapAdd) != 0, !slices.Equal(host.SecurityOpt, []string{"no-new-privileges"}),
			host.MemorySwap != host.Memory, host.Init == nil || *host.Init, config.Tty, host.OomKillDisable != nil:
			t.Errorf("not confined: %+v", host)
		}
		for dir, options := range host.Tmpfs {
			for _, want := range []string{"noexec", "nosuid", "nodev"} {
				if !slices.Contains(strings.Split(options, ","), want) {
					t.Errorf("%s: no %s in %s", dir, want, options)
				}
			}
		}
		if config.Labels[labelInstallation] != p.installation || config.Labels[labelSlot] != p.slot || config.Labels[labelCarrier] != string(p.carrier()) {
			t.Errorf("labels %v", config.Labels)
		}
		if len(config.Env) != 1 || !strings.HasPrefix(config.Env[0], stream.ConfigEnv+"=") {
			t.Errorf("environment of the shim: %v", config.Env)
		}
	}
}

func TestKernelEnvironment(t *testing.T) {
	env := examplePlan().environment()
	for _, want := range []string{"PATH=/image/bin", "FROM=caller", "MPLCONFIGDIR=/x", "HOME=/home/cellblock", "OPENBLAS_NUM_THREADS=2", "OMP_NUM_THREADS=7"} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is missing in %v", want, env)
		}
	}
	if !slices.IsSorted(env) {
		t.Errorf("not in order: %v", env)
	}
}

func TestUlimitsOfTheEngineGiveWay(t *testing.T) {
	p := examplePlan()
	p.ulimits = []*units.Ulimit{{Name: "nofile", Soft: 9, Hard: 9}, {Name: "nproc", Soft: 8, Hard: 8}}
	got := map[string]int64{}
	for _, u := range p.resources().Ulimits {
		if _, twice := got[u.Name]; twice {
			t.Errorf("%s twice", u.Name)
		}
		got[u.Name] = u.Hard
	}
	if got["nofile"] != 4096 || got["nproc"] != 8 {
		t.Errorf("got %v", got)
	}
}

func TestCarrierOfAContainer(t *testing.T) {
	inspect := func(p plan) container.InspectResponse {
		config, _ := p.config()
		r := container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{ID: "c1"}, Config: config}
		if p.socket != "" {
			r.Mounts = []container.MountPoint{{Source: p.socket, Destination: socketDir}}
		}
		return r
	}
	c, err := carrierOf(&engine{}, inspect(examplePlan()))
	if s, ok := c.(*socketCarrier); err != nil || !ok || s.dir != "/run/cellblock/k0123456789" {
		t.Errorf("socket: %+v, %v", c, err)
	}
	stdio := examplePlan()
	stdio.socket, stdio.attachKey = "", stream.NewAttachKey()
	c, err = carrierOf(&engine{}, inspect(stdio))
	if s, ok := c.(*stdioCarrier); err != nil || !ok || s.key != stdio.attachKey || s.container != "c1" {
		t.Errorf("stdio: %+v, %v", c, err)
	}
	if _, err := carrierOf(&engine{}, container.InspectResponse{ContainerJSONBase: &container.ContainerJSONBase{}, Config: &container.Config{}}); err == nil {
		t.Error("a container without either has a carrier")
	}
}
