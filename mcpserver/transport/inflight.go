package transport

import (
	"context"
	"sync"
)

// callKey names a running request in the way in which its client cancels it.
type callKey struct {
	owner   string
	session string // the Mcp-Session-Id; "" over stdio, where the connection is the session
	id      string // idKey's spelling
}

// inflight is the running requests that notifications/cancelled can reach. Requests of 2026-07-28 over HTTP are never
// in it, nor those of a client that keeps no Mcp-Session-Id.
type inflight struct {
	mu    sync.Mutex
	calls map[callKey]context.CancelCauseFunc
}

// add enters a request and returns what removes it, or false while another with the same key runs.
func (f *inflight) add(key callKey, cancel context.CancelCauseFunc) (remove func(), ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, taken := f.calls[key]; taken {
		return nil, false
	}
	if f.calls == nil {
		f.calls = map[callKey]context.CancelCauseFunc{}
	}
	f.calls[key] = cancel
	return func() { f.remove(key) }, true
}

func (f *inflight) remove(key callKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.calls, key)
}

// cancel cancels the request of that key, if it runs.
func (f *inflight) cancel(key callKey) {
	f.mu.Lock()
	cancel := f.calls[key]
	f.mu.Unlock()
	if cancel != nil {
		cancel(ErrCancelled)
	}
}
