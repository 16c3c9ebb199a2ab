//go:build linux

package shim

import (
	"bytes"
	"strings"
	"sync"
	"time"

	"cellblock/kernels/stream"
)

// firstLook is how long an execution has run when its memory is first looked at; from then on the time doubles, up to
// lastLook.
const (
	firstLook = 50 * time.Millisecond
	lastLook  = time.Second
)

// consumption is what the kernel and all processes beside it use.
type consumption struct {
	cpu time.Duration // so far
	// memory is what they hold now, in bytes, and peak the most so far; 0 where nobody counts that.
	memory, peak int64
	// kills is how many of them the OOM killer has killed so far.
	kills int64
}

// meter finds out what one execution uses, of those that say when they begin: the difference between before and after. Of
// the memory it is the most that was seen, and the control group's own peak where the execution has raised that; one that
// holds much for moments, and less than an earlier one did, may be seen too small. Its methods may be called concurrently.
type meter struct {
	sample func() consumption

	mu     sync.Mutex
	parent string // the msg_id that is measured, "" while there is none
	before consumption
	most   int64
	pause  time.Duration
	timer  *time.Timer
}

func newMeter(sample func() consumption) *meter {
	m := &meter{sample: sample}
	m.timer = time.AfterFunc(time.Hour, m.look)
	m.timer.Stop()
	return m
}

// expect measures from now for the execution that a message on shell asks for, unless it is silent or another one runs. A
// kernel whose cell computes without a pause says only afterwards that it has begun.
func (m *meter) expect(parts [][]byte) {
	id, ok := executionAsked(parts)
	if !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent == "" {
		m.start(id)
	}
}

// executionAsked returns the msg_id of a request for an execution that is not silent.
func executionAsked(parts [][]byte) (id string, ok bool) {
	id, ok = executeRequest(parts)
	return id, ok && len(parts) > 3 && !bytes.Contains(parts[3], []byte(`"silent":true`))
}

// unsent tells that a message could not be given to the kernel.
func (m *meter) unsent(parts [][]byte) {
	if id, ok := executionAsked(parts); ok {
		_, _ = m.end(id) // nothing was used
	}
}

// begin measures from now for the execution of a msg_id, unless it was expected. What was measured before had no end.
func (m *meter) begin(parent string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent != parent {
		m.start(parent)
	}
}

// start measures from now. m.mu is held.
func (m *meter) start(parent string) {
	m.parent = strings.Clone(parent) // part of a header that may be long
	m.before = m.sample()
	m.most, m.pause = m.before.memory, firstLook
	m.timer.Reset(m.pause)
}

// look looks at the memory while the execution runs.
func (m *meter) look() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent == "" {
		return
	}
	m.most = max(m.most, m.sample().memory)
	m.pause = min(2*m.pause, lastLook)
	m.timer.Reset(m.pause)
}

// end returns what the execution of a msg_id has used, if that is the one that is measured.
func (m *meter) end(parent string) (stream.Used, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent == "" || m.parent != parent {
		return stream.Used{}, false
	}
	return m.stop(), true
}

// stop returns what the execution that is measured has used. m.mu is held.
func (m *meter) stop() stream.Used {
	after := m.sample()
	u := stream.Used{
		Parent: m.parent, CPU: max(0, after.cpu-m.before.cpu), Memory: max(m.most, after.memory), OOMKills: max(0, after.kills-m.before.kills),
	}
	if after.peak > m.before.peak {
		u.Memory = max(u.Memory, after.peak)
	}
	m.parent = ""
	m.timer.Stop()
	return u
}

// killed is how many processes were killed for memory since the execution began that is measured, as of a sample; 0 while none is.
func (m *meter) killed(now consumption) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent == "" {
		return 0
	}
	return max(0, now.kills-m.before.kills)
}

// outlived is how many processes had been killed for memory when an execution last began: the kernel was none of them.
func (m *meter) outlived() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before.kills
}

// cut is end for whatever is measured: its kernel has ended.
func (m *meter) cut() (stream.Used, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.parent == "" {
		return stream.Used{}, false
	}
	return m.stop(), true
}
