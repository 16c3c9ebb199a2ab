package docker

import (
	"os"
	"runtime"
	"testing"

	"github.com/docker/docker/api/types/system"
)

func TestLocate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere every engine is in a virtual machine")
	}
	here := t.TempDir()
	tests := map[string]struct {
		host string
		info system.Info
		want place
	}{
		"this system":       {"unix:///run/docker.sock", system.Info{DockerRootDir: here}, placeHere},
		"outside of us":     {"unix:///run/docker.sock", system.Info{DockerRootDir: here + "/not"}, placeAway},
		"another machine":   {"tcp://10.0.0.1:2376", system.Info{DockerRootDir: here}, placeAway},
		"a virtual machine": {"unix:///run/docker.sock", system.Info{DockerRootDir: here, OperatingSystem: "Docker Desktop"}, placeVM},
	}
	for name, tt := range tests {
		if got := locate(tt.host, tt.info); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestChoices(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("elsewhere every engine is in a virtual machine")
	}
	here, away := system.Info{DockerRootDir: t.TempDir()}, system.Info{DockerRootDir: "/nowhere"}
	desktop := here
	desktop.OperatingSystem = "Docker Desktop"
	tests := map[string]struct {
		cfg     Config
		info    system.Info
		carrier Carrier
		files   Files
	}{
		"here":            {Config{}, here, CarrierSocket, FilesBind},
		"here, stdio":     {Config{Carrier: CarrierStdio}, here, CarrierStdio, FilesBind},
		"away":            {Config{}, away, CarrierStdio, FilesVolume},
		"away, told so":   {Config{Carrier: CarrierSocket}, away, CarrierSocket, FilesBind},
		"virtual machine": {Config{}, desktop, CarrierStdio, FilesBind},
		"volumes":         {Config{Files: FilesVolume}, here, CarrierSocket, FilesVolume},
	}
	for name, tt := range tests {
		tt.cfg.Installation = "x"
		cfg, err := tt.cfg.check()
		if err != nil {
			t.Fatal(err)
		}
		e := &engine{host: "unix:///run/docker.sock", info: tt.info}
		e.choose(cfg)
		if e.carrier != tt.carrier || e.files != tt.files {
			t.Errorf("%s: %s, %s", name, e.carrier, e.files)
		}
	}
}

func TestChooseIdentity(t *testing.T) {
	uid, gid := os.Geteuid(), os.Getegid()
	if uid == 0 {
		uid, gid = 4711, 4712
	}
	cfg := Config{UID: 4711, GID: 4712}
	rootless, remapped := []string{"name=rootless"}, []string{"name=userns"}
	tests := map[string]struct {
		kind string
		info system.Info
		want identity
	}{
		"docker":          {KindDocker, system.Info{}, identity{uid, gid, user(uid, gid), ""}},
		"podman":          {KindPodman, system.Info{}, identity{uid, gid, user(uid, gid), ""}},
		"rootless podman": {KindPodman, system.Info{SecurityOptions: rootless}, identity{uid, gid, user(uid, gid), "keep-id"}},
		"rootless docker": {KindDocker, system.Info{SecurityOptions: rootless}, identity{uid, gid, "0:0", ""}},
		"userns-remap":    {KindDocker, system.Info{SecurityOptions: remapped, DockerRootDir: "/var/lib/docker/100000.200000"}, identity{100000 + uid, 200000 + gid, user(uid, gid), ""}},
	}
	for name, tt := range tests {
		if got := chooseIdentity(cfg, tt.kind, tt.info); got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestConfigCheck(t *testing.T) {
	if c, err := (Config{Installation: "a.b-c_1"}).check(); err != nil || c.UID != DefaultUID || c.GID != DefaultUID || c.Carrier != CarrierAuto || c.Logger == nil {
		t.Errorf("%+v, %v", c, err)
	}
	for name, c := range map[string]Config{
		"no installation":  {},
		"bad installation": {Installation: "a=b"},
		"carrier":          {Installation: "a", Carrier: "pigeon"},
		"files":            {Installation: "a", Files: "tape"},
		"uid":              {Installation: "a", UID: -1},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
