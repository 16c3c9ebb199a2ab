//go:build linux

package docker

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/volume"

	"github.com/docker/docker/api/types/filters"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func volumeFilter(installation string) volume.ListOptions {
	return volume.ListOptions{Filters: filters.NewArgs(filters.Arg("label", labelInstallation+"="+installation))}
}

// look prints what binds the process that runs it, and what it can write to.
const look = `
grep -E '^(Uid|Gid|CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status
echo "Nofile: $(ulimit -n)"; echo "Core: $(ulimit -c)"; echo "Fsize: $(ulimit -f)"
echo "Host: $(hostname)"; echo "Net: $(cat /proc/net/dev | tail -n +3 | cut -d: -f1 | tr -d ' \n')"
echo "Pids: $(ls -d /proc/[0-9]* | wc -l)"; echo "Threads: $OMP_NUM_THREADS"; echo "Home: $HOME"; echo "Dir: $(pwd)"
for d in / /etc /usr /cellblock /var/tmp /run /proc/sys/kernel /sys/fs/cgroup /tmp /workspace "$HOME" /dev/shm /run/kernel; do
	if ( : >"$d/probe" ) 2>/dev/null; then echo "Write $d"; fi
done
for d in /tmp "$HOME" /dev/shm /run/kernel; do
	cp /bin/true "$d/true" 2>/dev/null && ( "$d/true" ) 2>/dev/null && echo "Exec $d"
done
mknod /tmp/null c 1 3 2>/dev/null && echo "Device"
head -c 64M /dev/zero >/workspace/big 2>/dev/null || echo "Big: $(stat -c %s /workspace/big)"
head -c 64M /dev/zero >/tmp/big 2>/dev/null || echo "Tmp: $(stat -c %s /tmp/big)"
ls /run/cellblock >/dev/null 2>&1 && ( : >/run/cellblock/probe ) 2>/dev/null && echo "Write /run/cellblock"
exit 0`

func TestConfinementSeenFromInside(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		if s.files == FilesVolume {
			return // the output is in a volume; what binds the container is the same
		}
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		spec := newSpec(t, p, look)
		h := launchKernel(t, p, spec)
		awaitExit(t, h, 30*time.Second)
		output, err := os.ReadFile(filepath.Join(spec.Workspace, "output"))
		if err != nil {
			t.Fatal(err)
		}
		uid := p.Capabilities().UID
		ids := strings.Repeat("\t"+itoa(uid), 4)
		want := []string{"Uid:" + ids, "Gid:" + ids, "CapEff:\t0000000000000000", "CapBnd:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2",
			"Nofile: 512", "Core: 0", "Host: cellblock", "Net: lo", "Threads: 1", "Home: /home/cellblock", "Dir: /workspace",
			"Write /tmp", "Write /workspace", "Write /home/cellblock", "Write /dev/shm", "Write /run/kernel", "Big: 33554432", "Tmp: 16"}
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		for _, w := range want {
			if !containsPrefix(lines, w) {
				t.Errorf("%q is missing", w)
			}
		}
		for _, line := range lines {
			if (strings.HasPrefix(line, "Write") || strings.HasPrefix(line, "Exec") || line == "Device") && !containsPrefix(want, line) {
				t.Errorf("the kernel can do this: %s", line)
			}
		}
		if t.Failed() {
			t.Logf("%s", output)
		}
	})
}

func itoa(n int) string { return strconv.Itoa(n) }

func containsPrefix(lines []string, prefix string) bool {
	for _, line := range lines {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

func TestStopLadder(t *testing.T) {
	const grace = 2 * time.Second
	tests := map[string]struct {
		mode   string
		grace  time.Duration
		after  time.Duration // at least
		before time.Duration // less than
		want   kernels.ExitStatus
	}{
		"polite": {"", grace, 0, 2 * grace, kernels.ExitStatus{Code: 15, Asked: true}},
		"kill":   {"stubborn", grace, grace, 4 * grace, kernels.ExitStatus{Code: -1, Signal: "SIGKILL", Asked: true}},
		"now":    {"stubborn", 0, 0, grace, kernels.ExitStatus{Code: -1, Signal: "SIGKILL", Asked: true}},
	}
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				spec := newSpec(t, p, forever)
				spec.Env = map[string]string{"STANDIN": tt.mode}
				h := launchKernel(t, p, spec)
				start := time.Now()
				if err := h.Stop(t.Context(), tt.grace); err != nil {
					t.Fatal(err)
				}
				took := time.Since(start)
				if got := awaitExit(t, h, 0); got != tt.want || took < tt.after || took >= tt.before {
					t.Errorf("%+v after %v", got, took)
				}
				if err := h.Stop(t.Context(), tt.grace); err != nil {
					t.Errorf("again: %v", err)
				}
			})
		}
		nothingLeft(t, p, 0)
	})
}

func TestStopWhenTimeIsOver(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		h := launchKernel(t, p, newSpec(t, p, forever))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := h.Stop(ctx, time.Minute); err != nil {
			t.Error(err)
		}
		awaitExit(t, h, 0)
		nothingLeft(t, p, 0)
	})
}

// A kernel of another slot is not this process's to find by itself, but to go on with when it is named.
func TestKernelOfAnotherSlot(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		first := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files, Slot: "c0"})
		second := newProvisioner(t, Config{Host: host, Installation: first.cfg.Installation, Slot: "c1"})
		h := launchKernel(t, first, newSpec(t, first, forever))
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		for p, want := range map[*Provisioner]int{first: 1, second: 0} {
			if refs, err := p.List(t.Context()); err != nil || len(refs) != want {
				t.Errorf("slot %s lists %v, %v", p.cfg.Slot, refs, err)
			}
		}
		again, err := second.Attach(t.Context(), h.Ref())
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if w := greet(t, again); w.KernelID != h.Ref().KernelID {
			t.Errorf("the shim says %q", w.KernelID)
		}
		if err := again.Stop(t.Context(), 0); err != nil {
			t.Error(err)
		}
		nothingLeft(t, second, 0)
	})
}

func TestAttachFromAnotherProcess(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		first := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		spec := newSpec(t, first, forever)
		h := launchKernel(t, first, spec)
		if err := h.Close(); err != nil {
			t.Fatal(err)
		}
		// The other carrier is configured by now: the container's own counts.
		second := newProvisioner(t, Config{Host: host, Installation: first.cfg.Installation})
		refs, err := second.List(t.Context())
		if err != nil || len(refs) != 1 || refs[0].KernelID != spec.ID {
			t.Fatalf("%v, %v", refs, err)
		}
		for _, ref := range []kernels.Ref{refs[0], h.Ref()} {
			again, err := second.Attach(t.Context(), ref)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if w := greet(t, again); w.KernelID != spec.ID {
					t.Errorf("the shim says %q", w.KernelID)
				}
			}
			_ = again.Close()
		}
		stranger := newProvisioner(t, Config{Host: host})
		if refs, err := stranger.List(t.Context()); err != nil || len(refs) != 0 {
			t.Errorf("a stranger sees %v, %v", refs, err)
		}
		if _, err := stranger.Attach(t.Context(), refs[0]); !errors.Is(err, kernels.ErrGone) {
			t.Errorf("a stranger attaches: %v", err)
		}
		again, err := second.Attach(t.Context(), refs[0])
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if err := again.Stop(t.Context(), 0); err != nil {
			t.Fatal(err)
		}
		if _, err := second.Attach(t.Context(), refs[0]); !errors.Is(err, kernels.ErrGone) {
			t.Errorf("after its end: %v", err)
		}
	})
}

func TestAttachRefusesForeignRefs(t *testing.T) {
	p := newProvisioner(t, Config{})
	for name, ref := range map[string]kernels.Ref{
		"provisioner": {Provisioner: "local", Version: 1, Data: []byte(`{"container":"x"}`)},
		"version":     {Provisioner: Name, Version: 99, Data: []byte(`{"container":"x"}`)},
		"no data":     {Provisioner: Name, Version: refVersion},
		"bad data":    {Provisioner: Name, Version: refVersion, Data: []byte(`{`)},
		"empty":       {Provisioner: Name, Version: refVersion, Data: []byte(`{}`)},
	} {
		if _, err := p.Attach(t.Context(), ref); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestExitIsNoticed(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		t.Run("by itself", func(t *testing.T) {
			h := launchKernel(t, p, newSpec(t, p, "sleep 0.5; exit 3"))
			if got := awaitExit(t, h, 10*time.Second); got != (kernels.ExitStatus{Code: 3}) {
				t.Errorf("%+v", got)
			}
		})
		t.Run("killed", func(t *testing.T) {
			h := launchKernel(t, p, newSpec(t, p, forever))
			e := p.known()
			if err := e.api.ContainerKill(t.Context(), h.(*handle).container, "KILL"); err != nil {
				t.Fatal(err)
			}
			if got := awaitExit(t, h, time.Second); got != (kernels.ExitStatus{Code: -1, Signal: "SIGKILL"}) {
				t.Errorf("%+v", got)
			}
			if _, err := h.Dial(t.Context()); fault.KindOf(err) != fault.Died {
				t.Errorf("dialling the dead: %v", err)
			}
		})
	})
}

func TestLaunchThatFails(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		tests := map[string]struct {
			change func(*kernels.Spec)
			kind   fault.Kind
			text   []string
		}{
			"no such image": {func(s *kernels.Spec) { s.Image = "cellblock-nothing:never" }, fault.Unavailable, []string{"cellblock-nothing:never", "make image"}},
			"shim ends":     {func(s *kernels.Spec) { s.Env = map[string]string{"STANDIN": "broken"} }, fault.Unavailable, []string{"ended at once", "exit code 7", "broken, as I was told to be", "the same version"}},
			"no workspace":  {func(s *kernels.Spec) { s.Workspace += "/not/there" }, fault.Invalid, []string{"/not/there"}},
			"bad id":        {func(s *kernels.Spec) { s.ID = "../../etc" }, fault.Invalid, []string{"../../etc"}},
			"no argv":       {func(s *kernels.Spec) { s.Kernelspec.Argv = nil }, fault.Invalid, nil},
			"no image":      {func(s *kernels.Spec) { s.Image = "" }, fault.Invalid, nil},
			"relative path": {func(s *kernels.Spec) { s.Workspace = "w" }, fault.Invalid, nil},
		}
		for name, tt := range tests {
			t.Run(name, func(t *testing.T) {
				if name == "no workspace" && s.files == FilesVolume {
					return // a volume stands for it
				}
				spec := newSpec(t, p, forever)
				tt.change(&spec)
				h, err := p.Launch(t.Context(), spec)
				if err == nil {
					_ = h.Stop(t.Context(), 0)
					t.Fatal("it works")
				}
				if fault.KindOf(err) != tt.kind || tt.kind == fault.Unavailable && fault.Hint(err) == "" {
					t.Errorf("kind %v: %s", fault.KindOf(err), fault.Text(err))
				}
				for _, want := range tt.text {
					if !strings.Contains(fault.Text(err), want) {
						t.Errorf("no %q in: %s", want, fault.Text(err))
					}
				}
				nothingLeft(t, p, 0)
			})
		}
	})
}

func TestLaunchOfTheSameKernelTwice(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		spec := newSpec(t, p, forever)
		h := launchKernel(t, p, spec)
		if _, err := p.Launch(t.Context(), spec); fault.KindOf(err) != fault.Conflict {
			t.Errorf("kind %v: %v", fault.KindOf(err), err)
		}
		if w := greet(t, h); w.KernelID != spec.ID {
			t.Errorf("the first one suffered: %+v", w)
		}
	})
}

func TestLaunchGivenUp(t *testing.T) {
	onEach(t, func(t *testing.T, s setting, host string) {
		p := newProvisioner(t, Config{Host: host, Carrier: s.carrier, Files: s.files})
		if _, err := p.engine(t.Context()); err != nil {
			t.Fatal(err)
		}
		// Somewhere within create, start or await, each time at another place.
		for _, after := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 80 * time.Millisecond, 150 * time.Millisecond} {
			spec := newSpec(t, p, forever)
			ctx, cancel := context.WithTimeout(t.Context(), after)
			h, err := p.Launch(ctx, spec)
			cancel()
			if err == nil { // it was faster
				_ = h.Stop(t.Context(), 0)
				continue
			}
			if kind := fault.KindOf(err); kind != fault.Timeout && kind != fault.Unavailable || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("after %v: kind %v, %v", after, kind, err)
			}
		}
		nothingLeft(t, p, 2*doubt)
	})
}

// An engine that does not see the server's folders is a thing for the operator, who is told only what there is to set.
func TestHiddenFoldersAreExplained(t *testing.T) {
	l := &launch{p: &Provisioner{}, e: &engine{host: "unix:///x"}}
	err := l.explain(t.Context(), errors.New(`invalid mount config for type "bind": bind source path does not exist: /data`))
	hint := fault.Hint(err)
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "/data") || !strings.Contains(hint, "data_dir, run_dir") || strings.Contains(hint, "volume") {
		t.Errorf("%v; %s", err, hint)
	}
}
