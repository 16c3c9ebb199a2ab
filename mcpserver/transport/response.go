package transport

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"
)

const (
	// writeChunk is how much is written under one deadline, so that a large result may take its time on a slow line.
	writeChunk = 256 << 10
	// writeTimeout is how long a client may take for one chunk. A client that has stopped reading is given up then, and
	// no handler waits for it longer.
	writeTimeout = 30 * time.Second
)

// httpResponse writes the answer to one POST: one JSON body, or an event stream once there is something to say before
// the result. The stream begins with the first notification, or when the call has lasted a moment; in a silence a comment
// goes out now and then, so that no proxy and no client takes it for death.
type httpResponse struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	events    bool // the client takes an event stream
	keepAlive time.Duration
	timer     *time.Timer // ends a silence; runs from start to finish

	mu        sync.Mutex
	streaming bool
	broken    error // the client is gone, or has stopped reading
	finished  bool
}

func newHTTPResponse(w http.ResponseWriter, events bool, keepAlive time.Duration) *httpResponse {
	r := &httpResponse{w: w, rc: http.NewResponseController(w), events: events, keepAlive: keepAlive}
	r.timer = time.AfterFunc(time.Hour, r.tick) // never: start sets it
	r.timer.Stop()
	return r
}

// start has the stream opened after a moment, if nothing has opened it by then, and kept alive from there on.
func (r *httpResponse) start(moment time.Duration) {
	if r.events {
		r.timer.Reset(moment)
	}
}

// tick sends a comment. Where the lock is taken, something is being written and there is no silence to end.
func (r *httpResponse) tick() {
	if !r.mu.TryLock() {
		return
	}
	defer r.mu.Unlock()
	if !r.finished {
		_ = r.stream([]byte(": the call goes on\n\n")) // its failure is kept for whoever writes next
	}
}

// send writes one message as an event.
func (r *httpResponse) send(payload []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.events || r.finished {
		return ErrNoStream
	}
	return r.stream(event(payload)...)
}

// finish writes the response: as the last event of a stream that has begun or that is all the client takes, else as the
// body. Nothing is written after it.
func (r *httpResponse) finish(payload []byte, status int, jsonToo bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	r.timer.Stop()
	if r.streaming || !jsonToo {
		return r.stream(event(payload)...)
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(payload)))
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(status)
	return r.write(payload)
}

// stream writes to the event stream and opens it first where need be. The caller holds mu.
func (r *httpResponse) stream(parts ...[]byte) error {
	if r.broken != nil {
		return r.broken
	}
	if !r.streaming {
		r.streaming = true
		h := r.w.Header()
		h.Set("Content-Type", "text/event-stream")
		h.Set("Cache-Control", "no-store")
		h.Set("X-Accel-Buffering", "no") // nginx and its kin would hold events back
		r.w.WriteHeader(http.StatusOK)
	}
	err := r.write(parts...)
	if err == nil && !r.finished {
		r.timer.Reset(r.keepAlive)
	}
	return err
}

// write writes and flushes parts, each chunk within its time. The caller holds mu.
func (r *httpResponse) write(parts ...[]byte) error {
	defer func() { _ = r.rc.SetWriteDeadline(time.Time{}) }() // not every writer has deadlines
	for _, part := range parts {
		for chunk := range slices.Chunk(part, writeChunk) {
			_ = r.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
			if _, err := r.w.Write(chunk); err != nil {
				return r.fail(err)
			}
		}
	}
	if err := r.rc.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return r.fail(err)
	}
	return nil
}

// fail notes that the client cannot be reached any more.
func (r *httpResponse) fail(err error) error {
	r.broken = fmt.Errorf("%w: %w", ErrNoStream, err)
	return r.broken
}

// event frames a message, which has no line break in it, as a server-sent event.
func event(payload []byte) [][]byte {
	return [][]byte{[]byte("event: message\ndata: "), payload, []byte("\n\n")}
}
