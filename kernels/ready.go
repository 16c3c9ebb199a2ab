package kernels

import (
	"context"
	"encoding/json"
	"sync"
	"time"
)

// KernelInfo is what somebody wants to know of what a kernel says of itself (Jupyter messaging, "Kernel info").
type KernelInfo struct {
	ProtocolVersion string       `json:"protocol_version"`
	LanguageInfo    LanguageInfo `json:"language_info"`
}

// LanguageInfo describes the language of a kernel, as it says itself: not to be trusted.
type LanguageInfo struct {
	Name          string `json:"name"`
	Version       string `json:"version"`
	MIMEType      string `json:"mimetype"`
	FileExtension string `json:"file_extension"`
	// Lexer is Pygments's name of it, Mode CodeMirror's: a text or an object.
	Lexer string          `json:"pygments_lexer"`
	Mode  json.RawMessage `json:"codemirror_mode"`
}

// A kernel may miss the first request on a fresh connection (ipykernel 7), so Ready asks again: soon at first, for a
// kernel that starts, then seldom, for one that is busy with a cell and will answer every one of them.
const (
	readyFirst = 500 * time.Millisecond
	readyLast  = 15 * time.Second
)

// Info returns what the kernel said of itself when it was last Ready.
func (c *Client) Info() KernelInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.kernel.info
}

// Ready waits until the kernel answers and its output arrives: kernel_info_request was answered, and its idle (or
// iopub_welcome) was seen on IOPub. A kernel that runs a cell is ready when that has ended. It returns the client's end,
// a *DeathError with the kernel's own last words if it does not come up, or the error of ctx.
func (c *Client) Ready(ctx context.Context) error {
	if err := c.gate(ctx); err != nil {
		return err
	}
	r := readiness{c: c, answered: make(chan *call, 1), idle: make(chan struct{}, 1)}
	defer r.wg.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for wait := readyFirst; ; wait = min(2*wait, readyLast) {
		if err := r.ask(ctx); err != nil {
			return err
		}
		done, err := r.wait(ctx, wait)
		if done || err != nil {
			return err
		}
	}
}

// readiness is one wait for readiness: the answers to any of its requests count.
type readiness struct {
	c        *Client
	wg       sync.WaitGroup // of watch
	info     *call
	delivers bool
	answered chan *call
	idle     chan struct{}
}

// ask sends one kernel_info_request and watches what becomes of it, until ctx ends.
func (r *readiness) ask(ctx context.Context) error {
	c := r.c
	k := newCall(newMsgID())
	c.mu.Lock()
	c.register(k)
	c.mu.Unlock()
	if err := c.sendCall(ctx, k, "kernel_info_request", struct{}{}); err != nil {
		return err
	}
	r.wg.Go(func() { r.watch(ctx, k) })
	return nil
}

// watch reports a request's reply and idle as they come. When ctx ends nobody wants them any more.
func (r *readiness) watch(ctx context.Context, k *call) {
	defer func() { _ = r.c.abandon(k, nil) }()
	select {
	case <-k.answered:
	case <-k.done:
	case <-ctx.Done():
		return
	}
	if isClosed(k.answered) { // also when it is done by now
		select {
		case r.answered <- k:
		default:
		}
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		return
	}
	r.c.mu.Lock()
	idle := k.idle
	r.c.mu.Unlock()
	if idle {
		wake(r.idle)
	}
}

// wait waits for one reply and one idle, at most for d.
func (r *readiness) wait(ctx context.Context, d time.Duration) (bool, error) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	r.c.mu.Lock()
	live := r.c.kernel.live
	r.c.mu.Unlock()
	for r.info == nil || !r.delivers {
		select {
		case k := <-r.answered:
			r.take(k)
		case <-r.idle:
			r.delivers = true
		case <-live:
			r.delivers, live = true, nil
		case <-r.c.done:
			return false, r.c.Err()
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timer.C:
			return false, nil
		}
	}
	return true, nil
}

// maxInfo bounds what is kept of a kernel_info_reply, in bytes: it stays as long as the client does.
const maxInfo = 256 << 10

// take keeps what the kernel said of itself. A kernel whose answer cannot be read is a kernel still.
func (r *readiness) take(k *call) {
	r.c.mu.Lock()
	defer r.c.mu.Unlock()
	var info KernelInfo
	if len(k.reply) > maxInfo {
		r.c.log.Debug("kernels: kernel_info_reply is not kept", "bytes", len(k.reply))
	} else if err := json.Unmarshal(k.reply, &info); err != nil {
		r.c.log.Debug("kernels: kernel_info_reply cannot be read", "err", clip(err.Error()))
	}
	r.info, r.c.kernel.info = k, info
}
