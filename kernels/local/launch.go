//go:build linux

package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// A launch goes
//
//	folder, cgroups, socket → start, held at the gate → into the cgroups → state saved → gate opened → shim answers
//
// The process that is started reads from the gate before it does anything: bubblewrap its options, or a shell one line.
// So nothing of a kernel runs outside its cgroups or unknown to List; and if the server dies with the gate still shut, the
// process reads its end and ends too.

// The first descriptors of what is started: the gate, and the listening socket as the shim is told it.
const (
	gateFD   = 3
	listenFD = "fd:4"
)

// launch is one launch on its way.
type launch struct {
	p       *Provisioner
	spec    kernels.Spec
	mounts  []kernels.Mount // with what their sources really are
	entry   *entry
	state   state
	cmd     *exec.Cmd
	opening []byte     // what opens the gate
	gate    *os.File   // its other end
	info    *os.File   // where bubblewrap tells the sandbox's first pid; nil without a sandbox
	child   []*os.File // the process's descriptors from gateFD on
	stage   stage
}

// Launch starts a sandbox with a shim and its kernel. It returns once the shim answers.
func (p *Provisioner) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	if err := p.checkSpec(spec); err != nil {
		return nil, err
	}
	mounts, err := p.checkExtras(ctx, spec)
	if err != nil {
		return nil, err
	}
	if err := p.Health(ctx); err != nil {
		return nil, err
	}
	spec.Limits = spec.Limits.On(runtime.NumCPU())
	e, err := newEntry(p.cfg.StateDir, spec.ID)
	if errors.Is(err, os.ErrExist) {
		return nil, fault.New(fault.Invalid, "kernel id %s is in use", spec.ID)
	}
	if err != nil {
		return nil, fault.New(fault.Unavailable, "state folder: %w", err)
	}
	l := &launch{
		p: p, spec: spec, mounts: mounts, entry: e, stage: stage{turns: &p.mounts},
		state: state{Version: stateVersion, Started: time.Now(), Slot: p.cfg.Slot, Labels: spec.Labels},
	}
	h, err := l.run(ctx)
	if err != nil {
		err = l.explain(ctx, err)
		l.undo()
		return nil, err
	}
	return h, nil
}

func (l *launch) run(ctx context.Context) (*handle, error) {
	if err := l.prepare(); err != nil {
		return nil, err
	}
	started := l.start(ctx)
	for _, f := range l.child {
		_ = f.Close()
	}
	if started != nil {
		return nil, started
	}
	defer l.gate.Close()
	stop := context.AfterFunc(ctx, l.giveUp)
	defer stop()
	if err := l.place(); err != nil {
		return nil, err
	}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l.hand(ctx)
}

// prepare makes everything that the process is started with.
func (l *launch) prepare() error {
	var err error
	if l.state.Boot, err = bootID(); err != nil {
		return err
	}
	l.state.Group, err = l.p.cgroups.make(l.spec.ID, specLimits(l.spec.Limits))
	if err == nil && l.spec.Limits.Memory > 0 && l.state.Group.memory() != nil && !l.p.cgroups.countsSwap() {
		err = fmt.Errorf("%w: memory, because swap is not counted", errIgnored)
	}
	if err := l.tolerate(err); err != nil {
		return err
	}
	if err := l.pipe(&l.gate); err != nil {
		return err
	}
	if err := l.listen(); err != nil {
		return fmt.Errorf("socket: %w", err)
	}
	l.state.Sandboxed = l.p.cfg.Sandbox != SandboxNone
	if l.state.Sandboxed {
		return l.sandboxed()
	}
	return l.bare()
}

// tolerate lets pass a limit that the host ignores, where that is allowed.
func (l *launch) tolerate(err error) error {
	if errors.Is(err, errIgnored) && l.p.cfg.AllowUnenforced {
		l.p.cfg.Logger.Warn("a limit is not held", "kernel", l.spec.ID, "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("cgroup: %w", err)
	}
	return nil
}

// pipe gives the process the reading end of a new pipe and keeps the writing end.
func (l *launch) pipe(keep **os.File) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	l.child, *keep = append(l.child, r), w
	return nil
}

// listen makes the kernel's socket and gives the process the listening descriptor. The folder is named by a descriptor,
// because a socket's path has only 107 bytes.
func (l *launch) listen() error {
	dir, err := os.Open(l.p.cfg.RunDir)
	if err != nil {
		return err
	}
	defer dir.Close()
	path := "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + socketName(l.spec.ID)
	_ = os.Remove(path) // of a kernel with this id that died before a reboot
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return err
	}
	ln.SetUnlinkOnClose(false)
	defer ln.Close()
	if err := os.Chmod(path, 0o600); err != nil {
		return err
	}
	f, err := ln.File()
	if err != nil {
		return err
	}
	l.child = append(l.child, f)
	return nil
}

func (l *launch) config(place shimPlace) (string, error) {
	b, err := json.Marshal(l.p.shimConfig(l.spec, place))
	if err == nil && len(b) > maxConfig {
		err = fault.New(fault.Invalid, "argv and environment take %d bytes, at most %d", len(b), maxConfig)
	}
	return string(b), err
}

// start starts the process, in a session of its own so that nothing that ends the server reaches it. A ctx that ends
// before leaves none.
func (l *launch) start(ctx context.Context) error {
	log, err := openRegular(l.entry.path(logFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	defer log.Close()
	l.cmd.Dir, l.cmd.Stdout, l.cmd.Stderr = "/", log, log
	l.cmd.ExtraFiles = l.child
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Credential: l.p.user.credential()}
	l.p.cgroups.wrap(l.cmd, l.spec.ID, specLimits(l.spec.Limits))
	if l.p.stages() {
		err = l.stage.start(ctx, l.cmd)
	} else {
		err = l.cmd.Start()
	}
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	pid := l.cmd.Process.Pid
	_ = l.cmd.Process.Release()
	l.state.Main, err = identify(pid)
	return err
}

// place puts the process into its cgroups and saves what finds it again.
func (l *launch) place() error {
	if l.p.cgroups.scope == nil {
		if err := l.state.Group.add(l.state.Main.PID); err != nil {
			return fmt.Errorf("cgroup: %w", err)
		}
	}
	return l.entry.save(l.state)
}

// open lets the process go on and learns the sandbox's first pid.
func (l *launch) open() error {
	if _, err := l.gate.Write(l.opening); err != nil {
		return fmt.Errorf("gate: %w", err)
	}
	if err := l.gate.Close(); err != nil {
		return err
	}
	if l.info == nil {
		return nil
	}
	var info struct {
		ChildPID int `json:"child-pid"`
	}
	if err := json.NewDecoder(io.LimitReader(l.info, 4096)).Decode(&info); err != nil {
		return fmt.Errorf("the sandbox did not start: %w", err)
	}
	first, err := identify(info.ChildPID)
	if err != nil {
		return fmt.Errorf("the sandbox's first process: %w", err)
	}
	l.state.Init = &first
	return l.entry.save(l.state)
}

// hand waits for the shim and makes the handle.
func (l *launch) hand(ctx context.Context) (*handle, error) {
	if l.p.cgroups.scope != nil {
		if err := l.tolerate(l.state.Group.verify(specLimits(l.spec.Limits))); err != nil {
			return nil, err
		}
	}
	if err := l.entry.share(); err != nil {
		return nil, err
	}
	h, err := newHandle(l.p, l.entry, l.state)
	if err != nil {
		return nil, err
	}
	if err := awaitShim(ctx, h); err != nil {
		h.release()
		return nil, fmt.Errorf("%w: %w", errMute, err)
	}
	return h, nil
}

// giveUp ends what a cancelled launch waits for.
func (l *launch) giveUp() {
	_ = l.gate.Close()
	if p, err := openProcess(l.state.Main); err == nil {
		p.killGroup()
		_ = p.close()
	}
	if l.info != nil {
		_ = l.info.Close()
	}
}

// undo takes away everything of a launch that failed.
func (l *launch) undo() {
	if l.gate != nil {
		_ = l.gate.Close()
	}
	if l.info != nil {
		_ = l.info.Close()
	}
	if err := l.p.clear(l.entry, l.state); err != nil {
		l.p.cfg.Logger.Warn("a failed launch left something behind", "kernel", l.spec.ID, "error", err)
	}
	_ = l.entry.close()
}
