package docker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/pkg/stdcopy"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// logTail is how much of a log Logs returns.
const logTail = 16 << 10

// handle is one kernel's container.
type handle struct {
	p         *Provisioner
	e         *engine
	kernel    string
	container string
	carrier   carrier

	presence presence           // of connections whose end tells of the container's
	cancel   context.CancelFunc // ends watch
	watched  chan struct{}      // closed when watch has ended
	asked    atomic.Bool
	exited   chan struct{}
	status   kernels.ExitStatus // valid once exited is closed
}

// newHandle returns a handle that watches a container which has been started.
func (p *Provisioner) newHandle(e *engine, kernelID, containerID string, c carrier) *handle {
	ctx, cancel := context.WithCancel(context.Background())
	h := &handle{p: p, e: e, kernel: kernelID, container: containerID, carrier: c, cancel: cancel,
		watched: make(chan struct{}), exited: make(chan struct{})}
	go h.watch(ctx)
	return h
}

// carrierOf finds out from a running container how its stream travels. The engine's word is trusted, the container has
// no say in it.
func carrierOf(e *engine, c container.InspectResponse) (carrier, error) {
	var config stream.Config
	for _, entry := range c.Config.Env {
		if text, ok := strings.CutPrefix(entry, stream.ConfigEnv+"="); ok {
			if err := json.Unmarshal([]byte(text), &config); err != nil {
				return nil, fmt.Errorf("container %s: its configuration: %w: %w", c.ID, err, kernels.ErrGone)
			}
		}
	}
	if config.AttachKey != "" {
		return &stdioCarrier{api: e.api, container: c.ID, key: config.AttachKey}, nil
	}
	for _, m := range c.Mounts {
		if m.Destination == socketDir {
			return &socketCarrier{dir: filepath.Clean(m.Source)}, nil
		}
	}
	return nil, fmt.Errorf("container %s has no way to its shim: %w", c.ID, kernels.ErrGone)
}

// watch waits for the container's end. While a connection shows that it lives nobody asks the engine: Podman answers who
// waits by looking four times a second, which costs more than all kernels at rest. An engine that goes away takes the
// answer with it and may come back, with or without the container, so it is asked again.
func (h *handle) watch(ctx context.Context) {
	defer close(h.watched)
	for pause := firstPause; h.presence.awaitNone(ctx); pause = min(2*pause, lastPause) {
		asking, stop := h.presence.whileNone(ctx)
		code, err := h.wait(asking)
		connected := asking.Err() != nil
		stop()
		switch {
		case ctx.Err() != nil:
			return
		case err == nil || cerrdefs.IsNotFound(err):
			h.status = h.describe(ctx, code)
			close(h.exited)
			return
		case connected:
			pause = firstPause
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// wait blocks until the container has ended and returns its exit code, -1 with an error.
func (h *handle) wait(ctx context.Context) (int, error) {
	done, failed := h.e.api.ContainerWait(ctx, h.container, container.WaitConditionNotRunning)
	select {
	case response := <-done:
		if response.Error != nil {
			return -1, errors.New(response.Error.Message)
		}
		return int(response.StatusCode), nil
	case err := <-failed:
		return -1, err
	}
}

// describe turns the engine's exit code into a status. It writes 128+N for a first process that signal N ended.
func (h *handle) describe(ctx context.Context, code int) kernels.ExitStatus {
	s := kernels.ExitStatus{Code: code, Asked: h.asked.Load()}
	if name, ok := signals[code-128]; ok {
		s.Code, s.Signal = -1, name
	}
	if inspect, err := h.e.api.ContainerInspect(ctx, h.container); err == nil && inspect.State != nil {
		s.OOM = inspect.State.OOMKilled && s.Signal == "SIGKILL" && !s.Asked
	}
	return s
}

// signals are those that end a process, by their number on Linux.
var signals = map[int]string{1: "SIGHUP", 2: "SIGINT", 3: "SIGQUIT", 4: "SIGILL", 5: "SIGTRAP", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE",
	9: "SIGKILL", 11: "SIGSEGV", 13: "SIGPIPE", 14: "SIGALRM", 15: "SIGTERM", 24: "SIGXCPU", 25: "SIGXFSZ", 31: "SIGSYS"}

// Ref names the container.
func (h *handle) Ref() kernels.Ref { return newRef(h.kernel, h.container) }

// Dial connects to the shim, over whichever carrier the container was made for.
func (h *handle) Dial(ctx context.Context) (net.Conn, error) {
	select {
	case <-h.exited:
		return nil, fault.New(fault.Died, "the kernel's container has ended")
	default:
	}
	conn, err := h.carrier.dial(ctx)
	if err != nil {
		return nil, fault.New(fault.Unavailable, "connecting to kernel %s: %w", h.kernel, err)
	}
	return h.bind(conn), nil
}

// lastWords is how long after the container's end its stream may still bring what was under way.
const lastWords = 500 * time.Millisecond

// bind makes a connection end with the container. An engine to which one attaches while the container dies may keep the
// connection open and silent for ever; one to the shim's own socket ends with the shim.
func (h *handle) bind(conn net.Conn) net.Conn {
	b := &boundConn{Conn: conn, gone: func() {}, closed: make(chan struct{})}
	if h.carrier.endsWithShim() {
		b.gone = sync.OnceFunc(h.presence.add())
	}
	go func() {
		select {
		case <-h.exited:
			_ = conn.SetReadDeadline(time.Now().Add(lastWords))
		case <-b.closed:
		}
	}()
	return b
}

// boundConn is a connection that somebody watches until it is closed.
type boundConn struct {
	net.Conn
	gone   func() // is told when nothing more comes
	once   sync.Once
	closed chan struct{}
}

func (b *boundConn) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		b.gone()
	}
	return n, err
}

// CloseWrite closes one direction, if the carrier can.
func (b *boundConn) CloseWrite() error {
	if half, ok := b.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (b *boundConn) Close() error {
	b.once.Do(func() { close(b.closed) })
	b.gone()
	return b.Conn.Close()
}

// Exited is closed when the container has ended.
func (h *handle) Exited() <-chan struct{} { return h.exited }

// Status says how the container ended.
func (h *handle) Status() kernels.ExitStatus {
	select {
	case <-h.exited:
		return h.status
	default:
		return kernels.ExitStatus{}
	}
}

// Logs returns the end of what the shim wrote: from the engine's log, or what came along on the attached stream.
func (h *handle) Logs(ctx context.Context) string {
	if text := h.carrier.log(); text != "" {
		return text
	}
	logs, err := h.e.api.ContainerLogs(ctx, h.container, container.LogsOptions{ShowStdout: true, ShowStderr: true, Tail: strconv.Itoa(logTail / 16)})
	if err != nil {
		return ""
	}
	defer logs.Close()
	var end tail
	_, _ = stdcopy.StdCopy(&end, &end, io.LimitReader(logs, 4<<20))
	return string(bytes.ToValidUTF8([]byte(end.String()), nil))
}

// Close stops watching. The container goes on.
func (h *handle) Close() error {
	h.cancel()
	<-h.watched
	return nil
}

var _ kernels.Handle = (*handle)(nil)
