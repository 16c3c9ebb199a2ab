//go:build linux

package local

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

const (
	mountsV1 = `31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct
34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory
39 31 0:36 /docker/abc /sys/fs/cgroup/my\040pids rw,relatime - cgroup cgroup rw,pids
40 31 0:37 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
`
	mountsV2 = `28 22 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot
29 22 0:27 / /broken
`
)

func TestParseMountinfo(t *testing.T) {
	want := []tree{
		{1, "/sys/fs/cgroup/cpu,cpuacct", "/", []string{cpu, cpuacct}},
		{1, "/sys/fs/cgroup/memory", "/", []string{memory}},
		{1, "/sys/fs/cgroup/my pids", "/docker/abc", []string{pids}},
	}
	if got := parseMountinfo(strings.NewReader(mountsV1)); !reflect.DeepEqual(got, want) {
		t.Errorf("v1: %+v", got)
	}
	if got := parseMountinfo(strings.NewReader(mountsV2)); !reflect.DeepEqual(got, []tree{{version: 2, mount: "/sys/fs/cgroup", root: "/"}}) {
		t.Errorf("v2: %+v", got)
	}
}

func TestOwnPath(t *testing.T) {
	const own = "9:pids:/docker/abc/x\n8:cpu,cpuacct:/cpus\n4:memory:/mem:with:colons\n0::/user.slice/me\n"
	tests := map[string]struct {
		tree tree
		want string
	}{
		"v2":        {tree{version: 2, mount: "/cg", root: "/"}, "/cg/user.slice/me"},
		"v1":        {tree{version: 1, mount: "/cg", root: "/", controllers: []string{memory}}, "/cg/mem:with:colons"},
		"joint":     {tree{version: 1, mount: "/cg", root: "/", controllers: []string{cpuacct}}, "/cg/cpus"},
		"part":      {tree{version: 1, mount: "/cg", root: "/docker/abc", controllers: []string{pids}}, "/cg/x"},
		"elsewhere": {tree{version: 1, mount: "/cg", root: "/docker/other", controllers: []string{pids}}, "/cg"},
		"none":      {tree{version: 1, mount: "/cg", root: "/", controllers: []string{"blkio"}}, "/cg"},
	}
	for name, tt := range tests {
		if got := tt.tree.dir(ownPath(strings.NewReader(own), tt.tree)); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func FuzzParseCgroups(f *testing.F) {
	f.Add(mountsV1+mountsV2, "0::/x")
	f.Add(`1 1 0:1 / /a\04 rw - cgroup2 c rw`, "1:memory")
	f.Fuzz(func(t *testing.T, mounts, own string) {
		for _, tree := range parseMountinfo(strings.NewReader(mounts)) {
			dir := tree.dir(ownPath(strings.NewReader(own), tree))
			if !within(dir, filepath.Clean(tree.mount)) && filepath.IsAbs(tree.mount) {
				t.Fatalf("%q is outside %q", dir, tree.mount)
			}
		}
	})
}

// fakeParents are folders with the files of a controller, for what a real file system of cgroups would not show here.
func fakeParents(t *testing.T, version int, names ...string) cgroups {
	t.Helper()
	return cgroups{prefix: "p", log: slog.New(slog.DiscardHandler), parents: []groupDir{{Path: t.TempDir(), Version: version, Controllers: names}}}
}

func TestSettings(t *testing.T) {
	limits := groupLimits{memory: 512<<20 + 1, pids: 99, cpus: 1.5}
	tests := map[string]struct {
		version int
		files   map[string]string // before
		want    map[string]string // after
		ignored bool
	}{
		"v2": {2, map[string]string{"memory.max": "", "memory.swap.max": "", "cpu.max": "", "pids.max": ""},
			map[string]string{"memory.max": "536870913", "memory.swap.max": "0", "cpu.max": "150000 100000", "pids.max": "99"}, false},
		"v2 without swap": {2, map[string]string{"memory.max": "", "cpu.max": "", "pids.max": ""},
			map[string]string{"memory.max": "536870913"}, false},
		"v1": {1, map[string]string{"memory.limit_in_bytes": "", "memory.memsw.limit_in_bytes": "", "cpu.cfs_period_us": "", "cpu.cfs_quota_us": "", "pids.max": ""},
			map[string]string{"memory.limit_in_bytes": "536870913", "memory.memsw.limit_in_bytes": "536870913", "cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000", "pids.max": "99"}, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := groupDir{Path: t.TempDir(), Version: tt.version, Controllers: []string{memory, cpu, pids}}
			for file, content := range tt.files {
				if err := os.WriteFile(filepath.Join(dir.Path, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := dir.limit(limits); err != nil {
				t.Fatal(err)
			}
			for file, want := range tt.want {
				if got, _ := os.ReadFile(filepath.Join(dir.Path, file)); string(got) != want {
					t.Errorf("%s: %q, want %q", file, got, want)
				}
			}
		})
	}
}

// A host that takes a limit and then shows another is found out, and the other limits are set all the same.
func TestIgnoredLimit(t *testing.T) {
	dir := groupDir{Path: t.TempDir(), Version: 2, Controllers: []string{memory, pids}}
	if err := os.Symlink("/dev/null", filepath.Join(dir.Path, "memory.max")); err != nil {
		t.Fatal(err)
	}
	if err := dir.limit(groupLimits{memory: 1 << 20}); err == nil {
		t.Error("followed a link")
	}
	_ = os.Remove(filepath.Join(dir.Path, "memory.max"))
	for _, file := range []string{"memory.max", "pids.max"} {
		if err := os.WriteFile(filepath.Join(dir.Path, file), []byte("9223372036854771712"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	err := dir.limit(groupLimits{memory: 1 << 20, pids: 9}) // the rest of the longer number stays behind it
	if !errors.Is(err, errIgnored) || !strings.Contains(err.Error(), "memory.max") {
		t.Errorf("got %v", err)
	}
	if got, _ := os.ReadFile(filepath.Join(dir.Path, "pids.max")); got[0] != '9' {
		t.Errorf("pids.max: %s", got)
	}
}

func TestBytesSettingRoundsToPages(t *testing.T) {
	page := int64(os.Getpagesize())
	s := bytesSetting("f", 10*page+5)
	for got, want := range map[string]bool{"40960": page == 4096, "max": false, "": false, "9223372036854771712": false, "4096": false} {
		if s.holds(got) != want {
			t.Errorf("%q: %v", got, !want)
		}
	}
}

func TestGroupBinds(t *testing.T) {
	v1 := group{Dirs: []groupDir{{"/cg/memory/x", 1, []string{memory}}, {"/cg/cpu/x", 1, []string{cpu, cpuacct}}}}
	want := []bind{
		{source: "/cg/memory/x", target: "/sys/fs/cgroup/memory"}, {source: "/cg/cpu/x", target: "/sys/fs/cgroup/cpu"},
		{source: "/cg/cpu/x", target: "/sys/fs/cgroup/cpuacct"},
	}
	if got := v1.binds(); !reflect.DeepEqual(got, want) || countsInside(v1) != "" {
		t.Errorf("v1: %v", got)
	}
	v2 := group{Dirs: []groupDir{{"/cg/x", 2, []string{memory, pids}}}}
	if got := v2.binds(); !reflect.DeepEqual(got, []bind{{source: "/cg/x", target: cgroupPath}}) || countsInside(v2) != cgroupPath {
		t.Errorf("v2: %v", got)
	}
	if got := (group{}).binds(); got != nil || countsInside(group{}) != "" {
		t.Errorf("none: %v", got)
	}
}

func TestMakeAndRemove(t *testing.T) {
	c := fakeParents(t, 2)
	g, err := c.make("abc", groupLimits{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.make("abc", groupLimits{}); !errors.Is(err, os.ErrExist) {
		t.Error("made twice:", err)
	}
	if err := errors.Join(g.remove(t.Context()), g.remove(t.Context())); err != nil {
		t.Error(err)
	}
}

func TestGroupKill(t *testing.T) {
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	g := group{Dirs: []groupDir{{t.TempDir(), 1, []string{pids}}}}
	g.killOne(cmd.Process.Pid) // not one of the group's
	if st, err := readStat(cmd.Process.Pid); err != nil || st.zombie {
		t.Fatalf("killed, although it is not in the group: %v", err)
	}
	if err := os.WriteFile(filepath.Join(g.Dirs[0].Path, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.kill()
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatal(err)
	}
}

func TestOOMKills(t *testing.T) {
	for version, file := range map[int]string{1: "memory.oom_control", 2: "memory.events"} {
		g := group{Dirs: []groupDir{{t.TempDir(), version, []string{memory}}}}
		if got := g.oomKills(); got != 0 {
			t.Errorf("v%d without a file: %d", version, got)
		}
		content := "low 0\noom 4\noom_kill 3\nodd\nunder_oom 9\n"
		if err := os.WriteFile(filepath.Join(g.Dirs[0].Path, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := g.oomKills(); got != 3 {
			t.Errorf("v%d: %d", version, got)
		}
	}
}

func TestScope(t *testing.T) {
	s := &scope{run: "/usr/bin/systemd-run"}
	got := strings.Join(s.argv("p-id", groupLimits{memory: 1 << 30, cpus: 0.5, pids: 10}), " ")
	want := "/usr/bin/systemd-run --user --scope --quiet --collect --slice=cellblock.slice --unit=cellblock-p-id " +
		"--property=MemoryMax=1073741824 --property=MemorySwapMax=0 --property=CPUQuota=50% --property=TasksMax=10 --"
	if got != want {
		t.Errorf("got %s", got)
	}
	probe := groupLimits{memory: 64 << 20, cpus: 1, pids: 64}
	const report = "/user.slice/u.slice/user@1.service/cellblock.slice/cellblock-probe-1.scope\nmemory.max 67108864\nmemory.swap.max 0\ncpu.max max 100000\npids.max 64\n"
	if err := s.read(tree{version: 2, mount: "/cg", root: "/"}, report, probe); err != nil {
		t.Fatal(err)
	}
	d := s.dir("p", "id")
	if d.Path != "/cg/user.slice/u.slice/user@1.service/cellblock.slice/cellblock-p-id.scope" || !reflect.DeepEqual(d.Controllers, []string{memory, pids}) {
		t.Errorf("%+v", d)
	}
	if err := (&scope{}).read(tree{version: 2}, "/x\nmemory.max max\n", probe); err == nil {
		t.Error("a scope without limits was taken")
	}
}

func TestBusEnv(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": "/run/user/1", "SECRET": "x", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/b"}
	got := busEnv(func(k string) string { return env[k] })
	if strings.Contains(strings.Join(got, " "), "SECRET") || len(got) != 3 {
		t.Error(got)
	}
	if got := busEnv(func(string) string { return "" }); got != nil {
		t.Error(got)
	}
}
