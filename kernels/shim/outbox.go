//go:build linux

package shim

import (
	"sync"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// Reasons of EventDropped for messages on their way to the kernel. Parent is then the msg_id of the message itself.
const (
	ReasonQueueFull = "not sent: too much waits for the kernel"
	ReasonNotSent   = "not sent: "
)

// outbox sends messages to the kernel, each channel in order and by a goroutine of its own, so that a kernel that does
// not read one channel can still be reached on the others. Messages wait while no kernel is connected, maxQueued bytes
// at most. Its methods may be called concurrently.
type outbox struct {
	drops *drops
	meter *meter // nil: nobody measures
	wg    sync.WaitGroup

	mu      sync.Mutex
	changed sync.Cond
	links   links // nil while not connected
	dead    bool  // there is no kernel that could take anything
	closed  bool
	queues  map[stream.Channel][][][]byte
	bytes   int64
}

// newOutbox starts the goroutines that close ends.
func newOutbox(d *drops, m *meter) *outbox {
	o := &outbox{drops: d, meter: m, queues: make(map[stream.Channel][][][]byte)}
	o.changed.L = &o.mu
	for _, ch := range []stream.Channel{stream.Shell, stream.Control, stream.Stdin} {
		o.wg.Go(func() { o.run(ch) })
	}
	return o
}

// put queues a message. What cannot be queued is reported.
func (o *outbox) put(ch stream.Channel, parts [][]byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	size := sizeOf(parts)
	switch {
	case o.dead:
		o.report(ch, parts, ReasonNotSent+"the kernel has ended")
	case o.bytes+size > maxQueued:
		o.report(ch, parts, ReasonQueueFull)
	default:
		o.queues[ch] = append(o.queues[ch], parts)
		o.bytes += size
		o.changed.Broadcast()
	}
}

// connect sends what waits, and what comes, over k's links, unless k is being ended.
func (o *outbox) connect(k *kernel, l links) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !k.asked.Load() {
		o.links = l
		o.changed.Broadcast()
	}
}

// disconnect lets messages wait for another connection.
func (o *outbox) disconnect() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.links = nil
}

// discard reports what waits as not sent: it was meant for a kernel that ends. What comes now waits for the next
// kernel, or, if there will be none, is reported too.
func (o *outbox) discard(next bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for ch, queue := range o.queues {
		for _, parts := range queue {
			o.report(ch, parts, ReasonNotSent+"the kernel has ended")
		}
	}
	clear(o.queues)
	o.bytes, o.links, o.dead = 0, nil, !next
}

// run sends one channel's messages.
func (o *outbox) run(ch stream.Channel) {
	for {
		l, parts, ok := o.take(ch)
		if !ok {
			return
		}
		measured := o.meter != nil && ch == stream.Shell
		if measured {
			o.meter.expect(parts)
		}
		if err := l.Send(ch, parts); err != nil {
			o.report(ch, parts, ReasonNotSent+err.Error())
			if measured {
				o.meter.unsent(parts)
			}
		}
	}
}

// take waits for a message and somebody to send it to.
func (o *outbox) take(ch stream.Channel) (links, [][]byte, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && (o.links == nil || len(o.queues[ch]) == 0) {
		o.changed.Wait()
	}
	if o.closed {
		return nil, nil, false
	}
	parts := o.queues[ch][0]
	o.queues[ch][0] = nil
	o.queues[ch] = o.queues[ch][1:]
	o.bytes -= sizeOf(parts)
	return o.links, parts, true
}

func (o *outbox) close() {
	o.mu.Lock()
	o.closed = true
	o.changed.Broadcast()
	o.mu.Unlock()
	o.wg.Wait()
}

func (o *outbox) report(ch stream.Channel, parts [][]byte, reason string) {
	d := stream.Dropped{Channel: ch.String(), Reason: reason, Bytes: sizeOf(parts)}
	if len(parts) > 0 {
		h, _ := wire.ParseHeader(parts[0])
		d.Parent, d.MsgType = clip(h.MsgID), clip(h.MsgType)
	}
	o.drops.add(d)
}

func sizeOf(parts [][]byte) (n int64) {
	for _, p := range parts {
		n += int64(len(p))
	}
	return n
}
