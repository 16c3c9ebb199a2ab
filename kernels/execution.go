package kernels

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// Execution is one execute_request and all that it produces, in order. It has one reader: Next must not be called twice at
// once. Its other methods may be called concurrently.
type Execution struct {
	c          *Client
	call       *call
	allowStdin bool
	more       chan struct{} // holds a token when there may be more to read
	room       chan struct{} // holds a token when the reader has made room

	// What follows is guarded by Client.mu.
	items     []item // queued, from head on
	head      int
	size      int64
	returned  uint64 // the output that Next returned last, until it is dealt with
	held      bool   // Release tells what was dealt with, not Next
	taken     uint64 // the output that Next returned last, if held
	released  uint64 // up to where they were released, if held
	end       uint64 // the first of reply and idle, until the end was read and left
	read      bool   // Next has returned io.EOF
	forgotten bool
	unbounded bool
	result    Result
	lastError *ExecError
	input     *wire.Header // the unanswered input_request
}

type item struct {
	out  Output
	size int64
}

func newExecution(c *Client, k *call) *Execution {
	e := &Execution{c: c, call: k, more: make(chan struct{}, 1), room: make(chan struct{}, 1)}
	k.exec = e
	return e
}

// ID returns the msg_id.
func (e *Execution) ID() string { return e.call.id }

// Begun is closed when the kernel has taken the code: from then on an interrupt reaches it.
func (e *Execution) Begun() <-chan struct{} { return e.call.begun }

// Unsent tells whether the kernel, as far as its shim says, never had the code. While Begun is open and this is false, it may
// have begun and died before it could say so.
func (e *Execution) Unsent() bool {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	return e.call.unsent
}

// Done is closed when the execution has ended; outputs may still be unread.
func (e *Execution) Done() <-chan struct{} { return e.call.done }

// Result returns how it ended; valid once Done is closed.
func (e *Execution) Result() Result {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	return e.result
}

// Next returns the next output, waiting for it. It returns io.EOF when the execution has ended and all of it was read,
// ctx's error when that ends first, and ErrClosed once the Client is closed.
//
// Calling Next tells that what it returned before was dealt with: the shim may then forget it, and no later Client will
// get it. The end itself is dealt with when Next is called once more after io.EOF, when output of a later execution is
// dealt with, or by Forget; so a result that is stored in between survives a crash. Hold changes the first of these.
func (e *Execution) Next(ctx context.Context) (Output, error) {
	e.leave()
	for {
		out, err, ok := e.take()
		if ok {
			return out, err
		}
		select {
		case <-e.more:
		case <-e.c.done:
		case <-e.call.done:
		case <-ctx.Done():
			if out, err, ok := e.take(); ok { // it was there before
				return out, err
			}
			return Output{}, ctx.Err()
		}
	}
}

// Forget tells that nobody wants what is still to come: it is thrown away as it arrives. The code itself goes on.
func (e *Execution) Forget() {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	e.forgotten, e.items, e.head, e.size, e.returned, e.end = true, nil, 0, 0, 0, 0
	e.taken = e.released
	delete(e.c.calls.execs, e.call.id)
	e.c.ackSoon()
	wake(e.room)
	wake(e.more)
}

// Reply answers the last OutputInput with a line of input. An adopted execution may have asked an earlier client.
func (e *Execution) Reply(ctx context.Context, value string) error {
	e.c.mu.Lock()
	parent := e.input
	e.input = nil
	e.c.mu.Unlock()
	switch {
	case parent == nil && e.call.adopted:
		parent = &wire.Header{} // what asked was dealt with by an earlier client; kernels do not look at who is answered
	case parent == nil:
		return fault.New(fault.Conflict, "the code does not wait for input")
	}
	content, err := json.Marshal(map[string]string{"value": value})
	if err != nil {
		return err
	}
	m := wire.Message{Header: wire.NewHeader(newMsgID(), e.c.session, "input_reply"), Parent: *parent, Content: content}
	_, err = e.c.send(ctx, stream.Stdin, m)
	return err
}

// leave records that what Next returned was dealt with.
func (e *Execution) leave() {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	switch {
	case e.read:
		delete(e.c.calls.execs, e.call.id)
	case e.returned != 0:
		e.c.releaseBefore(e.returned)
		e.returned = 0
	default:
		return
	}
	e.c.ackSoon()
}

// releaseBefore releases the ends of executions that were read and that are older than an output that was dealt with.
// c.mu is held.
func (c *Client) releaseBefore(seq uint64) {
	for id, e := range c.calls.execs {
		if e.read && e.end < seq {
			delete(c.calls.execs, id)
		}
	}
}

// take returns the next output or the end, if there is one.
func (e *Execution) take() (Output, error, bool) {
	e.c.mu.Lock()
	defer e.c.mu.Unlock()
	if errors.Is(e.c.err, ErrClosed) {
		return Output{}, ErrClosed, true
	}
	if e.head < len(e.items) {
		it := e.items[e.head]
		e.items[e.head] = item{}
		e.head++
		if e.head == len(e.items) {
			e.items, e.head = e.items[:0], 0
		}
		e.size -= it.size
		e.keep(it.out.Seq)
		wake(e.room)
		return it.out, nil, true
	}
	if !e.forgotten && !isClosed(e.call.done) {
		return Output{}, nil, false
	}
	e.read = true
	return Output{}, io.EOF, true
}

// fits tells whether an output of a size may be queued; one alone always may. c.mu is held.
func (e *Execution) fits(size int64) bool {
	return e.forgotten || e.unbounded || e.size == 0 || e.size+size <= e.c.opts.QueueBytes
}

// put queues an output. c.mu is held.
func (e *Execution) put(out Output, size int64) {
	if e.forgotten {
		return
	}
	if out.Kind == OutputError {
		e.lastError = out.Error
	}
	if e.head > 64 && 2*e.head > len(e.items) {
		n := copy(e.items, e.items[e.head:])
		clear(e.items[n:])
		e.items, e.head = e.items[:n], 0
	}
	e.items = append(e.items, item{out, size})
	e.size += size
	wake(e.more)
}

// hold keeps the end from being acknowledged before it was read. c.mu is held.
func (e *Execution) hold(seq uint64) {
	if e.end == 0 && !e.forgotten {
		e.end = seq
	}
}

// oldest returns the first number that was not dealt with, 0 if there is none. c.mu is held.
func (e *Execution) oldest() uint64 {
	oldest := e.end
	for _, seq := range []uint64{e.returned, e.unreleased(), e.headSeq()} {
		if seq != 0 && (oldest == 0 || seq < oldest) {
			oldest = seq
		}
	}
	return oldest
}

func (e *Execution) headSeq() uint64 {
	if e.head < len(e.items) {
		return e.items[e.head].out.Seq
	}
	return 0
}

// conclude sets the result from what was seen of the call. c.mu is held.
func (e *Execution) conclude(k *call) {
	e.result = k.result(e.lastError)
	if e.result.Reason != "" && !k.closed {
		e.put(Output{Kind: OutputNotice, Time: time.Now(), Notice: &Notice{Incomplete: e.result.Reason}}, itemOverhead)
	}
	wake(e.more)
}

// wake puts a token into a channel of capacity one.
func wake(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}
