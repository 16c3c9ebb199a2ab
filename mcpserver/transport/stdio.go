package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// maxRunning bounds the requests of one stdio client that run at once.
	maxRunning = 256
	// lastWords is how long a client may take to read the answers once the server is to stop. Whatever still waits for it
	// then is given up, also on a pipe that has no deadlines, as those that a process is started with have none.
	lastWords = 5 * time.Second
)

// ServeStdio speaks MCP over a pair of streams, one message a line, until in ends (then it waits for what runs, answers
// it, and returns nil), out fails, or ctx ends (then it cancels what runs, waits for it, and returns ctx's error).
//
// Requests run side by side and are answered in the order in which they end; a cancelled one is not answered. Nothing but
// the protocol is written to out. A Read that is under way when ctx ends is given up: it is unblocked where in has
// deadlines, and else left to end by itself.
func (d *Dispatcher) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	parent := ctx
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	defer cancel(nil)
	defer context.AfterFunc(parent, func() { cancel(ErrShutdown) })()
	c := &stdioConn{
		d: d, out: out, abort: cancel, client: &client{}, slots: make(chan struct{}, maxRunning),
		turn: make(chan struct{}, 1), lost: make(chan struct{}),
	}
	giveUp := time.AfterFunc(time.Hour, func() { close(c.lost) }) // never: the end of ctx sets it
	giveUp.Stop()
	defer giveUp.Stop()
	defer context.AfterFunc(ctx, func() {
		unblock(in, out)
		giveUp.Reset(lastWords)
	})()

	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() { ended <- readLines(ctx, in, DefaultMaxBody, lines) }()

	err := c.loop(ctx, lines, ended)
	if err != nil {
		cancel(err)
	}
	c.running.Wait()
	switch {
	case parent.Err() != nil:
		return parent.Err()
	case err == nil:
		return context.Cause(ctx)
	}
	return err
}

// unblock ends a Read at once and a Write soon, where they can be ended.
func unblock(in io.Reader, out io.Writer) {
	if r, ok := in.(interface{ SetReadDeadline(time.Time) error }); ok {
		_ = r.SetReadDeadline(time.Now())
	}
	if w, ok := out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		_ = w.SetWriteDeadline(time.Now().Add(lastWords))
	}
}

// stdioConn is one client over stdio.
type stdioConn struct {
	d       *Dispatcher
	abort   context.CancelCauseFunc
	client  *client
	calls   inflight
	asked   questions
	running sync.WaitGroup
	slots   chan struct{}

	out  io.Writer
	turn chan struct{} // holds whose turn it is to write
	lost chan struct{} // closed when nothing is going to be read any more
}

// loop takes lines until there are no more or ctx ends.
func (c *stdioConn) loop(ctx context.Context, lines <-chan []byte, ended <-chan error) error {
	for {
		select {
		case line := <-lines:
			c.take(ctx, line)
		case err := <-ended:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// take deals with one line; nil stands for one that was too long.
func (c *stdioConn) take(ctx context.Context, line []byte) {
	if line == nil {
		c.answer(nil, refuse(mcp.INVALID_REQUEST, fmt.Sprintf("the line is longer than %d bytes", DefaultMaxBody)).response(nil))
		return
	}
	m, id, bad := parse(line)
	switch {
	case bad != nil:
		c.answer(id, bad.response(id))
	case m.isResponse():
		c.asked.answer(callKey{id: idKey(m.id)}, m)
	case m.method == string(mcp.MethodNotificationCancelled):
		c.calls.cancel(callKey{id: m.cancels})
	case m.isNotification():
		c.d.notified(ctx, m, c.client)
	default:
		c.start(ctx, m)
	}
}

// start runs a request beside the others. It is entered where a cancel finds it before the next line is read.
func (c *stdioConn) start(ctx context.Context, m *message) {
	select {
	case c.slots <- struct{}{}:
	default:
		c.answer(m.id, (&rpcError{code: codeBusy, message: fmt.Sprintf("%d requests are running already", maxRunning)}).response(m.id))
		return
	}
	free := func() { <-c.slots }
	ctx, cancel, end, bad := c.d.begin(ctx, m)
	if bad != nil {
		free()
		c.answer(m.id, bad.response(m.id))
		return
	}
	release, ok := c.calls.add(callKey{id: idKey(m.id)}, cancel)
	if !ok {
		end()
		free()
		c.answer(m.id, refuse(mcp.INVALID_REQUEST, "a request with this id is still running: use a new id").response(m.id))
		return
	}
	run := func() {
		defer end()
		c.run(ctx, m, func() { release(); free() })
	}
	if m.method == string(mcp.MethodInitialize) { // what follows may rely on it
		run()
		return
	}
	c.running.Go(run)
}

// run handles one request and answers it, unless its client cancelled it. The id is free again before the client can know
// that the call has ended.
func (c *stdioConn) run(ctx context.Context, m *message, release func()) {
	out := &outlet{to: c}
	if !mcp.IsModernProtocol(m.version) {
		out.line = &line{questions: &c.asked}
	}
	response := c.d.call(ctx, m, c.client, out)
	release()
	if errors.Is(context.Cause(ctx), ErrCancelled) {
		return
	}
	c.answer(m.id, response)
}

func (c *stdioConn) answer(id []byte, response mcp.JSONRPCMessage) {
	_ = c.send(c.d.encodeResponse(response, id)) // a failure ends the connection
}

// send writes one message as a line. When that fails, everything ends: nobody hears us any more. A Write that never
// returns is left behind once the client is lost; the process is about to end then.
func (c *stdioConn) send(payload []byte) error {
	select {
	case c.turn <- struct{}{}:
	case <-c.lost:
		return ErrNoStream
	}
	written := make(chan error, 1)
	go func() {
		_, err := c.out.Write(append(payload, '\n'))
		<-c.turn
		written <- err
	}()
	select {
	case err := <-written:
		if err == nil {
			return nil
		}
		c.abort(fmt.Errorf("%w: %w", ErrDisconnected, err))
		return fmt.Errorf("%w: %w", ErrNoStream, err)
	case <-c.lost:
		return ErrNoStream
	}
}

// readLines sends the lines of in that are not blank. One that is longer than most is skipped to its end and sent as nil.
// The last line needs no line break. It returns nil when in has ended.
func readLines(ctx context.Context, in io.Reader, most int, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, long, err := readLine(r, most)
		if line = bytes.TrimSpace(line); long {
			line = nil
		}
		if long || len(line) > 0 {
			select {
			case lines <- line:
			case <-ctx.Done():
				return nil
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("stdin: %w", err)
		}
	}
}

// readLine reads to the next line break, which does not count. Of a line that is longer than most it keeps nothing.
func readLine(r *bufio.Reader, most int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(bytes.TrimSuffix(part, []byte("\n"))) > most {
			line, long = nil, true
		}
		if !long {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, long, err
		}
	}
}
