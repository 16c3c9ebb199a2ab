//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

const (
	refVersion = 1
	maxLog     = 16 << 10
	// killTimeout bounds how long what was killed may take to end. Only a process that waits for a broken disk does.
	killTimeout = 10 * time.Second
)

// handle is one kernel's handle. It holds a shared lock on the kernel's folder, so that List does not sweep it away.
type handle struct {
	p       *Provisioner
	entry   *entry
	state   state
	status  *os.File   // the status file, readable also after it was unlinked
	all     []*process // what must have ended for the sandbox to have
	exited  chan struct{}
	end     kernels.ExitStatus // once exited is closed
	watcher sync.WaitGroup
	closing sync.Once
	closed  chan struct{}

	clearing sync.Mutex // one at a time; a Stop in a hurry need not wait for a polite one
	cleared  bool
}

var _ kernels.Handle = (*handle)(nil)

// newHandle returns a handle of a kernel whose folder is locked. The handle takes the entry over.
func newHandle(p *Provisioner, e *entry, st state) (*handle, error) {
	status, err := openRegular(e.path(statusFile), os.O_RDWR|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return nil, err
	}
	all, err := openAll(st)
	if err != nil {
		_ = status.Close()
		return nil, err
	}
	h := &handle{
		p: p, entry: e, state: st, status: status, all: all, exited: make(chan struct{}), closed: make(chan struct{}),
	}
	p.remember(h)
	h.watcher.Go(h.watch)
	return h, nil
}

// openAll opens the processes of a kernel that are still there.
func openAll(st state) ([]*process, error) {
	var all []*process
	for _, id := range st.identities() {
		switch proc, err := openProcess(id); {
		case errors.Is(err, errEnded):
		case err != nil:
			closeAll(all)
			return nil, err
		default:
			all = append(all, proc)
		}
	}
	return all, nil
}

func closeAll(all []*process) {
	for _, proc := range all {
		_ = proc.close()
	}
}

// identities names the processes that make up a kernel. If the server died before it could save the sandbox's first
// process, that is bubblewrap's only child.
func (st state) identities() []identity {
	ids := []identity{st.Main}
	if st.Init != nil {
		return append(ids, *st.Init)
	}
	if !st.Sandboxed || !st.Main.runs() {
		return ids
	}
	return append(ids, children()[st.Main.PID]...)
}

// watch waits for the end of every process. The sandbox's first takes all others with it, and bubblewrap then writes how
// it ended.
func (h *handle) watch() {
	for _, proc := range h.all {
		if proc.wait() != nil {
			return // closed
		}
		if st, ours := proc.reap(); ours && !h.state.Sandboxed {
			code := exitCode(st)
			_ = appendStatus(h.status, statusLine{ExitCode: &code})
		}
	}
	facts := readStatus(h.status)
	h.end = facts.exitStatus()
	h.end.OOM = !h.end.Asked && h.end.Signal == "SIGKILL" && h.state.Group.oomKills() > 0
	close(h.exited)
}

// Ref names the kernel.
func (h *handle) Ref() kernels.Ref { return newRef(h.entry.id, h.state) }

// Dial connects to the shim.
func (h *handle) Dial(ctx context.Context) (net.Conn, error) {
	if h.hasExited() {
		return nil, fault.New(fault.Died, "kernel %s has ended", h.entry.id)
	}
	conn, err := h.dial(ctx)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "kernel %s: %w", h.entry.id, err)
	}
	return conn, nil
}

// dial names the socket by a descriptor, so that what is dialled is what was looked at, however long its path is.
func (h *handle) dial(ctx context.Context) (net.Conn, error) {
	f, err := openSocket(h.p.socketPath(h.entry.id))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var d net.Dialer
	return d.DialContext(ctx, "unix", "/proc/self/fd/"+strconv.Itoa(int(f.Fd())))
}

// openSocket finds a socket of ours without following a link.
func openSocket(path string) (*os.File, error) {
	f, err := os.OpenFile(path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && (info.Mode().Type() != os.ModeSocket || !(user{uid: os.Geteuid()}).owns(info)) {
		err = fmt.Errorf("%s is not a socket of this server's user", path)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// Exited is closed when the sandbox has ended.
func (h *handle) Exited() <-chan struct{} { return h.exited }

// Status says how it ended.
func (h *handle) Status() kernels.ExitStatus {
	if !h.hasExited() {
		return kernels.ExitStatus{Code: -1}
	}
	return h.end
}

// Stop ends the kernel: TERM to the shim, which ends its kernel politely; again once half of grace is over, which makes
// the shim send TERM on; then KILL. When ctx ends, politeness does too.
func (h *handle) Stop(ctx context.Context, grace time.Duration) error {
	if !h.hasExited() {
		if isClosed(h.closed) {
			return fault.New(fault.Conflict, "the handle of kernel %s is closed", h.entry.id)
		}
		if err := appendStatus(h.status, statusLine{Asked: true}); err != nil {
			h.p.cfg.Logger.Warn("stop", "kernel", h.entry.id, "error", err)
		}
		for range 2 {
			h.terminate(ctx, grace/2)
		}
		h.kill()
	}
	h.clearing.Lock()
	defer h.clearing.Unlock()
	if h.cleared {
		return nil
	}
	if err := h.p.clear(h.entry, h.state); err != nil {
		return fault.New(fault.Internal, "stop kernel %s: %w", h.entry.id, err)
	}
	h.cleared = true
	return nil
}

func (h *handle) hasExited() bool { return isClosed(h.exited) }

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// kill kills the kernel and waits until that is known here, so that Status can say how it ended.
func (h *handle) kill() {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := kill(ctx, h.all, h.state); err != nil {
		h.p.cfg.Logger.Warn("stop", "kernel", h.entry.id, "error", err)
	}
	select {
	case <-h.exited:
	case <-h.closed:
	case <-ctx.Done(): // clear will say what does not end
	}
}

// terminate asks the shim to end and waits until it has.
func (h *handle) terminate(ctx context.Context, patience time.Duration) {
	if patience <= 0 || len(h.all) == 0 || h.hasExited() || ctx.Err() != nil {
		return
	}
	_ = h.all[len(h.all)-1].signal(unix.SIGTERM) // the sandbox's first process, or the shim itself
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-h.exited:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// Logs returns the end of what bubblewrap and the shim wrote.
func (h *handle) Logs(context.Context) string { return h.entry.logTail() }

// logTail returns the end of a kernel's log.
func (e *entry) logTail() string {
	f, err := openRegular(e.path(logFile), os.O_RDONLY)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil {
		_, _ = f.Seek(max(0, info.Size()-maxLog), io.SeekStart)
	}
	b, _ := io.ReadAll(io.LimitReader(f, maxLog))
	return strings.ToValidUTF8(strings.TrimSpace(string(b)), "�")
}

// Close releases the handle. The kernel goes on running.
func (h *handle) Close() error {
	h.release()
	_ = h.entry.close()
	return nil
}

// release gives back everything but the entry.
func (h *handle) release() {
	h.closing.Do(func() {
		close(h.closed)
		h.p.forget(h)
		closeAll(h.all)
		h.watcher.Wait()
		_ = h.status.Close()
	})
}
