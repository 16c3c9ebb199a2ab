//go:build linux

package kernelstest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// TestBare runs the suite with real kernels and the real shim, and no isolation at all: what it proves is the suite, the
// client and the shim.
func TestBare(t *testing.T) {
	kernelstest.NeedPython(t)
	shim := kernelstest.BuildShim(t)
	kernelstest.TestProvisioner(t, kernelstest.Setup{
		New:        func(t *testing.T, dir string) kernels.Provisioner { return newBare(t, shim, dir) },
		Kernelspec: kernelstest.Python, Weak: true,
	})
}

const nobody = 65534

// bare runs a shim as a plain process of this host. Its state is in this process: there is no real restart here.
type bare struct {
	shim string
	dir  string
	here *bareState
}

type bareState struct {
	mu   sync.Mutex
	runs map[string]*bareRun
}

// bareRun is one running shim, and the Handle of it.
type bareRun struct {
	id, socket string
	cmd        *exec.Cmd
	log        *bytes.Buffer
	exited     chan struct{}
	asked      bool
	mu         sync.Mutex
}

var bareStates sync.Map // by dir

func newBare(t *testing.T, shim, dir string) *bare {
	state, _ := bareStates.LoadOrStore(dir, &bareState{runs: map[string]*bareRun{}})
	return &bare{shim: shim, dir: dir, here: state.(*bareState)}
}

func (b *bare) Name() string                 { return "bare" }
func (b *bare) Health(context.Context) error { return nil }
func (b *bare) Close() error                 { return nil }

func (b *bare) Capabilities() kernels.Capabilities {
	if os.Geteuid() != 0 {
		return kernels.Capabilities{FileSize: "RLIMIT_FSIZE", Cores: runtime.NumCPU(), UID: os.Geteuid(), GID: os.Getegid()}
	}
	return kernels.Capabilities{FileSize: "RLIMIT_FSIZE", Cores: runtime.NumCPU(), UID: nobody, GID: nobody}
}

var bareID = regexp.MustCompile(`^[a-z0-9]{8,32}$`)

func (b *bare) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.New(fault.Cancelled, "given up: %w", err)
	}
	info, err := os.Stat(spec.Workspace)
	if err != nil || !info.IsDir() || !bareID.MatchString(spec.ID) {
		return nil, fault.New(fault.Invalid, "bad spec: %v", err)
	}
	run, err := b.start(spec)
	if err != nil {
		return nil, err
	}
	b.here.mu.Lock()
	b.here.runs[spec.ID] = run
	b.here.mu.Unlock()
	return run, nil
}

func (b *bare) start(spec kernels.Spec) (*bareRun, error) {
	dir := filepath.Join(b.dir, spec.ID[:8])
	c := b.Capabilities()
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chown(dir, c.UID, c.GID); err != nil {
		return nil, err
	}
	env := []string{"PATH=/usr/bin:/bin", "HOME=/nonexistent"}
	for _, more := range []map[string]string{kernels.ThreadEnv(spec.Limits.On(runtime.NumCPU()).CPUs), spec.Kernelspec.Env, spec.Env} {
		for k, v := range more {
			env = append(env, k+"="+v)
		}
	}
	config, err := json.Marshal(stream.Config{
		KernelID: spec.ID, Listen: "fd:3", Argv: spec.Kernelspec.Argv, Env: env, Dir: spec.Workspace,
		RunDir: dir + "/r", Transport: "ipc", Waits: spec.Kernelspec.Waits, Rlimits: stream.Rlimits{FileSize: spec.Limits.FileSize, Files: spec.Limits.Files},
	})
	if err != nil {
		return nil, err
	}
	run := &bareRun{id: spec.ID, socket: dir + "/s", log: &bytes.Buffer{}, exited: make(chan struct{})}
	listening, err := listen(run.socket)
	if err != nil {
		return nil, err
	}
	defer listening.Close()
	run.cmd = exec.Command(b.shim)
	run.cmd.Env = []string{stream.ConfigEnv + "=" + string(config)}
	run.cmd.Stderr = run.log
	run.cmd.ExtraFiles = []*os.File{listening}
	run.cmd.WaitDelay = time.Second
	run.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if os.Geteuid() == 0 {
		run.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	if err := run.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { _ = run.cmd.Wait(); close(run.exited) }()
	return run, nil
}

// listen returns a listening Unix socket for the shim to inherit: it can be dialled before the shim is up.
func listen(path string) (*os.File, error) {
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	defer l.Close()
	return l.File()
}

func (b *bare) Attach(_ context.Context, ref kernels.Ref) (kernels.Handle, error) {
	if ref.Provisioner != "bare" || ref.Version != 1 {
		return nil, fault.New(fault.Invalid, "not mine")
	}
	b.here.mu.Lock()
	defer b.here.mu.Unlock()
	run := b.here.runs[ref.KernelID]
	if run == nil || run.gone() {
		return nil, fmt.Errorf("%s: %w", ref.KernelID, kernels.ErrGone)
	}
	return run, nil
}

func (b *bare) List(context.Context) ([]kernels.Ref, error) {
	b.here.mu.Lock()
	defer b.here.mu.Unlock()
	var refs []kernels.Ref
	for _, run := range b.here.runs {
		if !run.gone() {
			refs = append(refs, run.Ref())
		}
	}
	return refs, nil
}

func (r *bareRun) gone() bool {
	select {
	case <-r.exited:
		return true
	default:
		return false
	}
}

func (r *bareRun) Ref() kernels.Ref {
	return kernels.Ref{Provisioner: "bare", Version: 1, KernelID: r.id}
}

func (r *bareRun) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", r.socket)
}

// Stop asks the shim by TERM, again once half of the grace is over, and then kills it and all that descends from it.
func (r *bareRun) Stop(_ context.Context, grace time.Duration) error {
	r.mu.Lock()
	r.asked = true
	r.mu.Unlock()
	before := descendants(r.cmd.Process.Pid) // of a shim that obeys, children may outlive it
	for range 2 {
		if grace <= 0 || r.gone() {
			break
		}
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.exited:
		case <-time.After(grace / 2):
		}
	}
	_ = r.cmd.Process.Signal(syscall.SIGSTOP) // it must start nothing while its family is counted
	before = append(before, descendants(r.cmd.Process.Pid)...)
	for family := before; len(family) > 0; family = descendants(r.cmd.Process.Pid) {
		for _, pid := range family {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if r.gone() {
			break
		}
	}
	_ = r.cmd.Process.Kill()
	<-r.exited
	return nil
}

// descendants returns the children of a process, and theirs, that are not zombies.
func descendants(root int) []int {
	children := map[int][]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		text, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(text), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[0] != "Z" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			parent, _ := strconv.Atoi(f[1])
			children[parent] = append(children[parent], pid)
		}
	}
	var all []int
	for queue := children[root]; len(queue) > 0; queue = queue[1:] {
		all = append(all, queue[0])
		queue = append(queue, children[queue[0]]...)
	}
	return all
}

func (r *bareRun) Exited() <-chan struct{} { return r.exited }

func (r *bareRun) Status() kernels.ExitStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return kernels.ExitStatus{Code: r.cmd.ProcessState.ExitCode(), Asked: r.asked}
}

func (r *bareRun) Logs(context.Context) string {
	if r.gone() {
		return r.log.String()
	}
	return ""
}

func (r *bareRun) Close() error { return nil }

var (
	_ kernels.Provisioner = (*bare)(nil)
	_ kernels.Handle      = (*bareRun)(nil)
)
