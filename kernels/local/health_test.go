//go:build linux

package local

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestClassify(t *testing.T) {
	tests := map[string]struct {
		out  string
		host host
		hint string
	}{
		"Ubuntu 24.04":   {"bwrap: setting up uid map: Permission denied", host{appArmor: true}, "apparmor_parser -r /etc/apparmor.d/bwrap"},
		"Ubuntu, net":    {"bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", host{appArmor: true}, "/etc/apparmor.d/bwrap"},
		"Debian switch":  {"bwrap: No permissions to creating new namespace", host{noClone: true}, "sudo sysctl -w kernel.unprivileged_userns_clone=1"},
		"none allowed":   {"bwrap: Creating new namespace failed: No space left on device", host{noUserns: true, appArmor: true}, "sudo sysctl -w user.max_user_namespaces=15000"},
		"in a container": {"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", host{container: true}, "systempaths=unconfined"},
		"masked proc":    {"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", host{}, "/proc"},
		"something else": {"bwrap: moon in the wrong house", host{}, "bwrap --unshare-all"},
		"silence":        {"", host{}, "bwrap --unshare-all"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := classify(tt.out, errors.New("exit status 1"), tt.host)
			if err.Kind != fault.Unavailable || !strings.Contains(err.Hint, tt.hint) {
				t.Errorf("%v, hint %q", err.Kind, err.Hint)
			}
			if !strings.Contains(err.Message, tt.out) || tt.out == "" && !strings.Contains(err.Message, "exit status 1") {
				t.Errorf("message %q", err.Message)
			}
		})
	}
}

func TestReadHost(t *testing.T) {
	files := map[string]string{}
	read := func(path string) ([]byte, error) {
		if s, ok := files[path]; ok {
			return []byte(s), nil
		}
		return nil, os.ErrNotExist
	}
	if got := readHost(read); got != (host{}) {
		t.Errorf("no switches: %+v", got)
	}
	files["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "0\n"
	files["/proc/sys/kernel/unprivileged_userns_clone"] = "1\n"
	files["/proc/sys/user/max_user_namespaces"] = "96365\n"
	if got := readHost(read); got != (host{}) {
		t.Errorf("all open: %+v", got)
	}
	files["/proc/sys/kernel/apparmor_restrict_unprivileged_userns"] = "1\n"
	files["/proc/sys/kernel/unprivileged_userns_clone"] = "0\n"
	files["/proc/sys/user/max_user_namespaces"] = "0\n"
	files["/.dockerenv"] = ""
	if got, want := readHost(read), (host{appArmor: true, noClone: true, noUserns: true, container: true}); got != want {
		t.Errorf("all shut: %+v", got)
	}
}

func TestInstallCommand(t *testing.T) {
	for release, want := range map[string]string{
		"ID=debian\n":                                    "sudo apt-get install a",
		"NAME=x\nID=ubuntu\nID_LIKE=debian\n":            "sudo apt-get install a",
		"ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\"\n": "sudo dnf install b",
		"ID=arch\n":  "sudo pacman -S c",
		"ID=nixos\n": "sudo apt-get install a (Debian, Ubuntu), sudo dnf install b (Fedora), sudo pacman -S c (Arch)",
		"":           "sudo apt-get install a (Debian, Ubuntu), sudo dnf install b (Fedora), sudo pacman -S c (Arch)",
	} {
		if got := installCommand(release, "a", "b", "c"); got != want {
			t.Errorf("%q: %s", release, got)
		}
	}
}

func TestAtLeast(t *testing.T) {
	for text, want := range map[string]bool{
		"bubblewrap 0.8.0\n": true, "bubblewrap 0.7": true, "bubblewrap 0.6.1": false, "bubblewrap 0.11.0": true,
		"bubblewrap 1.0.0": true, "": false, "bubblewrap": false, "bubblewrap x.y": false,
	} {
		if got := atLeast(text, 0, 7); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestHealthNamesWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	shim := filepath.Join(dir, "shim")
	if err := os.WriteFile(shim, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*Config)
		want   string // empty: healthy
		hint   string
	}{
		"no bwrap":        {func(c *Config) { c.Bwrap = "/nowhere/bwrap" }, "bubblewrap (/nowhere/bwrap) is not installed", "--sandbox=none"},
		"broken bwrap":    {func(c *Config) { c.Bwrap = "false" }, "does not work", ""},
		"no shim":         {func(c *Config) { c.ShimPath = "/nowhere/shim" }, "the shim", "make build"},
		"shim no file":    {func(c *Config) { c.ShimPath = dir }, "is not a program", "make build"},
		"shim no program": {func(c *Config) { c.ShimPath = plain }, "is not a program", "make build"},
		"none needs none": {func(c *Config) { c.Bwrap, c.Sandbox = "/nowhere/bwrap", SandboxNone }, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			cfg := Config{StateDir: filepath.Join(home, "state"), RunDir: filepath.Join(home, "run"), ShimPath: shim}
			tt.change(&cfg)
			p, err := New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			err = p.Health(t.Context())
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), tt.want) || !strings.Contains(fault.Hint(err), tt.hint) {
				t.Fatalf("%v, hint %q", err, fault.Hint(err))
			}
		})
	}
}

func TestUnsafeFolders(t *testing.T) {
	dir := t.TempDir()
	open, link := filepath.Join(dir, "open"), filepath.Join(dir, "link")
	if err := os.Mkdir(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	for name, cfg := range map[string]Config{
		"state open to all": {StateDir: open, RunDir: filepath.Join(dir, "r")},
		"run open to all":   {StateDir: filepath.Join(dir, "s"), RunDir: open},
		"run a link":        {StateDir: filepath.Join(dir, "s"), RunDir: link},
	} {
		cfg.ShimPath = "/bin/true"
		if _, err := New(cfg); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
