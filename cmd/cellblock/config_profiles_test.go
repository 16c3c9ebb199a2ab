package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellblock/egress"
	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// loadText reads a configuration file with some text.
func loadText(t *testing.T, text string, environ ...string) (*Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cellblock.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return loadConfig(sources{named: path, environ: environ})
}

// A profile of which nothing is said has everything from session; a built-in one stays what it is.
func TestEmptyProfiles(t *testing.T) {
	want, err := loadText(t, "profiles: {session: {memory: 1GB}}")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"{session: {memory: 1GB}, lab: {}, isolated: {}}", "{session: {memory: 1GB}, lab: , isolated: }"} {
		cfg, err := loadText(t, "profiles: "+text)
		if err != nil {
			t.Errorf("%s: %v", text, fault.Text(err))
			continue
		}
		got := cfg.profiles()
		if lab, ok := got["lab"]; !ok || !reflect.DeepEqual(lab, got["session"]) || lab.Limits.Memory != 1<<30 {
			t.Errorf("%s: %+v", text, lab)
		}
		if delete(got, "lab"); !reflect.DeepEqual(got, want.profiles()) {
			t.Errorf("%s: %+v", text, got)
		}
	}
	for _, text := range []string{"{Lab: {}}", "{lab: 5}", "{lab: []}"} {
		if _, err := loadText(t, "profiles: "+text); fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// The built-in profiles are what the documentation says.
func TestBuiltInProfiles(t *testing.T) {
	cfg, err := loadText(t, "profiles: {session: {tmp: 64MB}, isolated: {memory: 1GB}}", "CELLBLOCK_PROFILES_DEVELOPMENT_FILE_SIZE=1GB")
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	session := kernels.Limits{Memory: 2 << 30, CPUs: 2, PIDs: 256, FileSize: 4 << 30, Tmp: 64 << 20, Files: 4096}
	isolated, development := session, session
	isolated.Memory, isolated.CPUs, isolated.PIDs = 1<<30, 0.5, 128
	development.Memory, development.FileSize = 4<<30, 1<<30
	want := map[string]sessions.Profile{
		"session": {Limits: session}, "isolated": {Limits: isolated, Once: true},
		"development": {Limits: development, Network: egress.Policy{Mode: egress.Internet}},
	}
	if got := cfg.profiles(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}

// An operator's own profile has all that a profile can have.
func TestOwnProfile(t *testing.T) {
	root := t.TempDir()
	cfg, err := loadText(t, fmt.Sprintf(`
mount_roots: [%[1]s]
profiles:
  lab-1:
    memory: 16GB
    timeout: {default: 30m, max: 12h}
    network: {mode: hosts, hosts: [pypi.org], private: ["10.0.0.0/8"]}
    mounts: [{source: %[1]s, target: /data, writable: true}]
    runtime: runsc
    devices: [nvidia.com/gpu=all, /dev/fuse]
`, root))
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	want := sessions.Profile{
		Limits:         kernels.Limits{Memory: 16 << 30, CPUs: 2, PIDs: 256, FileSize: 4 << 30, Tmp: 256 << 20, Files: 4096},
		DefaultTimeout: 30 * time.Minute, MaxTimeout: 12 * time.Hour,
		Network: egress.Policy{Mode: egress.Hosts, Hosts: []string{"pypi.org"}, Private: []string{"10.0.0.0/8"}},
		Mounts:  []kernels.Mount{{Source: root, Target: "/data", Writable: true}}, Runtime: "runsc", Devices: []string{"nvidia.com/gpu=all", "/dev/fuse"},
	}
	if got := cfg.profiles()["lab-1"]; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if got := cfg.Profiles["lab-1"].describe("lab-1"); got != "lab-1 (network hosts; "+root+" at /data, writable; runsc; nvidia.com/gpu=all; /dev/fuse)" {
		t.Error(got)
	}
}

// Of a profile's timeouts one may be said alone.
func TestHalfATimeout(t *testing.T) {
	for text, want := range map[string]TimeoutConfig{
		"{default: 2h}": {2 * time.Hour, 2 * time.Hour}, "{max: 2h}": {10 * time.Minute, 2 * time.Hour}, "{max: 1m}": {time.Minute, time.Minute}, "{default: 1m}": {time.Minute, time.Hour},
	} {
		cfg, err := loadText(t, "timeout: {default: 10m, max: 1h}\nprofiles: {lab: {timeout: "+text+"}}")
		if err != nil || cfg.Profiles["lab"].Timeout != want {
			t.Errorf("%s: %+v, %v", text, cfg.Profiles["lab"].Timeout, err)
		}
	}
}

func TestBadProfiles(t *testing.T) {
	root := t.TempDir()
	if err := os.Mkdir(root+"/sub", 0o755); err != nil {
		t.Fatal(err)
	}
	roots := "mount_roots: [" + root + "]\n"
	for name, tt := range map[string]struct{ text, says, hint string }{
		"unknown key":          {"profiles: {lab: {memry: 1GB}}", `unknown key "profiles.lab.memry"`, `"profiles.lab.memory"`},
		"unknown network key":  {"profiles: {lab: {network: {modus: none}}}", "profiles.lab.network.modus", `"profiles.lab.network.mode"`},
		"unknown mount key":    {roots + "profiles: {lab: {mounts: [{source: " + root + ", targt: /data}]}}", "profiles.lab.mounts.0.targt", `"profiles.lab.mounts.0.target"`},
		"mounts are no list":   {"profiles: {lab: {mounts: /srv}}", "profiles.lab.mounts", ""},
		"bad name":             {"profiles: {Lab: {memory: 1GB}}", `cannot be called "Lab"`, "small letters"},
		"too little":           {"profiles: {lab: {memory: 1MB}}", "profiles.lab.memory is too little", "128MB"},
		"a short timeout":      {"profiles: {lab: {timeout: {default: 1ms}}}", "profiles.lab.timeout", "at least 1s"},
		"one timeout":          {"profiles: {lab: {timeout: 30m}}", `unknown key "profiles.lab.timeout"`, "It is a group, of profiles.lab.timeout.default, profiles.lab.timeout.max"},
		"a URL for a host":     {"profiles: {lab: {network: {mode: hosts, hosts: ['https://pypi.org/simple']}}}", "is an address of the web", "Write the name alone: pypi.org"},
		"bad mode":             {"profiles: {lab: {network: {mode: internt}}}", `profiles.lab.network: the mode "internt"`, "internet"},
		"hosts without mode":   {"profiles: {lab: {network: {hosts: [pypi.org]}}}", "profiles.lab.network", "mode: hosts"},
		"no roots":             {"profiles: {lab: {mounts: [{source: " + root + ", target: /data}]}}", "profiles.lab.mounts", "mount_roots"},
		"outside of the roots": {"mount_roots: [" + root + "/sub]\nprofiles: {lab: {mounts: [{source: " + root + ", target: /data}]}}", "lies below none", "mount_roots"},
		"over the system":      {roots + "profiles: {lab: {mounts: [{source: " + root + ", target: /usr}]}}", `target "/usr"`, "/data"},
		"inside of a writable one": {roots + "profiles: {a: {mounts: [{source: " + root + ", target: /data, writable: true}]}, b: {mounts: [{source: " + root + "/sub, target: /data}]}}",
			"profiles.b.mounts", "read-only"},
		"bad runtime":       {"profiles: {lab: {runtime: '--privileged'}}", "profiles.lab.runtime", "runsc"},
		"bad device":        {"profiles: {lab: {devices: [/etc/passwd]}}", `"/etc/passwd" is no device`, "/dev/fuse"},
		"device with dots":  {"profiles: {lab: {devices: [/dev/../etc]}}", "is no device", ""},
		"session for once":  {"profiles: {session: {once: true}}", "profiles.session.once", "isolated"},
		"once is no answer": {"profiles: {lab: {once: maybe}}", "profiles.lab.once", ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := loadText(t, tt.text)
			if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), tt.says) || !strings.Contains(fault.Hint(err), tt.hint) {
				t.Errorf("got %v", fault.Text(err))
			}
		})
	}
	if _, err := loadText(t, "", "CELLBLOCK_PROFILES_LAB_MOUNTS=x"); err == nil {
		t.Error("mounts from a variable")
	}
}
