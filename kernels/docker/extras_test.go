//go:build linux

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/docker/docker/api/types/system"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/mounts"
)

// Folders of this host appear where they are to, as they are to; where the engine does not see them, that is said.
func TestHostMounts(t *testing.T) {
	root := t.TempDir()
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files, MountRoots: []string{root}})
		in, out := hostFolder(t, p, root, s.name+"-in"), hostFolder(t, p, root, s.name+"-out")
		spec := newSpec(t, p, `read go </workspace/go
cat /data/file /mnt/out/file
( echo x >/data/new ) 2>&1 | grep -o 'Read-only file system'
rm /data/file 2>/dev/null && echo changed
echo written >/mnt/out/new
ln -s /etc /mnt/out/link
ls /mnt/out`)
		spec.Mounts = []kernels.Mount{{Source: in, Target: "/data"}, {Source: out, Target: "/mnt/out", Writable: true}}
		if s.files == FilesVolume {
			if _, err := p.Launch(t.Context(), spec); fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
				t.Errorf("got %v", fault.Text(err))
			}
			return
		}
		got, err := runHeld(t, p, spec)
		if want := s.name + "-in\n" + s.name + "-out\nRead-only file system\nfile\nlink\nnew\n"; err != nil || got != want {
			t.Errorf("inside: %s, %v", got, err)
		}
		if b, err := os.ReadFile(out + "/new"); string(b) != "written\n" {
			t.Errorf("outside: %q, %v", b, err)
		}
		for _, m := range []kernels.Mount{{Source: out + "/link", Target: "/data"}, {Source: root + "/../x", Target: "/data"}, {Source: in, Target: "/etc/x"}} {
			again := newSpec(t, p, "true")
			again.Mounts = []kernels.Mount{m}
			if _, err := p.Launch(t.Context(), again); fault.KindOf(err) != fault.Invalid {
				t.Errorf("%+v: %v", m, fault.Text(err))
			}
		}
		nothingLeftButOne(t, p)
	})
}

// A folder that does not answer holds a launch up no longer than its context does.
func TestHostMountThatHangs(t *testing.T) {
	gone := make(chan struct{})
	defer close(gone)
	p := &Provisioner{mounts: mounts.Finder{Folder: func(_ []string, source string) (string, error) { <-gone; return source, nil }}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	spec := kernels.Spec{Mounts: []kernels.Mount{{Source: "/gone", Target: "/data"}}}
	if _, err := p.extras(ctx, &engine{files: FilesBind}, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// runHeld runs a script that waits at the workspace's pipe "go" until its container has been launched, and returns what it prints.
func runHeld(t *testing.T, p *Provisioner, spec kernels.Spec) (string, error) {
	t.Helper()
	pipe, caps := filepath.Join(spec.Workspace, "go"), p.Capabilities()
	err := syscall.Mkfifo(pipe, 0o600)
	if err == nil {
		err = os.Chown(pipe, caps.UID, caps.GID)
	}
	held, openErr := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil || openErr != nil {
		t.Fatal(err, openErr)
	}
	defer held.Close()
	h := launchKernel(t, p, spec)
	if _, err := held.WriteString("go\n"); err != nil {
		t.Fatal(err)
	}
	awaitExit(t, h, 2*time.Minute)
	output, err := os.ReadFile(filepath.Join(spec.Workspace, "output"))
	return string(output), err
}

// hostFolder makes a folder of the kernels' user with a file that has its name.
func hostFolder(t *testing.T, p *Provisioner, root, name string) string {
	t.Helper()
	folder, caps := filepath.Join(root, name), p.Capabilities()
	err := os.Mkdir(folder, 0o755)
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "file"), []byte(name+"\n"), 0o644)
	}
	for _, path := range []string{folder, filepath.Join(folder, "file")} {
		if err == nil {
			err = os.Chown(path, caps.UID, caps.GID)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

// nothingLeftButOne looks whether launches that were refused have left containers.
func nothingLeftButOne(t *testing.T, p *Provisioner) {
	t.Helper()
	if left := containersOf(t, p.known(), p.cfg.Installation); len(left) > 1 {
		t.Errorf("left: %v", left)
	}
}

// A runtime that the engine does not have is said before anything is made, with those that it has.
func TestRuntimeThatTheEngineLacks(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		spec := newSpec(t, p, "true")
		spec.Runtime = "no-such-runtime"
		_, err := p.Launch(t.Context(), spec)
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "no-such-runtime") || !strings.Contains(fault.Hint(err), "runc") && !strings.Contains(fault.Hint(err), "crun") {
			t.Errorf("got %v", fault.Text(err))
		}
		nothingLeft(t, p, time.Minute)
		if s.name != "docker-socket" {
			return
		}
		spec = newSpec(t, p, "read go </workspace/go; echo ran")
		spec.Runtime = "runc"
		if got, err := runHeld(t, p, spec); got != "ran\n" {
			t.Errorf("in a runtime that it has: %q, %v", got, err)
		}
	})
}

// A path of a device is given to the container; what the engine does not have is its error, and leaves nothing.
func TestDevices(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		for _, device := range []string{"/dev/no-such-device", "example.com/none=all"} {
			spec := newSpec(t, p, forever)
			spec.Devices = []string{device}
			if _, err := p.Launch(t.Context(), spec); fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
				t.Errorf("%s: %v", device, fault.Text(err))
			}
		}
		nothingLeft(t, p, time.Minute)
		if s.files == FilesVolume {
			return
		}
		spec := newSpec(t, p, "read go </workspace/go; test -c /dev/loop-control && echo there")
		spec.Devices = []string{"/dev/loop-control"}
		_, err := os.Stat(spec.Devices[0])
		kernelstest.Need(t, err == nil, spec.Devices[0])
		if got, err := runHeld(t, p, spec); got != "there\n" {
			t.Errorf("inside: %q, %v", got, err)
		}
	})
}

// A limit beyond what the engine's machine has is told, wherever the server runs.
func TestLimitsBeyondTheEnginesMachine(t *testing.T) {
	p := newProvisioner(t, Config{Host: fakeEngine(t, "1.43", KindDocker, system.Info{OSType: "linux", Architecture: "x86_64", NCPU: 3, MemTotal: 4 << 30})})
	for words, limits := range map[string]kernels.Limits{"on has 3": {CPUs: 3.5}, "on has 4 GiB": {Memory: 5 << 30}} {
		if doubt, err := p.Allows(t.Context(), kernels.Spec{Limits: limits}); err != nil || doubt == nil || !strings.Contains(doubt.Error(), words) {
			t.Errorf("%+v: %v, %v", limits, doubt, err)
		}
	}
	if doubt, err := p.Allows(t.Context(), kernels.Spec{Limits: kernels.Limits{CPUs: 3, Memory: 4 << 30}}); doubt != nil || err != nil {
		t.Errorf("%v, %v", doubt, err)
	}
}

// Of an engine of this very system it is known beforehand which devices it has not got.
func TestAllowsDevicesOfThisHost(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		if _, err := p.Allows(t.Context(), kernels.Spec{Devices: []string{"/dev/null"}}); err != nil {
			t.Error(fault.Text(err))
		}
		_, err := p.Allows(t.Context(), kernels.Spec{Devices: []string{"/dev/null", "/dev/none-such"}})
		if here := locate(p.known().host, p.known().info) == placeHere; here != (err != nil) || here && !strings.Contains(err.Error(), "/dev/none-such") {
			t.Errorf("the engine is here: %v, %v", here, err)
		}
	})
}
