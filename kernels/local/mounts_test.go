//go:build linux

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// hostFolders makes folders that kernels are to see, and returns the root that they lie below.
func hostFolders(t *testing.T, p *Provisioner) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"in", "out"} {
		folder := filepath.Join(root, name)
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "file"), []byte(name+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{folder, filepath.Join(folder, "file")} {
			if err := os.Chown(path, p.user.uid, p.user.gid); err != nil {
				t.Fatal(err)
			}
		}
	}
	return root
}

func TestMounts(t *testing.T) {
	roots := []string{t.TempDir(), ""}
	p := newLocal(t, t.TempDir(), func(c *Config) { c.MountRoots = roots })
	roots[1] = hostFolders(t, p)
	spec, read := script(t, p, "mounts0001", `
cat /data/file /mnt/out/file
( echo x >/data/new ) 2>&1 | grep -o 'Read-only file system'
( rm /data/file; mv /data /data2; mount -o remount,rw /data; umount /data ) >/dev/null 2>&1 && echo changed
echo written >/mnt/out/new
ln -s /etc /mnt/out/link
ls /mnt/out; ls -d /data /mnt`)
	spec.Mounts = []kernels.Mount{{Source: roots[1] + "/in", Target: "/data"}, {Source: roots[1] + "/out", Target: "/mnt/out", Writable: true}}
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	defer h.Close()
	defer h.Stop(t.Context(), 0)
	if got := read(); got != "in\nout\nRead-only file system\nfile\nlink\nnew\n/data\n/mnt\n" {
		t.Errorf("inside: %s", got)
	}
	if b, err := os.ReadFile(roots[1] + "/out/new"); string(b) != "written\n" {
		t.Errorf("outside: %q, %v", b, err)
	}
	// The link that the kernel has left leads nobody astray.
	again, _ := script(t, p, "mounts0002", "true")
	again.Mounts = []kernels.Mount{{Source: roots[1] + "/out/link", Target: "/data"}}
	if _, err := p.Launch(t.Context(), again); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "leads to /etc") {
		t.Errorf("through a link: %v", fault.Text(err))
	}
}

// A folder that does not answer holds a launch up no longer than its context does.
func TestMountThatHangs(t *testing.T) {
	p := newLocal(t, t.TempDir(), func(*Config) {})
	gone := make(chan struct{})
	defer close(gone)
	p.mounts.Folder = func(_ []string, source string) (string, error) { <-gone; return source, nil }
	spec, _ := script(t, p, "mounts0003", "true")
	spec.Mounts = []kernels.Mount{{Source: "/gone", Target: "/data"}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Launch(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("launch: %v", err)
	}
	if _, err := p.Allows(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("allows: %v", err)
	}
}

// A path that was looked at and has become a link since is not followed.
func TestStageFollowsNoLink(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+"/a/b", 0o755); err != nil {
		t.Fatal(err)
	}
	var s stage
	s.addExact(root + "/a/b")
	f, err := openPath(s.sources[0])
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if err := errors.Join(os.Rename(root+"/a", root+"/c"), os.Symlink("c", root+"/a")); err != nil {
		t.Fatal(err)
	}
	if f, err := openPath(s.sources[0]); err == nil {
		_ = f.Close()
		t.Error("the link was followed")
	}
}

func TestWhatTheSandboxCannotGive(t *testing.T) {
	p := newLocal(t, t.TempDir())
	bare := newLocal(t, t.TempDir(), func(c *Config) { c.Sandbox = SandboxNone })
	for name, tt := range map[string]struct {
		p    *Provisioner
		give func(*kernels.Spec)
		kind fault.Kind
		says string
	}{
		"runtime":           {p, func(s *kernels.Spec) { s.Runtime = "runsc" }, fault.Unavailable, "runsc"},
		"device":            {p, func(s *kernels.Spec) { s.Devices = []string{"/dev/fuse"} }, fault.Unavailable, "/dev/fuse"},
		"mount, no roots":   {p, func(s *kernels.Spec) { s.Mounts = []kernels.Mount{{Source: "/srv", Target: "/data"}} }, fault.Invalid, "/srv"},
		"mount, not a jail": {bare, func(s *kernels.Spec) { s.Mounts = []kernels.Mount{{Source: "/srv", Target: "/data"}} }, fault.Unavailable, "without a sandbox"},
		"mount over /usr":   {p, func(s *kernels.Spec) { s.Mounts = []kernels.Mount{{Source: "/srv", Target: "/usr"}} }, fault.Invalid, "/usr"},
	} {
		t.Run(name, func(t *testing.T) {
			spec, _ := script(t, tt.p, "extras0001", "true")
			tt.give(&spec)
			_, err := tt.p.Launch(t.Context(), spec)
			if fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.says) || fault.Hint(err) == "" {
				t.Errorf("got %v", fault.Text(err))
			}
			if refs, err := tt.p.List(t.Context()); err != nil || len(refs) > 0 {
				t.Errorf("left: %v, %v", refs, err)
			}
		})
	}
}

// A limit beyond what this host has keeps no kernel from coming up, and is told.
func TestLimitsBeyondThisHost(t *testing.T) {
	p := newLocal(t, t.TempDir(), func(*Config) {})
	for _, limits := range []kernels.Limits{{CPUs: 4096}, {Memory: 1 << 60}} {
		if doubt, err := p.Allows(t.Context(), kernels.Spec{Limits: limits}); err != nil || doubt == nil || fault.Hint(doubt) == "" {
			t.Errorf("%+v: %v, %v", limits, doubt, err)
		}
	}
	if doubt, err := p.Allows(t.Context(), kernels.Spec{Limits: kernels.Limits{CPUs: 0.5, Memory: 128 << 20}}); doubt != nil || err != nil {
		t.Errorf("%v, %v", doubt, err)
	}
}
