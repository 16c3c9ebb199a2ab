package docker

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/kernels/stream"
)

// listen makes a socket that accepts and drops.
func listen(t *testing.T, path string) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
}

func TestDialSocketFollowsNoLinks(t *testing.T) {
	elsewhere := shortDir(t)
	listen(t, filepath.Join(elsewhere, "s"))
	plain := func(dir string) error { return os.WriteFile(filepath.Join(dir, "s"), nil, 0o600) }
	tests := map[string]struct {
		make func(dir string) error
		want string
	}{
		"nothing there":     {func(string) error { return nil }, "no such file"},
		"a file":            {plain, "not a socket"},
		"a folder":          {func(dir string) error { return os.Mkdir(filepath.Join(dir, "s"), 0o700) }, "not a socket"},
		"a link to another": {func(dir string) error { return os.Symlink(filepath.Join(elsewhere, "s"), filepath.Join(dir, "s")) }, "not a socket"},
		"folder is a link": {func(dir string) error {
			if err := os.Remove(dir); err != nil {
				return err
			}
			return os.Symlink(elsewhere, dir)
		}, "not a directory"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(shortDir(t), "k")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := tt.make(dir); err != nil {
				t.Fatal(err)
			}
			conn, err := dialSocket(t.Context(), dir, "s")
			if err == nil {
				conn.Close()
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// A socket's address has 107 bytes; the data folder of somebody may be deeper.
func TestDialSocketUnderALongPath(t *testing.T) {
	short := shortDir(t)
	listen(t, filepath.Join(short, "s"))
	long := filepath.Join(short, strings.Repeat("d", 120))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(short, "s"), filepath.Join(long, "s")); err != nil {
		t.Fatal(err)
	}
	conn, err := dialSocket(t.Context(), long, "s")
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}

// The shim gets the socket that the server has made, and is reached by it, however deep the run folder is.
func TestAwaitSocket(t *testing.T) {
	for name, deep := range map[string]string{"short": "run", "long": strings.Repeat("d", 120)} {
		t.Run(name, func(t *testing.T) {
			c, err := makeSocketDir(filepath.Join(shortDir(t), deep, "k"), os.Geteuid(), os.Getegid())
			if err != nil {
				t.Fatal(err)
			}
			seen := filepath.Join(shortDir(t), "seen") // as by the container
			if err := os.Symlink(c.dir, seen); err != nil {
				t.Fatal(err)
			}
			taken := make(chan net.Listener, 1)
			go func() {
				l, err := stream.TakeListener(filepath.Join(seen, socketName))
				if err != nil {
					t.Error(err)
				}
				taken <- l
			}()
			if err := c.await(t.Context()); err != nil {
				t.Fatal(err)
			}
			conn, err := c.dial(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
			l := <-taken
			l.Close()
			if conn, err := c.dial(t.Context()); !notYet(err) {
				t.Errorf("the shim has ended, and somebody listens: %v, %v", conn, err)
			}
			if err := c.remove(); err != nil || exists(c.dir) {
				t.Fatalf("not removed: %v", err)
			}
		})
	}
}

func TestAwaitSocketObeysContext(t *testing.T) {
	c, err := makeSocketDir(filepath.Join(shortDir(t), "k"), os.Geteuid(), os.Getegid())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if err := c.await(ctx); ctx.Err() == nil || err == nil {
		t.Fatalf("got %v", err)
	}
}

// Of the folder the kernel's user gets the way to the socket, and no more.
func TestSocketDirIsClosedToTheKernel(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the server's own user cannot keep itself out; the mount does")
	}
	c, err := makeSocketDir(filepath.Join(shortDir(t), "k"), DefaultUID, DefaultUID)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.remove() }()
	for path, want := range map[string]os.FileMode{c.dir: os.ModeDir | 0o750, filepath.Join(c.dir, socketName): os.ModeSocket | 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestReadCgroups(t *testing.T) {
	root := t.TempDir()
	put := func(name, content string) {
		t.Helper()
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("v2/memory.max", "1073741824\n")
	put("v2/pids.max", "max\n")
	put("v2/cpu.max", "150000 100000\n")
	put("v2bare/cgroup.procs", "")
	put("memory/d/1/memory.limit_in_bytes", "9223372036854771712\n")
	put("pids/d/1/pids.max", "64\n")
	put("cpu,cpuacct/d/1/cpu.cfs_quota_us", "-1\n")
	put("cpu/d/1/cpu.cfs_quota_us", "50000\n")
	put("cpu/d/1/cpu.cfs_period_us", "100000\n")
	tests := map[string]struct {
		lines string
		want  processState
	}{
		"v2":                 {"0::/v2\n", processState{memory: 1 << 30, pids: -1, cpus: 1.5}},
		"v2, not delegated":  {"0::/v2bare\n", processState{memory: -1, pids: -1, cpus: -1}},
		"v1":                 {"4:memory:/d/1\n3:cpu,cpuacct:/d/1\n2:pids:/d/1\n0::/v2\n", processState{memory: -1, pids: 64, cpus: 0.5}},
		"another's view":     {"0::/../v2\n", processState{}},
		"no lines":           {"", processState{}},
		"lines without form": {"garbage\n::\n", processState{}},
	}
	for name, tt := range tests {
		var got processState
		got.readCgroups(tt.lines, root)
		if got != tt.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
