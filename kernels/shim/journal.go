//go:build linux

package shim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

// Costs of keeping an entry beside its bytes, roughly what Go needs.
const (
	entryCost = 128
	partCost  = 32
)

const (
	// lull is how long a message that can wait waits for the next one, so that a cell wakes its readers once and not five
	// times: each costs them, and the kernel beside them, more than the message itself.
	lull = 2 * time.Millisecond
	// lullBytes is how much waits at most.
	lullBytes = 64 << 10
	// fetchTime is how long output waits for a reader that does not go on. The kernel may wait for it meanwhile.
	fetchTime = 10 * time.Second
)

// entry is one numbered frame: a message, or an event.
type entry struct {
	seq   uint64
	msg   stream.Message // used when event is nil
	event *stream.Event
	bytes int64 // of the message's parts
	cost  int64 // what it counts against the journal's cap
	cum   int64 // bytes of all entries up to and including this one
}

// journal numbers frames and keeps them until they are acknowledged, at most cap bytes besides the newest one and the
// newest that is larger than the cap: that is given up only for another such, not for the few bytes that come after it.
// Its methods may be called concurrently.
type journal struct {
	cap int64

	mu      sync.Mutex
	changed sync.Cond
	entries []entry // numbers first, first+1, …
	first   uint64
	next    uint64
	acked   uint64
	cost    int64
	large   int64  // cost of the newest entry that is larger than cap, while it is here…
	largest uint64 // …and its number
	cum     int64  // bytes of all entries ever
	goneCum int64  // cum of the last entry before first
	ackCum  int64  // cum of the last acknowledged entry; older than that if the entry had been given up

	readers int  // cursors that are open
	stuck   bool // none of them went on for a whole fetchTime, nor since then

	hushed int64       // bytes of what readers have not been woken for
	wake   *time.Timer // wakes them; runs while hushed is not 0
}

func newJournal(cap int64) *journal {
	j := &journal{cap: cap, first: 1, next: 1}
	j.changed.L = &j.mu
	j.wake = time.AfterFunc(time.Hour, j.wakeAll)
	j.wake.Stop()
	return j
}

// message appends a message of the kernel that readers shall have at once.
func (j *journal) message(ch stream.Channel, parts [][]byte) {
	e := newEntry(ch, parts)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(e)
	j.tell()
}

// patient appends a message that can wait a lull for what comes after it.
func (j *journal) patient(ch stream.Channel, parts [][]byte) {
	e := newEntry(ch, parts)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.append(e)
	if j.hushed == 0 {
		j.wake.Reset(lull)
	}
	if j.hushed += e.cost; j.hushed > lullBytes {
		j.tell()
	}
}

func newEntry(ch stream.Channel, parts [][]byte) entry {
	e := entry{msg: stream.Message{Channel: ch, Parts: parts}, cost: entryCost}
	for _, p := range parts {
		e.bytes += int64(len(p))
		e.cost += int64(len(p)) + partCost
	}
	return e
}

// report appends an event, dated now, that readers shall have at once.
func (j *journal) report(e stream.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
	j.tell()
}

// note appends an event, dated now, that waits for what is about to come after it.
func (j *journal) note(e stream.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.add(e)
}

// add appends an event, dated now. j.mu is held.
func (j *journal) add(e stream.Event) {
	e.Time = time.Now()
	cost := int64(2 * entryCost)
	if e.Exit != nil {
		cost += int64(len(e.Exit.Output) + len(e.Exit.Failed))
	}
	j.append(entry{event: &e, cost: cost})
}

// wakeAll wakes whoever waits.
func (j *journal) wakeAll() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.tell()
}

// tell wakes the readers. j.mu is held.
func (j *journal) tell() {
	if j.hushed != 0 {
		j.hushed = 0
		j.wake.Stop()
	}
	j.changed.Broadcast()
}

// append numbers an entry and makes room for it. j.mu is held.
func (j *journal) append(e entry) {
	if e.cost > j.cap {
		j.large = 0 // of the one before, if it is here
	}
	for j.cost-j.large > j.cap && len(j.entries) > 0 {
		j.drop(1)
	}
	j.cum += e.bytes
	e.seq, e.cum = j.next, j.cum
	if e.cost > j.cap {
		j.large, j.largest = e.cost, e.seq
	}
	e.msg.Seq = e.seq
	j.next++
	j.cost += e.cost
	j.entries = append(j.entries, e)
}

// drop forgets the oldest n entries.
func (j *journal) drop(n int) {
	for i := range j.entries[:n] {
		j.cost -= j.entries[i].cost
		j.goneCum = j.entries[i].cum
		if j.entries[i].seq == j.largest {
			j.large = 0
		}
		j.entries[i] = entry{} // the array lives on
	}
	j.entries = j.entries[n:]
	j.first += uint64(n)
}

// ack forgets everything up to seq. It returns how many bytes that gave back, and an error for a number that has not
// been given out.
func (j *journal) ack(seq uint64) (freed int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if seq >= j.next {
		return 0, fmt.Errorf("%w: acknowledges %d, next is %d", stream.ErrMalformed, seq, j.next)
	}
	if seq <= j.acked {
		return 0, nil
	}
	before := j.cost
	j.acked, j.stuck = seq, false
	if seq+1 >= j.first {
		j.drop(int(seq + 1 - j.first))
		j.ackCum = j.goneCum
	}
	j.changed.Broadcast()
	return before - j.cost, nil
}

// used returns what the journal keeps of what is bounded by its cap, in bytes.
func (j *journal) used() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.cost - j.large
}

// fits tells whether there is room.
func (j *journal) fits() bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.full()
}

// room waits until the journal is not crowded, with all that it keeps, as long as there are readers and they go on, or until ctx ends. It
// tells whether it had to wait.
func (j *journal) room(ctx context.Context) (waited bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.full() || j.readers == 0 || j.stuck {
		return false
	}
	defer context.AfterFunc(ctx, j.wakeAll)()
	acked, deadline, over := j.acked, time.Now().Add(fetchTime), false
	limit := time.AfterFunc(fetchTime, func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		over = j.acked == acked && !time.Now().Before(deadline) // or else the timer has been set anew, or is about to be
		j.changed.Broadcast()
	})
	defer limit.Stop()
	for j.full() && j.readers > 0 && !over && ctx.Err() == nil {
		if j.acked != acked {
			acked, deadline = j.acked, time.Now().Add(fetchTime)
			limit.Reset(fetchTime)
		}
		j.changed.Wait()
	}
	j.stuck = over && j.full()
	return true
}

// full is crowded, with all that the journal keeps. j.mu is held.
func (j *journal) full() bool { return j.cost > j.cap/4*3 }

// crowded tells whether output should be left out rather than kept. The last quarter is for what says how an execution
// went on and ended.
func (j *journal) crowded() bool { return j.used() > j.cap/4*3 }

// relieved tells whether output that waits because the journal was crowded may go on.
func (j *journal) relieved() bool { return j.used() <= j.cap/2 }

// cursor reads the journal in order. One goroutine uses it; close may be called by any.
type cursor struct {
	j      *journal
	next   uint64 // the number that follows what was read
	cum    int64  // bytes of everything up to there, as far as known
	idle   bool   // its reader waits for more
	closed bool
}

// follow returns a cursor at what follows number after, which counts as acknowledged; nil asks for everything that never
// was. It also returns the number that the next new frame will get.
func (j *journal) follow(after *uint64) (*cursor, uint64, error) {
	if after != nil {
		if _, err := j.ack(*after); err != nil {
			return nil, 0, err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.readers++
	c := &cursor{j: j, next: j.acked + 1, cum: j.ackCum}
	if after != nil {
		c.next = *after + 1
	}
	return c, j.next, nil
}

// read returns the next entry, waiting for it. More tells whether another one is there already. It is false in ok once
// the cursor is closed. Where the journal gave entries up, read returns one that reports this gap, under its last number.
// Its numbers are exact, and so are its bytes, unless a new connection begins at a place that itself was given up: then
// bytes that the server has got before are counted too.
func (c *cursor) read() (e entry, more, ok bool) {
	j := c.j
	j.mu.Lock()
	defer j.mu.Unlock()
	for c.next >= j.next && !c.closed {
		if !c.idle {
			c.idle = true
			j.changed.Broadcast()
		}
		j.changed.Wait()
	}
	c.idle = false
	if c.closed {
		return entry{}, false, false
	}
	if c.next < j.first {
		e = c.gap()
	} else {
		e = j.entries[c.next-j.first]
	}
	c.next, c.cum = e.seq+1, e.cum
	return e, c.next < j.next, true
}

func (c *cursor) gap() entry {
	last := c.j.first - 1
	event := &stream.Event{
		Kind: stream.EventGap, Time: time.Now(),
		Gap: &stream.Gap{From: c.next, To: last, Bytes: c.j.goneCum - c.cum},
	}
	return entry{seq: last, event: event, cum: c.j.goneCum}
}

// sent waits until all has been read and its reader waits for more, or the cursor is closed.
func (c *cursor) sent() {
	c.wait(func() bool { return c.idle && c.next >= c.j.next })
}

// drained waits until everything is acknowledged or the cursor is closed.
func (c *cursor) drained() {
	c.wait(func() bool { return len(c.j.entries) == 0 })
}

// wait waits for ok, which is called with the journal's mu held.
func (c *cursor) wait(ok func() bool) {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	for !ok() && !c.closed {
		c.j.changed.Wait()
	}
}

func (c *cursor) close() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	if !c.closed {
		c.j.readers--
	}
	c.closed = true
	c.j.changed.Broadcast()
}
