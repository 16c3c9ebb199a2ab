package sessions

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// fakeProvisioner launches kernels that exist in memory only and use no timers but time's own, so that it works inside
// testing/synctest. What a cell does is written in its code: see fakeClient.play.
type fakeProvisioner struct {
	launchErr  atomic.Pointer[error]
	launchTime time.Duration
	stopTime   time.Duration
	images     bool
	attachTime time.Duration
	readyErr   atomic.Pointer[error]
	connectErr atomic.Pointer[error]
	stopErr    atomic.Pointer[error]
	restartErr error
	// restartTime is how long a kernel takes to be restarted.
	restartTime time.Duration
	unplugged   atomic.Bool   // cells cannot be sent: the connection is down
	starving    time.Duration // how much of their time kernels wait for a processor, in per cent
	unsent      atomic.Int64  // cells that came to nothing: see play
	// saving is how long a kernel takes to save its variables, loads what one answers that loads them; see play.
	saving time.Duration
	loads  string

	launched atomic.Int64
	live     atomic.Int64
	managers atomic.Int64
	mu       sync.Mutex
	specs    []kernels.Spec
	clients  []*fakeClient
	kernels  map[string]*fakeHandle // by id, while they run
	killed   atomic.Int64           // servers: their handles do nothing any more
}

var _ kernels.Provisioner = (*fakeProvisioner)(nil)

func (p *fakeProvisioner) Name() string { return "fake" }

func (p *fakeProvisioner) Launch(ctx context.Context, spec kernels.Spec) (kernels.Handle, error) {
	p.launched.Add(1)
	select {
	case <-time.After(p.launchTime):
	case <-ctx.Done():
		return nil, fault.New(fault.Unavailable, "launch given up: %w", ctx.Err())
	}
	if err := p.launchErr.Load(); err != nil {
		return nil, *err
	}
	p.live.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.specs = append(p.specs, spec)
	h := &fakeHandle{fakeKernel: &fakeKernel{p: p, id: spec.ID, workspace: spec.Workspace, exited: make(chan struct{})}, server: p.killed.Load()}
	if p.kernels == nil {
		p.kernels = map[string]*fakeHandle{}
	}
	p.kernels[spec.ID] = h
	return h, nil
}

func (p *fakeProvisioner) Attach(ctx context.Context, ref kernels.Ref) (kernels.Handle, error) {
	select {
	case <-time.After(p.attachTime):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if h := p.kernels[ref.KernelID]; h != nil {
		return &fakeHandle{fakeKernel: h.fakeKernel, server: p.killed.Load()}, nil
	}
	return nil, kernels.ErrGone
}

func (p *fakeProvisioner) List(context.Context) (refs []kernels.Ref, _ error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.kernels {
		refs = append(refs, h.Ref())
	}
	return refs, nil
}

func (p *fakeProvisioner) Health(context.Context) error { return nil }
func (p *fakeProvisioner) Close() error                 { return nil }
func (p *fakeProvisioner) Capabilities() kernels.Capabilities {
	return kernels.Capabilities{UID: 65534, GID: 65534, Images: p.images}
}

func (p *fakeProvisioner) last() *fakeClient {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.clients[len(p.clients)-1]
}

// fakeHandle is a server's handle of a kernel.
type fakeHandle struct {
	*fakeKernel
	server int64
}

type fakeKernel struct {
	p  *fakeProvisioner
	id string
	// workspace is the kernel's folder.
	workspace string
	once      sync.Once
	exited    chan struct{}
	client    *fakeClient
}

func (h *fakeHandle) Ref() kernels.Ref                       { return kernels.Ref{Provisioner: "fake", KernelID: h.id} }
func (h *fakeHandle) Dial(context.Context) (net.Conn, error) { return nil, errors.New("no stream") }
func (h *fakeHandle) Exited() <-chan struct{}                { return h.exited }
func (h *fakeHandle) Status() kernels.ExitStatus             { return kernels.ExitStatus{Code: -1, Asked: true} }
func (h *fakeHandle) Logs(context.Context) string            { return "fake log: first\nfake log: last" }
func (h *fakeHandle) Close() error                           { return nil }

func (h *fakeHandle) Stop(_ context.Context, grace time.Duration) error {
	if err := h.p.stopErr.Load(); err != nil {
		return *err
	}
	if h.server == h.p.killed.Load() {
		h.stop(grace)
	}
	return nil
}

func (h *fakeKernel) stop(grace time.Duration) {
	h.once.Do(func() {
		if grace > 0 {
			time.Sleep(h.p.stopTime)
		}
		if h.client != nil {
			h.client.die(kernels.Death{Cause: "the kernel was stopped", Asked: true})
		}
		h.p.live.Add(-1)
		h.p.mu.Lock()
		delete(h.p.kernels, h.id)
		h.p.mu.Unlock()
		close(h.exited)
	})
}

// connect is the Manager's connectFunc for fake handles.
func (p *fakeProvisioner) connect(_ context.Context, d kernels.Dialer, o kernels.Options) (client, error) {
	h := d.(*fakeHandle)
	if err := p.connectErr.Load(); err != nil {
		return nil, *err
	}
	if h.client != nil { // an earlier process has launched it
		return adoptingClient{h.client, h.server}, nil
	}
	c := &fakeClient{p: p, dir: h.workspace, server: h.server, late: o.Late, born: time.Now(), done: make(chan struct{})}
	h.client = c
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, c)
	return c, nil
}

// fakeSeq numbers outputs as shims do, but for all kernels together.
var fakeSeq atomic.Uint64

// KillServer has the handles of all servers so far do nothing any more.
func (p *fakeProvisioner) KillServer() { p.killed.Add(1) }

// KillLast kills the kernel process that was launched last.
func (p *fakeProvisioner) KillLast() {
	p.last().die(kernels.Death{Cause: "the kernel was killed by SIGKILL", Time: time.Now()})
}

// Reboot ends everything, as the host does.
func (p *fakeProvisioner) Reboot() {
	p.mu.Lock()
	all := slices.Collect(maps.Values(p.kernels))
	p.mu.Unlock()
	for _, h := range all {
		h.stop(0)
	}
}

// NotLaunched has no kernel be launched, NotReady not answer, NotConnected not be connected to; nil mends it.
func (p *fakeProvisioner) NotLaunched(err error)  { store(&p.launchErr, err) }
func (p *fakeProvisioner) NotReady(err error)     { store(&p.readyErr, err) }
func (p *fakeProvisioner) NotConnected(err error) { store(&p.connectErr, err) }

func store(to *atomic.Pointer[error], err error) {
	if to.Store(nil); err != nil {
		to.Store(&err)
	}
}
