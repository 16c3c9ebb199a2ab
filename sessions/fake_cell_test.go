package sessions

import (
	"context"
	"io"
	"sync"

	"cellblock/kernels"
)

// fakeCell is one execution of the fake kernel.
type fakeCell struct {
	id, code string
	mayAsk   bool
	signals  chan string
	replies  chan string // lines of input

	unsent  bool // the kernel never had it
	silent  bool // it gave no sign of it
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
			if e.drained(*read) {
				return kernels.Output{}, ctx.Err()
			}
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

func (e *fakeCell) Unsent() bool { return e.unsent }
func (e *fakeCell) Begun() <-chan struct{} {
	if e.unsent || e.silent {
		return nil
	}
	return begun
}
func (e *fakeCell) Done() <-chan struct{}  { return e.done }
func (e *fakeCell) Result() kernels.Result { e.mu.Lock(); defer e.mu.Unlock(); return e.result }

// begun is closed: a fake cell begins as it is sent.
var begun = func() chan struct{} { c := make(chan struct{}); close(c); return c }()
