package kernelstest

import (
	"context"
	"sync"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// KernelOptions say how a fake kernel behaves. The zero value is a kernel without faults.
type KernelOptions struct {
	// ID is what the shim says in Welcome; default "fake".
	ID string
	// Boot is how long the kernel takes to come up. Requests that come before wait for it.
	Boot time.Duration
	// MissFirst is how many of the first requests the kernel never sees.
	MissFirst int
	// NoIdles is how many of the first idles get lost, as if IOPub was not subscribed yet.
	NoIdles int
	// IOPubWelcome makes the kernel publish iopub_welcome (JEP 65).
	IOPubWelcome bool
	// FailStart, when not empty, is the output of a kernel that exits with status 1 at once.
	FailStart string
	// OneParent makes the kernel tag what its threads print with whatever request came last, as ipykernel 6 does.
	OneParent bool
	// Banner is what the kernel says of itself; empty: something short.
	Banner string
	// FailOps are requests that the shim answers with an error.
	FailOps map[stream.Op]string
	// EditWelcome may change what the shim says first.
	EditWelcome func(*stream.Welcome)
}

// Kernel is a fake kernel and its shim, in this process: a kernels.Dialer. It runs scripts instead of code: see script.
// It keeps a journal and honours acknowledgement and resume as a shim does.
type Kernel struct {
	opts   KernelOptions
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	exited chan struct{}

	mu      sync.Mutex
	changed chan struct{} // closed and replaced when the journal, the replies or the connection change
	journal []entry
	next    uint64 // number of the next frame
	acked   uint64
	peer    *peer
	dials   int
	refuse  error
	status  kernels.ExitStatus
	stopped bool
	proc    *process // nil while no kernel process runs
	started int      // processes so far
	asked   []stream.Op
	hook    func(stream.Request)
	// request is the last execute_request, and requested when it came.
	request   string
	requested time.Time
}

// NewKernel starts a fake kernel. Close ends it.
func NewKernel(o KernelOptions) *Kernel {
	if o.ID == "" {
		o.ID = "fake"
	}
	k := &Kernel{opts: o, exited: make(chan struct{}), changed: make(chan struct{}), next: 1}
	k.ctx, k.cancel = context.WithCancel(context.Background())
	k.startProcess()
	return k
}

// Close ends kernel and shim, as if the container had been killed by its owner. It returns when nothing of it runs.
func (k *Kernel) Close() {
	k.exit(kernels.ExitStatus{Code: -1, Signal: "SIGKILL", Asked: true})
	k.wg.Wait()
}

// Crash ends the container with a status, without a word on the stream.
func (k *Kernel) Crash(s kernels.ExitStatus) { k.exit(s) }

func (k *Kernel) exit(s kernels.ExitStatus) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	k.stopped, k.status = true, s
	k.hangup()
	if k.proc != nil {
		k.proc.cancel()
	}
	close(k.exited)
	k.cancel()
	k.touch()
}

// Exited is closed when the fake container has ended.
func (k *Kernel) Exited() <-chan struct{} { return k.exited }

// Status says how it ended.
func (k *Kernel) Status() kernels.ExitStatus {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.status
}

// Dials returns how many connections there have been.
func (k *Kernel) Dials() int { k.mu.Lock(); defer k.mu.Unlock(); return k.dials }

// Acked returns the last number that a server acknowledged.
func (k *Kernel) Acked() uint64 { k.mu.Lock(); defer k.mu.Unlock(); return k.acked }

// Last returns the number of the last frame.
func (k *Kernel) Last() uint64 { k.mu.Lock(); defer k.mu.Unlock(); return k.next - 1 }

// Asked returns what servers have asked of the shim, in order.
func (k *Kernel) Asked() []stream.Op {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]stream.Op(nil), k.asked...)
}

// OnRequest calls f after the shim has done what a server asked and before it replies.
func (k *Kernel) OnRequest(f func(stream.Request)) { k.mu.Lock(); k.hook = f; k.mu.Unlock() }

// Refuse makes every later Dial fail; nil allows them again.
func (k *Kernel) Refuse(err error) { k.mu.Lock(); k.refuse = err; k.mu.Unlock() }

// Hangup ends the present connection.
func (k *Kernel) Hangup() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.hangup()
}

func (k *Kernel) hangup() {
	if k.peer != nil {
		_ = k.peer.conn.Close()
	}
}

// LoseJournal gives up everything that waits in the journal, as one that is too small does while no server is there.
func (k *Kernel) LoseJournal() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.journal = nil
}

// AwaitAck waits until seq was acknowledged.
func (k *Kernel) AwaitAck(ctx context.Context, seq uint64) error {
	return k.await(ctx, func() bool { return k.acked >= seq })
}

// AwaitLast waits until the kernel has produced seq frames.
func (k *Kernel) AwaitLast(ctx context.Context, seq uint64) error {
	return k.await(ctx, func() bool { return k.next > seq })
}

func (k *Kernel) await(ctx context.Context, ok func() bool) error {
	for {
		k.mu.Lock()
		met, changed := ok(), k.changed
		k.mu.Unlock()
		if met {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// touch wakes who waits for a change. k.mu is held.
func (k *Kernel) touch() {
	close(k.changed)
	k.changed = make(chan struct{})
}

var _ kernels.Dialer = (*Kernel)(nil)
