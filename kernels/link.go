package kernels

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

// Times and bounds of the connection to a shim.
const (
	// handshakeTimeout bounds dialling, Hello and Welcome.
	handshakeTimeout = 10 * time.Second
	// writeTimeout bounds one write. A shim always reads; one that does not is cut off.
	writeTimeout = 10 * time.Second
	// drainTimeout is how long to wait for more from a shim whose container has ended.
	drainTimeout = 500 * time.Millisecond
	// healthyAfter is how long a connection must have lasted for earlier failures to be forgotten.
	healthyAfter = 10 * time.Second
	// maxNonsense is how many connections in a row may break the stream's format, maxBreaks how many may break at all.
	maxNonsense = 3
	maxBreaks   = 20
	maxBackoff  = time.Second
	// closeTimeout bounds the last acknowledgement, and then the wait until the shim has read it.
	closeTimeout = 3 * time.Second
)

// connState is the present connection. Guarded by Client.mu.
type connState struct {
	link *link         // nil while there is none
	up   chan struct{} // closed while there is one
	// hearing is since when the reader has been able to read; zero while there is no connection or a queue is full.
	hearing time.Time
}

// failures counts connections that ended badly, in a row. Only the reader touches it.
type failures struct {
	breaks, nonsense int
}

// link is one connection to the shim.
type link struct {
	conn    net.Conn
	r       *stream.Reader
	w       *stream.Writer
	since   time.Time
	welcome stream.Welcome
	tunnels *stream.Tunnels
	gone    chan struct{} // closed when the Client has given it up
	once    sync.Once
}

func (l *link) close() { l.once.Do(func() { _ = l.conn.Close() }) }

// hangUp closes the connection when the shim has dealt with all that was written. Only the reader may.
func (l *link) hangUp() { l.once.Do(func() { _ = stream.HangUp(l.conn, closeTimeout) }) }

// interrupt ends the reader's wait for more. It is for the reader to close the connection.
func (l *link) interrupt() {
	if l.conn.SetReadDeadline(time.Unix(1, 0)) != nil {
		l.close()
	}
}

// drain bounds the wait for the next frame, once the container has ended.
func (l *link) drain() { _ = l.conn.SetReadDeadline(time.Now().Add(drainTimeout)) }

func (l *link) write(f func(*stream.Writer) error) error {
	_ = l.conn.SetWriteDeadline(time.Now().Add(writeTimeout))
	return f(l.w)
}

// dial makes a connection and shakes hands.
func (c *Client) dial(ctx context.Context) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	conn, err := c.dialer.Dial(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l := &link{
		conn: conn, since: time.Now(), gone: make(chan struct{}),
		r: stream.NewReader(conn, c.opts.MaxFrame), w: stream.NewWriter(conn),
	}
	l.tunnels = stream.NewTunnels(l.write, c.tunnelOpened)
	err = c.shakeHands(l)
	if !stop() && err == nil {
		err = ctx.Err()
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (c *Client) shakeHands(l *link) error {
	hello := stream.Hello{Version: stream.Version, Tunnels: true}
	c.mu.Lock()
	received := c.seq.received
	if after := c.floor(); c.seq.begun { // the shim forgets that: what nobody has dealt with must not be among it
		hello.After = &after
	}
	c.mu.Unlock()
	if err := l.w.WriteJSON(stream.FrameHello, hello); err != nil {
		return err
	}
	f, err := l.r.ReadFrame()
	if err != nil {
		return err
	}
	if f.Type != stream.FrameWelcome {
		return fmt.Errorf("%w: frame of type %d instead of welcome", stream.ErrMalformed, f.Type)
	}
	if err := stream.DecodeJSON(f.Payload, &l.welcome); err != nil {
		return err
	}
	return c.checkWelcome(l.welcome, received)
}

// refusal is a Welcome that no redial will mend.
type refusal struct{ error }

func (r refusal) Unwrap() error { return r.error }

func refuse(format string, args ...any) refusal {
	return refusal{fault.New(fault.Unavailable, format, args...)}
}

// checkWelcome returns a refusal for a shim that is not the one we want.
func (c *Client) checkWelcome(w stream.Welcome, received uint64) error {
	switch {
	case w.Error != "":
		return refuse("the kernel's shim refused the connection: %s", clip(w.Error))
	case w.Version != stream.Version:
		return refusal{fault.New(fault.Unavailable, "the kernel's shim speaks version %d of the stream, this server %d",
			w.Version, stream.Version).
			WithHint("Close the session and open it again: its kernel was started by another version of the server.")}
	case c.opts.KernelID != "" && w.KernelID != c.opts.KernelID:
		return refuse("another kernel's shim answered: %q instead of %q", clip(w.KernelID), c.opts.KernelID)
	case received > 0 && w.Next <= received:
		return refuse("the kernel's shim has lost its place: next number %d, %d already seen", w.Next, received)
	}
	return nil
}

// attach makes l the present connection. c.mu is held.
func (c *Client) attach(l *link) {
	c.conn.link, c.conn.hearing = l, time.Now()
	close(c.conn.up)
	c.kernel.welcome(l.welcome)
	c.met(l.welcome)
	c.keepAlive(l)
	if !l.welcome.Alive && l.welcome.Incarnation > 0 {
		c.kernel.limbo = time.AfterFunc(c.opts.Grace, c.neverCame)
	}
	if c.calls.needFence() {
		c.wantFence()
	}
}

// detach gives the connection up and tells those who wait for an answer that will not come over it.
func (c *Client) detach(l *link) {
	l.close()
	l.tunnels.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.conn.link, c.conn.up, c.conn.hearing = nil, make(chan struct{}), time.Time{}
	c.kernel.leaveLimbo()
	c.requests.lost()
	close(l.gone)
}

// connected returns the present connection, waiting for one if need be.
func (c *Client) connected(ctx context.Context) (*link, error) {
	for {
		c.mu.Lock()
		l, up, err := c.conn.link, c.conn.up, c.err
		c.mu.Unlock()
		if err != nil {
			return nil, err
		}
		if l != nil {
			return l, nil
		}
		select {
		case <-up:
		case <-c.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// write writes one frame to the shim, on the next connection if this one breaks: a frame that was not written whole was
// not seen by the shim. It returns the connection that took it, or the error of ctx or of the client.
func (c *Client) write(ctx context.Context, f func(*stream.Writer) error) (*link, error) {
	for {
		l, err := c.connected(ctx)
		if err != nil {
			return nil, err
		}
		err = l.write(f)
		switch {
		case err == nil:
			return l, nil
		case isNonsense(err):
			return nil, fault.New(fault.Invalid, "the message cannot be sent: %w", err)
		}
		l.close()
		select {
		case <-l.gone:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// run reads connection after connection until the client ends.
func (c *Client) run(l *link) {
	for {
		cause := c.serve(l)
		if c.Err() != nil { // somebody has asked for the end
			l.hangUp()
			c.detach(l)
			return
		}
		c.detach(l)
		var dead *DeathError
		if errors.As(cause, &dead) {
			c.end(dead)
			return
		}
		next, err := c.relink(l, cause)
		if err != nil {
			c.end(err)
			return
		}
		c.mu.Lock()
		if c.err != nil {
			c.mu.Unlock()
			next.close()
			return
		}
		c.attach(next)
		c.mu.Unlock()
		l = next
	}
}

// relink redials after a connection broke, until it succeeds or there is no hope. The error is the client's end.
func (c *Client) relink(old *link, cause error) (*link, error) {
	s := &c.failures
	if time.Since(old.since) > healthyAfter {
		s.breaks, s.nonsense = 0, 0
	}
	for {
		if isNonsense(cause) {
			s.nonsense++
		}
		if s.nonsense >= maxNonsense || s.breaks >= maxBreaks || errors.As(cause, new(refusal)) {
			return nil, &DeathError{lostDeath(cause)}
		}
		c.log.Debug("kernels: the stream broke, redialling", "cause", cause, "try", s.breaks)
		if err := c.backoff(s.breaks); err != nil {
			return nil, err
		}
		s.breaks++
		next, err := c.dial(c.ctx)
		if err == nil {
			return next, nil
		}
		cause = err
	}
}

// isNonsense tells a shim that breaks the rules of the stream from a carrier that broke.
func isNonsense(err error) bool {
	return errors.Is(err, stream.ErrMalformed) || errors.Is(err, stream.ErrFrameTooLarge)
}

// backoff waits before the n-th redial; an error says that there is nothing to redial.
func (c *Client) backoff(n int) error {
	var wait time.Duration
	if n > 0 {
		wait = min(10*time.Millisecond<<min(n, 10), maxBackoff)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-c.dialer.Exited():
		return c.containerError()
	default:
	}
	select {
	case <-timer.C:
		return nil
	case <-c.ctx.Done():
		return ErrClosed
	case <-c.dialer.Exited():
		return c.containerError()
	}
}

// containerError is the end of a client whose kernel's container has ended.
func (c *Client) containerError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &DeathError{containerDeath(c.dialer.Status(), c.kernel.lastExit)}
}
