package web

import (
	"io"
	"net/http"

	"cellblock/auth"
	"cellblock/internal/fault"
)

const (
	// maxBodies bounds what of bodies is in memory at the same time, in bytes, and ownBodies what of one owner's is: of the
	// largest, two.
	maxBodies, ownBodies = 512 << 20, 64 << 20
	// smallBody is how much of each body is not counted: as much as all that are allowed at the same time may have.
	smallBody = 64 << 10
)

// boundBodyBytes counts what of bodies has come, until their requests have been answered, and has one that is too much for
// its owner, or for all, end with an error of kind Busy or Unavailable.
func boundBodyBytes(s *shares, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := auth.FromContext(r.Context())
		body := &countedBody{ReadCloser: r.Body, shares: s, who: p.Owner()}
		defer body.release()
		counted := r.WithContext(r.Context()) // a copy: who made the request has its own body closed
		counted.Body = body
		next.ServeHTTP(w, counted)
	})
}

// countedBody is a body whose bytes are counted as they come.
type countedBody struct {
	io.ReadCloser
	shares        *shares
	who           string
	came, counted int
}

// Read reads a part of the body.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.came += n
	more := max(b.came-smallBody, 0) - b.counted
	if more == 0 {
		return n, err
	}
	ok, his := b.shares.take(b.who, more)
	if ok {
		b.counted += more
		return n, err
	}
	b.release() // at once, so that others which come at the same time are not refused for it
	if his {
		return n, fault.New(fault.Busy, "too many large messages at the same time: %d MiB of one owner's are allowed", b.shares.each>>20).
			WithHint("Wait until one has been answered, then send this again.")
	}
	return n, fault.New(fault.Unavailable, "the server has too many large messages at the same time").WithHint("Send it again in a moment.")
}

// release ends the counting of what has come.
func (b *countedBody) release() {
	b.shares.release(b.who, b.counted)
	b.counted = 0
}
