//go:build linux

package shim

import (
	"strings"
	"sync"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

const (
	// dropWindow is how long further drops of a kind are only counted after one was reported.
	dropWindow = time.Second
	// maxDropKinds bounds how many kinds are told apart within a window.
	maxDropKinds = 64
)

// dropKind is what drops are counted by.
type dropKind struct{ channel, reason, parent, msgType string }

// drops reports messages that were thrown away: the first of a kind at once, further ones as one event a second, so that
// a kernel that sends nothing but rubbish does not push what matters out of the journal.
type drops struct {
	journal *journal

	mu      sync.Mutex
	pending map[dropKind]*stream.Dropped // reported within this window; Count is what came since
	timer   *time.Timer
}

func newDrops(j *journal) *drops {
	return &drops{journal: j, pending: make(map[dropKind]*stream.Dropped)}
}

// add reports or counts one drop.
func (d *drops) add(v stream.Dropped) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kind := dropKind{v.Channel, v.Reason, v.Parent, v.MsgType}
	if d.pending[kind] == nil && len(d.pending) >= maxDropKinds {
		kind.parent, kind.msgType, v.Parent, v.MsgType = "", "", "", ""
	}
	if p := d.pending[kind]; p != nil {
		p.Count++
		p.Bytes += v.Bytes
		return
	}
	v.Count = 1
	d.report(v)
	v.Count, v.Bytes = 0, 0
	d.pending[kind] = &v
	if len(d.pending) == 1 {
		d.timer = time.AfterFunc(dropWindow, d.flush)
	}
}

// flush reports what was counted and ends the window.
func (d *drops) flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	for _, p := range d.pending {
		if p.Count > 0 {
			d.report(*p)
		}
	}
	clear(d.pending)
}

func (d *drops) report(v stream.Dropped) {
	d.journal.report(stream.Event{Kind: stream.EventDropped, Dropped: &v})
}

// claimed returns what frames of a broken message say about themselves: the msg_id of its parent, and its type.
func claimed(frames [][]byte) (parent, msgType string) {
	for i, f := range frames[:min(len(frames), wire.MaxIdentities+1)] {
		if string(f) == wire.Delimiter {
			return claimedBy(frames[i+1:])
		}
	}
	return "", ""
}

// claimedBy reads signature, header and parent header, as far as they are there.
func claimedBy(frames [][]byte) (parent, msgType string) {
	read := func(at int) (h wire.Header) {
		if at < len(frames) {
			h, _ = wire.ParseHeader(frames[at])
		}
		return h
	}
	return clip(read(2).MsgID), clip(read(1).MsgType)
}

// clip bounds a name that a kernel made up. It is a copy: a short part would keep a long header alive.
func clip(s string) string { return strings.Clone(s[:min(len(s), maxParent)]) }
