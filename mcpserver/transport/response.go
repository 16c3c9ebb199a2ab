package transport

import (
	"errors"
	"fmt"
	"net/http"
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
// the result. The stream begins with the first notification, or when the call has lasted a moment; from then on a
// comment goes out now and then, so that no proxy and no client takes silence for death.
type httpResponse struct {
	w         http.ResponseWriter
	rc        *http.ResponseController
	events    bool // the client takes an event stream
	keepAlive time.Duration

	mu        sync.Mutex
	streaming bool
	broken    error // the client is gone, or has stopped reading
	finished  bool
	timer     *time.Timer
}

func newHTTPResponse(w http.ResponseWriter, events bool, keepAlive time.Duration) *httpResponse {
	return &httpResponse{w: w, rc: http.NewResponseController(w), events: events, keepAlive: keepAlive}
}

// start sets the timer that opens the stream after a moment and keeps it alive. It runs until finish.
func (r *httpResponse) start(moment time.Duration) {
	if !r.events {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = time.AfterFunc(moment, r.tick)
}

// tick sends a comment and sets the timer again.
func (r *httpResponse) tick() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.finished || r.broken != nil {
		return
	}
	if r.stream([]byte(": the call goes on\n\n")) == nil {
		r.timer.Reset(r.keepAlive)
	}
}

// send writes one message as an event.
func (r *httpResponse) send(payload []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.events || r.finished {
		return ErrNoStream
	}
	return r.stream(event(payload))
}

// finish writes the response: as the last event of a stream that has begun or that is all the client takes, else as the
// body. Nothing is written after it.
func (r *httpResponse) finish(payload []byte, status int, jsonToo bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finished = true
	if r.timer != nil {
		r.timer.Stop()
	}
	if r.streaming || !jsonToo {
		return r.stream(event(payload))
	}
	h := r.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(payload)))
	h.Set("Cache-Control", "no-store")
	r.w.WriteHeader(status)
	return r.write(payload)
}

// stream writes to the event stream and opens it first where need be. The caller holds mu.
func (r *httpResponse) stream(b []byte) error {
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
	return r.write(b)
}

// write writes and flushes b, each chunk within its time. The caller holds mu.
func (r *httpResponse) write(b []byte) error {
	defer func() { _ = r.rc.SetWriteDeadline(time.Time{}) }() // not every writer has deadlines
	for len(b) > 0 {
		n := min(len(b), writeChunk)
		_ = r.rc.SetWriteDeadline(time.Now().Add(writeTimeout))
		if _, err := r.w.Write(b[:n]); err != nil {
			return r.fail(err)
		}
		b = b[n:]
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
func event(payload []byte) []byte {
	b := make([]byte, 0, len(payload)+32)
	b = append(b, "event: message\ndata: "...)
	b = append(b, payload...)
	return append(b, "\n\n"...)
}
