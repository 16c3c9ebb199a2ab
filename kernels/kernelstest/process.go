package kernelstest

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// process is one fake kernel process. It handles shell requests one at a time, as a kernel does.
type process struct {
	k           *Kernel
	incarnation int
	ctx         context.Context
	cancel      context.CancelFunc
	interrupts  chan struct{} // takes one

	mu       sync.Mutex
	queue    []wire.Message // shell requests
	arrived  chan struct{}  // takes one
	input    chan string    // takes one answer to an input_request
	children int
	last     wire.Header // of the newest request
	oomKills int64       // what the newest cell has said of that with "used"

	// What follows belongs to the goroutine that runs scripts.
	count int
	vars  map[string]string
	miss  int
	idles int
}

// startProcess starts the kernel process of the next incarnation.
func (k *Kernel) startProcess() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stopped {
		return
	}
	k.started++
	p := &process{
		k: k, incarnation: k.started, vars: map[string]string{}, miss: k.opts.MissFirst, idles: k.opts.NoIdles,
		interrupts: make(chan struct{}, 1), arrived: make(chan struct{}, 1), input: make(chan string, 1),
	}
	p.ctx, p.cancel = context.WithCancel(k.ctx)
	k.proc = p
	k.event(stream.Event{Kind: stream.EventStarted, Incarnation: k.started, PID: 2})
	k.wg.Go(p.run)
}

// endProcess ends the kernel process, if one runs.
func (k *Kernel) endProcess(exit stream.Exit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.proc == nil || k.stopped {
		return
	}
	k.proc.cancel()
	k.event(stream.Event{Kind: stream.EventExited, Incarnation: k.proc.incarnation, Exit: &exit})
	k.proc = nil
}

// receive takes a message from a server. What comes while no process runs is lost with the process that should have had it.
func (k *Kernel) receive(m stream.Message) {
	msg, err := wire.FromParts(m.Parts)
	k.mu.Lock()
	p := k.proc
	if err == nil && msg.Header.MsgType == "execute_request" {
		k.request, k.requested = msg.Header.MsgID, time.Now()
	}
	k.mu.Unlock()
	if err != nil || p == nil {
		return
	}
	if m.Channel == stream.Stdin {
		var content struct{ Value string }
		_ = json.Unmarshal(msg.Content, &content)
		select {
		case p.input <- content.Value:
		default:
		}
		return
	}
	p.mu.Lock()
	p.queue = append(p.queue, msg)
	p.mu.Unlock()
	wakeUp(p.arrived)
}

// run comes up and then handles requests until the process ends.
func (p *process) run() {
	if out := p.k.opts.FailStart; out != "" {
		p.die(stream.Exit{Code: 1, Output: out})
		return
	}
	if p.k.opts.Boot > 0 && p.sleep(p.k.opts.Boot) == errDead {
		return
	}
	p.k.mu.Lock()
	p.k.event(stream.Event{Kind: stream.EventConnected, Incarnation: p.incarnation})
	p.k.mu.Unlock()
	if p.k.opts.IOPubWelcome {
		p.send(stream.IOPub, wire.Header{}, "iopub_welcome", map[string]any{"subscription": ""})
	}
	for {
		msg, ok := p.next()
		if !ok {
			return
		}
		p.request(msg)
	}
}

func (p *process) next() (wire.Message, bool) {
	for {
		p.mu.Lock()
		if len(p.queue) > 0 && p.ctx.Err() == nil {
			msg := p.queue[0]
			p.queue = p.queue[1:]
			p.mu.Unlock()
			return msg, true
		}
		p.mu.Unlock()
		select {
		case <-p.arrived:
		case <-p.ctx.Done():
			return wire.Message{}, false
		}
	}
}

// request handles one shell request.
func (p *process) request(msg wire.Message) {
	if p.miss > 0 {
		p.miss--
		return
	}
	p.mu.Lock()
	p.last = msg.Header
	p.mu.Unlock()
	if msg.Header.MsgType == "execute_request" {
		p.execute(msg)
		return
	}
	p.status(msg.Header, "busy")
	replyType, content := p.answer(msg)
	p.send(stream.Shell, msg.Header, replyType, content)
	p.status(msg.Header, "idle")
}

func (p *process) answer(msg wire.Message) (string, any) {
	switch msg.Header.MsgType {
	case "kernel_info_request":
		return "kernel_info_reply", map[string]any{
			"status": "ok", "protocol_version": wire.ProtocolVersion, "implementation": "fake", "implementation_version": "1",
			"banner": cmp.Or(p.k.opts.Banner, "a fake kernel"), "language_info": map[string]any{"name": "fake", "version": strconv.Itoa(p.incarnation)},
		}
	case "complete_request":
		return "complete_reply", map[string]any{"status": "ok", "matches": []string{"print", "printf"}, "cursor_start": 0, "cursor_end": 2, "metadata": map[string]any{}}
	case "inspect_request":
		return "inspect_reply", map[string]any{"status": "ok", "found": true, "data": map[string]any{"text/plain": "a word"}, "metadata": map[string]any{}}
	}
	return "unknown_reply", map[string]any{"status": "error", "ename": "Unknown", "evalue": msg.Header.MsgType}
}

func (p *process) status(parent wire.Header, state string) {
	if state == "idle" && p.idles > 0 {
		p.idles--
		return
	}
	p.send(stream.IOPub, parent, "status", map[string]any{"execution_state": state})
}

// send sends a message, unless the process has ended.
func (p *process) send(ch stream.Channel, parent wire.Header, msgType string, content any) {
	p.sendFaulty(ch, parent, msgType, content, faultNone)
}

func (p *process) sendFaulty(ch stream.Channel, parent wire.Header, msgType string, content any, fault streamFault) {
	body, err := json.Marshal(content)
	if err != nil {
		panic("kernelstest: " + err.Error())
	}
	p.sendRaw(ch, parent, msgType, body, fault)
}

func (p *process) sendRaw(ch stream.Channel, parent wire.Header, msgType string, body []byte, fault streamFault) {
	if p.ctx.Err() != nil {
		return
	}
	m := wire.Message{Header: wire.NewHeader(fmt.Sprintf("fake-%d-%d", p.incarnation, time.Now().UnixNano()), "fake", msgType), Parent: parent, Content: body}
	p.k.message(stream.Message{Channel: ch, Parts: m.Parts()}, fault)
}

// die ends the process by itself.
func (p *process) die(exit stream.Exit) { p.k.endProcess(exit) }

// killChildren answers OpKillChildren: what a script waits for as a child ends.
func (p *process) killChildren() int {
	p.mu.Lock()
	n := p.children
	p.children = 0
	p.mu.Unlock()
	if n > 0 {
		wakeUp(p.interrupts)
	}
	return n
}
