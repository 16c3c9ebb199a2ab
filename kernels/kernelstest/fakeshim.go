package kernelstest

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"cellblock/kernels/stream"
)

// entry is one frame of the journal; how it is written is the fault that its first writing shows.
type entry struct {
	seq   uint64
	frame []byte
	fault streamFault
}

// streamFault is something wrong with the stream itself, shown once at a frame.
type streamFault int

const (
	faultNone      streamFault = iota
	faultTwice                 // the frame is sent twice
	faultSkip                  // the frame is left out
	faultCut                   // half of the frame is sent, then the connection ends
	faultGarbage               // bytes that are no frame are sent instead
	faultHuge                  // a length of 3 GiB is claimed
	faultHangup                // the connection ends before the frame
	faultNonsense              // as faultGarbage, again on every connection
	faultWrongType             // the frame says that it is a Hello
)

// peer is one connection of a server. One goroutine writes to it, so that reading never waits for writing.
type peer struct {
	conn    net.Conn
	replies [][]byte // guarded by Kernel.mu
	ended   chan struct{}
}

// Dial connects to the fake shim. As with a real one, the connection before ends.
func (k *Kernel) Dial(context.Context) (net.Conn, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.stopped:
		return nil, errors.New("the fake kernel has ended")
	case k.refuse != nil:
		return nil, k.refuse
	}
	k.hangup()
	client, server := net.Pipe()
	p := &peer{conn: server, ended: make(chan struct{})}
	k.peer = p
	k.dials++
	k.wg.Go(func() { k.serve(p) })
	return client, nil
}

// serve speaks with one server until the connection ends.
func (k *Kernel) serve(p *peer) {
	defer close(p.ended)
	defer p.conn.Close()
	r := stream.NewReader(p.conn, 1<<30)
	f, err := r.ReadFrame()
	var hello stream.Hello
	if err != nil || f.Type != stream.FrameHello || stream.DecodeJSON(f.Payload, &hello) != nil {
		return
	}
	welcome, after := k.greet(hello)
	if stream.NewWriter(p.conn).WriteJSON(stream.FrameWelcome, welcome) != nil || welcome.Error != "" {
		return
	}
	k.wg.Go(func() { defer p.conn.Close(); k.replay(p, after) })
	k.listen(p, r)
}

// greet answers Hello and returns the number after which the server wants to go on.
func (k *Kernel) greet(hello stream.Hello) (stream.Welcome, uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	after := k.acked
	if hello.After != nil { // which counts as an acknowledgement
		after = *hello.After
		k.acknowledge(after)
	}
	welcome := stream.Welcome{Version: stream.Version, KernelID: k.opts.ID, Next: k.next, After: after, Incarnation: k.started, Alive: k.proc != nil}
	if k.request != "" {
		welcome.Request, welcome.RequestMS = k.request, time.Since(k.requested).Milliseconds()
	}
	if k.opts.EditWelcome != nil {
		k.opts.EditWelcome(&welcome)
	}
	return welcome, after
}

// replay writes the replies, the journal from after on, and then what comes.
func (k *Kernel) replay(p *peer, after uint64) {
	for {
		k.mu.Lock()
		changed := k.changed
		var f entry
		if len(p.replies) > 0 {
			f.frame, p.replies = p.replies[0], p.replies[1:]
		} else {
			f = k.entryAfter(after)
		}
		k.mu.Unlock()
		if f.frame == nil {
			select {
			case <-changed:
				continue
			case <-p.ended:
				return
			}
		}
		if write(p.conn, f.frame, f.fault) != nil {
			return
		}
		after = max(after, f.seq)
	}
}

// entryAfter returns the first frame after a number; where the journal gave frames up, an EventGap. k.mu is held.
func (k *Kernel) entryAfter(after uint64) entry {
	first := k.next
	if len(k.journal) > 0 {
		first = k.journal[0].seq
	}
	switch {
	case after+1 >= k.next:
		return entry{}
	case after+1 < first:
		gap := stream.Event{Kind: stream.EventGap, Time: time.Now(), Gap: &stream.Gap{From: after + 1, To: first - 1, Bytes: 1}}
		frame := encode(func(w *stream.Writer) error { return w.WriteEvent(first-1, gap) })
		return entry{seq: first - 1, frame: frame}
	}
	e := &k.journal[after+1-first]
	found := *e
	if e.fault != faultNonsense {
		e.fault = faultNone
	}
	return found
}

// write writes one frame with a fault.
func write(conn net.Conn, frame []byte, fault streamFault) error {
	var err error
	switch fault {
	case faultTwice:
		_, err = conn.Write(append(append([]byte(nil), frame...), frame...))
	case faultSkip:
	case faultCut:
		_, _ = conn.Write(frame[:len(frame)/2])
		err = io.ErrClosedPipe
	case faultGarbage, faultNonsense:
		_, err = conn.Write([]byte("\x00\x00\x00\x04HTTP/1.1 400 Bad Request\r\n"))
	case faultHuge:
		_, err = conn.Write([]byte{0xc0, 0, 0, 0, byte(stream.FrameMessage), 1, 2, 3})
	case faultWrongType:
		_, err = conn.Write(append(append([]byte(nil), frame[:4]...), append([]byte{byte(stream.FrameHello)}, frame[5:]...)...))
	case faultHangup:
		err = io.ErrClosedPipe
	default:
		_, err = conn.Write(frame)
	}
	return err
}

// listen reads what the server sends.
func (k *Kernel) listen(p *peer, r *stream.Reader) {
	for {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		switch f.Type {
		case stream.FrameAck:
			if seq, err := stream.DecodeAck(f.Payload); err == nil {
				k.mu.Lock()
				k.acknowledge(seq)
				k.mu.Unlock()
			}
		case stream.FrameSend:
			if m, err := stream.DecodeMessage(f.Payload); err == nil {
				k.receive(m)
			}
		case stream.FrameRequest:
			var q stream.Request
			if stream.DecodeJSON(f.Payload, &q) != nil {
				return
			}
			reply := k.perform(q)
			k.mu.Lock()
			hook := k.hook
			k.mu.Unlock()
			if hook != nil {
				hook(q)
			}
			k.mu.Lock()
			p.replies = append(p.replies, encode(func(w *stream.Writer) error { return w.WriteJSON(stream.FrameReply, reply) }))
			k.touch()
			k.mu.Unlock()
		}
	}
}

// acknowledge forgets the journal up to seq. k.mu is held.
func (k *Kernel) acknowledge(seq uint64) {
	k.acked = max(k.acked, min(seq, k.next-1))
	for len(k.journal) > 0 && k.journal[0].seq <= k.acked {
		k.journal = k.journal[1:]
	}
	k.touch()
}

// encode returns the bytes of one frame.
func encode(f func(*stream.Writer) error) []byte {
	var b writeBuffer
	if err := f(stream.NewWriter(&b)); err != nil {
		panic("kernelstest: " + err.Error())
	}
	return b
}

type writeBuffer []byte

func (b *writeBuffer) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	return len(p), nil
}

// message puts a message of the kernel into the journal.
func (k *Kernel) message(m stream.Message, fault streamFault) {
	k.mu.Lock()
	defer k.mu.Unlock()
	m.Seq = k.next
	k.append(encode(func(w *stream.Writer) error { return w.WriteMessage(stream.FrameMessage, m) }), fault)
}

// event puts an event into the journal. k.mu is held.
func (k *Kernel) event(e stream.Event) {
	e.Time = time.Now()
	k.append(encode(func(w *stream.Writer) error { return w.WriteEvent(k.next, e) }), faultNone)
}

func (k *Kernel) append(frame []byte, fault streamFault) {
	k.journal = append(k.journal, entry{k.next, frame, fault})
	k.next++
	k.touch()
}

// perform does what a server asks of the shim.
func (k *Kernel) perform(q stream.Request) stream.Reply {
	k.mu.Lock()
	k.asked = append(k.asked, q.Op)
	p := k.proc
	k.mu.Unlock()
	reply := stream.Reply{ID: q.ID, Error: k.opts.FailOps[q.Op]}
	if reply.Error != "" {
		return reply
	}
	switch q.Op {
	case stream.OpPing:
	case stream.OpInterrupt:
		if p != nil {
			wakeUp(p.interrupts)
		}
	case stream.OpKillChildren:
		if p != nil {
			reply.Killed = p.killChildren()
		}
	case stream.OpRestart:
		k.endProcess(stream.Exit{Code: -1, Signal: "SIGTERM", Asked: true})
		k.startProcess()
	case stream.OpStats:
		reply.Stats = &stream.Stats{Memory: 64 << 20, MemoryLimit: 512 << 20, ShimMemory: 4 << 20}
		if p != nil {
			p.mu.Lock()
			reply.Stats.OOMKills = p.oomKills
			p.mu.Unlock()
		}
	default:
		reply.Error = "unknown request"
	}
	return reply
}

func wakeUp(ch chan<- struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
