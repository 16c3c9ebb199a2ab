package local

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"io/fs"
)

func fullSandbox() sandbox {
	return sandbox{
		readOnly:  []bind{{source: "/usr", target: "/usr"}, {source: "/etc/fonts", target: "/etc/fonts", optional: true}},
		links:     []link{{"usr/bin", "/bin"}},
		files:     []file{{8, "/etc/passwd"}},
		tmpfs:     []tmpfs{{"/dev/shm", 4096}, {"/run", 8192}, {"/tmp", 0}},
		further:   []bind{{source: "/opt/venv", target: "/opt/venv"}},
		cgroups:   []bind{{source: "/sys/fs/cgroup/cellblock/x", target: cgroupPath}},
		workspace: "/data/ws", shim: "/opt/shim", config: `{"a":1}`, configEnv: "SHIM", seccompFD: 9, infoFD: 5, statusFD: 6,
		sized: true,
	}
}

// The order is bubblewrap's order of work, so it is part of what is promised.
func TestArgs(t *testing.T) {
	want := strings.Fields(`
		--unshare-user --unshare-pid --unshare-net --unshare-ipc --unshare-uts --unshare-cgroup
		--as-pid-1 --new-session --cap-drop ALL --hostname cellblock --info-fd 5 --json-status-fd 6 --seccomp 9
		--ro-bind /usr /usr --ro-bind-try /etc/fonts /etc/fonts --symlink usr/bin /bin --perms 0644 --file 8 /etc/passwd
		--proc /proc --dev /dev
		--size 4096 --tmpfs /dev/shm --size 8192 --tmpfs /run --tmpfs /tmp --dir /run/home
		--ro-bind /opt/venv /opt/venv --ro-bind /sys/fs/cgroup/cellblock/x /sys/fs/cgroup
		--bind /data/ws /workspace --remount-ro /dev --remount-ro / --clearenv --setenv SHIM {"a":1} --chdir /
		--ro-bind /opt/shim /run/cellblock-shim`)
	if got := fullSandbox().args(); !slices.Equal(got, want) {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

func TestArgsChoices(t *testing.T) {
	tests := map[string]struct {
		change    func(*sandbox)
		has, lack []string
	}{
		"old bubblewrap":   {func(s *sandbox) { s.sized = false }, []string{"--tmpfs /tmp"}, []string{"--size"}},
		"no filter":        {func(s *sandbox) { s.seccompFD = 0 }, nil, []string{"--seccomp"}},
		"tmp of the host":  {func(s *sandbox) { s.tmpfs, s.scratch = s.tmpfs[:2], []bind{{source: "/tmp/scratch0", target: "/tmp"}} }, []string{"--bind /tmp/scratch0 /tmp"}, []string{"--tmpfs /tmp"}},
		"probe":            {func(s *sandbox) { s.workspace, s.shim, s.config = "", "", "" }, nil, []string{"/workspace", shimPath, "--setenv"}},
		"never with these": {func(*sandbox) {}, nil, []string{"--die-with-parent", "--share-net", "--dev-bind", "--cap-add", "--uid"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := fullSandbox()
			tt.change(&s)
			got := strings.Join(s.args(), " ")
			for _, w := range tt.has {
				if !strings.Contains(got, w) {
					t.Errorf("%q is missing in %s", w, got)
				}
			}
			for _, w := range tt.lack {
				if strings.Contains(got, w) {
					t.Errorf("%q is in %s", w, got)
				}
			}
		})
	}
}

func TestEncodeRefusesNUL(t *testing.T) {
	if b, err := encode([]string{"a", "", "b c"}); err != nil || string(b) != "a\x00\x00b c\x00" {
		t.Fatalf("%q, %v", b, err)
	}
	if _, err := encode([]string{"a", "b\x00--share-net"}); err == nil {
		t.Fatal("an option was smuggled in")
	}
}

func TestReadSystem(t *testing.T) {
	root := fstest.MapFS{
		"usr/bin/python3": {Mode: 0o755}, "opt/x": {}, "etc/python3.11/sitecustomize.py": {}, "etc/python3/x": {}, "lib64/ld.so": {},
		"bin": {Data: []byte("usr/bin"), Mode: fs.ModeSymlink | 0o777}, "etc/shadow": {},
	}
	s := readSystem(root)
	var targets []string
	for _, b := range s.binds {
		if !b.optional {
			targets = append(targets, b.target)
		}
		if b.source != b.target {
			t.Errorf("%+v", b)
		}
	}
	if !slices.Equal(targets, []string{"/usr", "/lib64"}) || !slices.Equal(s.links, []link{{"usr/bin", "/bin"}}) {
		t.Errorf("binds %v, links %v", targets, s.links)
	}
	for path, want := range map[string]bool{
		"/usr/bin/python3": true, "/bin/sh": true, "/etc/python3.11/sitecustomize.py": true, "/etc/shadow": false, "/etc": false,
		"/opt/x": false, "/opt/venv/bin/python": true, "/opt/venv2/x": false, "/usrx": false,
	} {
		if got := s.shows(path, []string{"/opt/venv"}); got != want {
			t.Errorf("shows %s: %v", path, got)
		}
	}
}

func TestKernelEnv(t *testing.T) {
	for cpus, threads := range map[float64]string{0.5: "1", 1: "1", 1.5: "2", 2: "2"} {
		env := kernelEnv("/run/home", "/bin", cpus, map[string]string{"A": "spec", "B": "spec"}, map[string]string{"A": "own"})
		for _, want := range []string{"OMP_NUM_THREADS=" + threads, "OPENBLAS_NUM_THREADS=" + threads, "PYTHON_CPU_COUNT=" + threads, "A=own", "B=spec", "HOME=/run/home", "LANG=C.UTF-8"} {
			if !slices.Contains(env, want) {
				t.Errorf("%v CPUs: no %s in %v", cpus, want, env)
			}
		}
	}
	if env := kernelEnv("/h", "/bin", 0); slices.ContainsFunc(env, func(s string) bool { return strings.Contains(s, "THREADS") || strings.Contains(s, "CPU") }) {
		t.Error("threads bounded without a limit:", env)
	}
	if env := kernelEnv("/h", "/bin", 1, map[string]string{"OMP_NUM_THREADS": "7"}); !slices.Contains(env, "OMP_NUM_THREADS=7") {
		t.Error("the kernelspec's own number was not taken:", env)
	}
}

func TestConfigCheck(t *testing.T) {
	valid := func() Config { return Config{StateDir: "/var/lib/x/state", RunDir: "/run/x", ShimPath: "/opt/shim"} }
	tests := map[string]struct {
		change func(*Config)
		want   string // empty: fine
	}{
		"as it is":         {func(*Config) {}, ""},
		"no state":         {func(c *Config) { c.StateDir = "" }, "StateDir is empty"},
		"no run":           {func(c *Config) { c.RunDir = "" }, "RunDir is empty"},
		"no shim":          {func(c *Config) { c.ShimPath = "" }, "ShimPath is empty"},
		"strange sandbox":  {func(c *Config) { c.Sandbox = "jail" }, `"jail" is neither`},
		"root by the back": {func(c *Config) { c.UID = -1 }, "negative"},
		"relative":         {func(c *Config) { c.ReadOnlyPaths = []string{"venv"} }, "not absolute"},
		"everything":       {func(c *Config) { c.ReadOnlyPaths = []string{"/"} }, "would hide or show"},
		"the state":        {func(c *Config) { c.ReadOnlyPaths = []string{"/var/lib/x"} }, "/var/lib/x/state"},
		"the sockets":      {func(c *Config) { c.ReadOnlyPaths = []string{"/run/../run/x/"} }, "/run/x"},
		"processes":        {func(c *Config) { c.ReadOnlyPaths = []string{"/proc"} }, "/proc"},
		"a neighbour":      {func(c *Config) { c.ReadOnlyPaths = []string{"/var/lib/xx", "/opt"} }, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			c := valid()
			tt.change(&c)
			err := c.check()
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Fatalf("%v, want %q", err, tt.want)
			}
		})
	}
}
