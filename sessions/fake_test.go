package sessions

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
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
	readyErr   atomic.Pointer[error]
	connectErr atomic.Pointer[error]
	restartErr error
	unplugged  atomic.Bool // cells cannot be sent: the connection is down

	launched atomic.Int64
	live     atomic.Int64
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
	h := &fakeHandle{fakeKernel: &fakeKernel{p: p, id: spec.ID, exited: make(chan struct{})}, server: p.killed.Load()}
	if p.kernels == nil {
		p.kernels = map[string]*fakeHandle{}
	}
	p.kernels[spec.ID] = h
	return h, nil
}

func (p *fakeProvisioner) Attach(_ context.Context, ref kernels.Ref) (kernels.Handle, error) {
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
	return kernels.Capabilities{UID: 65534, GID: 65534}
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
	p      *fakeProvisioner
	id     string
	once   sync.Once
	exited chan struct{}
	client *fakeClient
}

func (h *fakeHandle) Ref() kernels.Ref                       { return kernels.Ref{Provisioner: "fake", KernelID: h.id} }
func (h *fakeHandle) Dial(context.Context) (net.Conn, error) { return nil, errors.New("no stream") }
func (h *fakeHandle) Exited() <-chan struct{}                { return h.exited }
func (h *fakeHandle) Status() kernels.ExitStatus             { return kernels.ExitStatus{Code: -1, Asked: true} }
func (h *fakeHandle) Logs(context.Context) string            { return "fake log: first\nfake log: last" }
func (h *fakeHandle) Close() error                           { return nil }

func (h *fakeHandle) Stop(_ context.Context, grace time.Duration) error {
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
	c := &fakeClient{p: p, server: h.server, late: o.Late, done: make(chan struct{})}
	h.client = c
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clients = append(p.clients, c)
	return c, nil
}

type fakeClient struct {
	p    *fakeProvisioner
	late func(kernels.Output, string) bool
	done chan struct{}
	// server has launched the kernel.
	server int64

	mu       sync.Mutex
	err      error
	current  *fakeCell
	cells    []*fakeCell
	restarts int
	frozen   atomic.Bool // it does not answer
}

func (c *fakeClient) Ready(ctx context.Context) error {
	if c.frozen.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := c.p.readyErr.Load(); err != nil {
		return *err
	}
	return c.Err()
}

func (c *fakeClient) Stats(ctx context.Context) (kernels.Stats, error) {
	return kernels.Stats{}, c.Ready(ctx)
}

func (c *fakeClient) Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error) {
	return c.execute(ctx, r, c.server)
}

// execute is Execute of a server's client.
func (c *fakeClient) execute(ctx context.Context, r kernels.ExecuteRequest, server int64) (cell, error) {
	if c.p.unplugged.Load() || server != c.p.killed.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, c.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	e := &fakeCell{id: r.MsgID, code: r.Code, mayAsk: r.AllowStdin, signals: make(chan string, 1), replies: make(chan string, 1), changed: make(chan struct{}), done: make(chan struct{})}
	if c.current != nil && !c.current.over() {
		panic("two cells at once on one kernel")
	}
	c.current = e
	c.cells = append(c.cells, e)
	go c.play(e)
	return e, nil
}

// play does what a cell's code says: "sleep 3s" (ends early when interrupted), "stubborn" (only a restart ends it), "steps N",
// "children" (ends when its children are killed), "die", "fail", "print N", "ask WORDS" (see ask); anything else is printed.
func (c *fakeClient) play(e *fakeCell) {
	word, rest, _ := strings.Cut(e.code, " ")
	switch word {
	case "sleep":
		d, _ := time.ParseDuration(rest)
		e.print("sleeping\n")
		select {
		case <-time.After(d):
			e.end(kernels.Result{Status: kernels.StatusOK})
		case <-e.awaitSignal("interrupt"):
			e.fail("KeyboardInterrupt")
		case <-e.done:
		}
	case "children":
		select {
		case <-e.awaitSignal("kill_children"):
			e.end(kernels.Result{Status: kernels.StatusOK})
		case <-e.done:
		}
	case "steps": // N lines, a second apart
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			e.print(fmt.Sprintf("line %d\n", i))
			select {
			case <-time.After(time.Second):
			case <-e.done:
				return
			}
		}
		e.end(kernels.Result{Status: kernels.StatusOK})
	case "stubborn":
		<-e.done
	case "die":
		c.die(kernels.Death{Cause: "the kernel was killed by SIGKILL", OOM: rest == "oom", Time: time.Now()})
	case "ask":
		c.ask(e, strings.Fields(rest))
	case "fail":
		e.fail("ValueError")
	case "print":
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			e.print(fmt.Sprintf("line %d\n", i))
		}
		e.end(kernels.Result{Status: kernels.StatusOK})
	default:
		e.print(e.code)
		e.end(kernels.Result{Status: kernels.StatusOK})
	}
}

// ask prompts once for each word, and prints the answers; a word in brackets is a password's prompt.
func (c *fakeClient) ask(e *fakeCell, words []string) {
	for _, word := range words {
		e.put(kernels.Output{Kind: kernels.OutputInput, Text: word, Password: word[0] == '('})
		select {
		case line := <-e.replies:
			e.print(word + line + "\n")
		case <-e.awaitSignal("interrupt"):
			e.fail("KeyboardInterrupt")
			return
		case <-e.done:
			return
		}
	}
	e.end(kernels.Result{Status: kernels.StatusOK})
}

func (c *fakeClient) signal(name string) {
	c.mu.Lock()
	e := c.current
	c.mu.Unlock()
	if e != nil {
		select {
		case e.signals <- name:
		default:
		}
	}
}

func (c *fakeClient) Interrupt(context.Context) error { c.signal("interrupt"); return nil }

func (c *fakeClient) KillChildren(context.Context) (int, error) {
	c.signal("kill_children")
	return 1, nil
}

func (c *fakeClient) Restart(context.Context, time.Duration) error {
	if c.p.restartErr != nil {
		return c.p.restartErr
	}
	c.mu.Lock()
	c.restarts++
	e := c.current
	c.mu.Unlock()
	if e != nil {
		e.end(kernels.Result{Status: kernels.StatusDied, Death: &kernels.Death{Cause: "restart", Asked: true}})
	}
	return nil
}

func (c *fakeClient) die(d kernels.Death) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = &kernels.DeathError{Death: d}
	if c.current != nil {
		c.current.end(kernels.Result{Status: kernels.StatusDied, Death: &d})
	}
	close(c.done)
}

func (c *fakeClient) Done() <-chan struct{} { return c.done }
func (c *fakeClient) Err() error            { c.mu.Lock(); defer c.mu.Unlock(); return c.err }
func (c *fakeClient) Close() error          { return nil } // the kernel goes on

// There was no earlier client: see adoptingClient.
func (c *fakeClient) Adopted(string) (cell, bool) { return nil, false }
func (c *fakeClient) CaughtUp() <-chan struct{}   { return begun }
func (c *fakeClient) ReleaseLate(string, uint64)  {}

// adoptingClient is the client of a kernel that an earlier process has launched. The shim behind it has acknowledged
// nothing: all that a cell has put out comes again.
type adoptingClient struct {
	*fakeClient
	server int64
}

func (c adoptingClient) Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error) {
	return c.execute(ctx, r, c.server)
}

func (c adoptingClient) Adopted(msgID string) (cell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.cells {
		if e.id == msgID {
			return &adoptedCell{fakeCell: e}, true
		}
	}
	// It was never sent: a fence would tell.
	lost := &fakeCell{id: msgID, changed: make(chan struct{}), done: make(chan struct{}), result: kernels.Result{Status: kernels.StatusIncomplete}}
	close(lost.done)
	return &adoptedCell{fakeCell: lost, unseen: true}, true
}

// adoptedCell is read from its beginning again.
type adoptedCell struct {
	*fakeCell
	at     int
	unseen bool
}

func (e *adoptedCell) Next(ctx context.Context) (kernels.Output, error) { return e.next(ctx, &e.at) }

func (e *adoptedCell) Begun() <-chan struct{} {
	if e.unseen {
		return nil
	}
	return begun
}

// fakeCell is one execution of the fake kernel.
type fakeCell struct {
	id, code string
	mayAsk   bool
	signals  chan string
	replies  chan string // lines of input

	mu      sync.Mutex
	outs    []kernels.Output
	read    int
	changed chan struct{}
	result  kernels.Result
	done    chan struct{}
}

func (e *fakeCell) print(text string) {
	e.put(kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text})
}

func (e *fakeCell) put(out kernels.Output) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out.Seq = fakeSeq.Add(1)
	e.outs = append(e.outs, out)
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *fakeCell) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

func (e *fakeCell) end(r kernels.Result) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.over() {
		e.result = r
		close(e.done)
	}
}

func (e *fakeCell) fail(name string) {
	e.end(kernels.Result{Status: kernels.StatusError, Error: &kernels.ExecError{Name: name}})
}

// awaitSignal is ready when the named signal arrives.
func (e *fakeCell) awaitSignal(name string) <-chan struct{} {
	got := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-e.signals:
				if s == name {
					close(got)
					return
				}
			case <-e.done:
				return
			}
		}
	}()
	return got
}

// fakeSeq numbers outputs as shims do, but for all kernels together.
var fakeSeq atomic.Uint64

func (e *fakeCell) Next(ctx context.Context) (kernels.Output, error) { return e.next(ctx, &e.read) }

// next is Next for a reader that has got so far.
func (e *fakeCell) next(ctx context.Context, read *int) (kernels.Output, error) {
	for {
		e.mu.Lock()
		if *read < len(e.outs) {
			out := e.outs[*read]
			*read++
			e.mu.Unlock()
			return out, nil
		}
		changed := e.changed
		e.mu.Unlock()
		select {
		case <-changed:
		case <-e.done:
			if e.drained(*read) {
				return kernels.Output{}, io.EOF
			}
		case <-ctx.Done():
			return kernels.Output{}, ctx.Err()
		}
	}
}

func (e *fakeCell) drained(read int) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return read == len(e.outs)
}

func (e *fakeCell) Hold()          {}
func (e *fakeCell) Release(uint64) {}

func (e *fakeCell) Reply(_ context.Context, line string) error {
	e.replies <- line
	return nil
}

func (e *fakeCell) Begun() <-chan struct{} { return begun }
func (e *fakeCell) Done() <-chan struct{}  { return e.done }
func (e *fakeCell) Result() kernels.Result { e.mu.Lock(); defer e.mu.Unlock(); return e.result }

// begun is closed: a fake cell begins as it is sent.
var begun = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

var (
	alice = Owner{Issuer: "test", Subject: "alice"}
	bob   = Owner{Issuer: "test", Subject: "bob"}
)

// newTestManager returns a Manager over the fake. The test ends with all sessions gone and no kernel left.
func newTestManager(t *testing.T, p *fakeProvisioner, change ...func(*Config)) *Manager {
	t.Helper()
	cfg := Config{
		Provisioner: p, DataDir: t.TempDir(),
		Runtimes: map[string]Runtime{"python": {Kernelspec: kernels.Kernelspec{Name: "python3"}}, "bash": {}},
		Limits:   kernels.Limits{Memory: 2 << 30},
		Logger:   slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m.connect = p.connect
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Errorf("Shutdown: %v", err)
		}
		if n := p.live.Load(); n != 0 {
			t.Errorf("%d kernels are left", n)
		}
	})
	return m
}

func python(id, code string) Request { return Request{SessionID: id, Language: "python", Code: code} }

// start is Execute that must be accepted.
func start(t *testing.T, m *Manager, o Owner, r Request) *Execution {
	t.Helper()
	e, err := m.Execute(t.Context(), o, r)
	if err != nil {
		t.Fatalf("Execute(%q): %v", clip(r.Code, 40), err)
	}
	return e
}

// wait is Wait for a cell that must have run.
func wait(t *testing.T, e *Execution) Result {
	t.Helper()
	r, err := e.Wait(t.Context())
	if err != nil {
		t.Fatalf("cell %d did not run: %v", e.Number(), err)
	}
	return r
}

func execute(t *testing.T, m *Manager, o Owner, id, code string) (*Execution, Result) {
	t.Helper()
	e := start(t, m, o, python(id, code))
	return e, wait(t, e)
}

func text(t *testing.T, e *Execution) string {
	t.Helper()
	var b strings.Builder
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if out.Notice != nil {
			b.WriteString(out.Notice.String())
		}
		b.WriteString(out.Text)
	}
	return b.String()
}

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

// NotReady has kernels not answer, NotConnected not be connected to; nil mends it.
func (p *fakeProvisioner) NotReady(err error)     { store(&p.readyErr, err) }
func (p *fakeProvisioner) NotConnected(err error) { store(&p.connectErr, err) }

func store(to *atomic.Pointer[error], err error) {
	if to.Store(nil); err != nil {
		to.Store(&err)
	}
}
