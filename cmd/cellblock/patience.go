package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// maxWait is the longest that a command waits, without a word, for its next call; what asks for more is told to whoever
// typed it.
const maxWait = time.Minute

// waited waits as long as the server says, where that is all that is wrong with a call: it was one too many in too short a
// time. It is false for anything else, and when ctx ends first.
func waited(ctx context.Context, failure string) bool {
	_, hint, _ := strings.Cut(failure, "\nHint: ")
	d, ok := mcpserver.WaitIn(hint)
	return ok && pause(ctx, d)
}

// pause waits, unless that is too long, or ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	if d > maxWait {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// sendPatiently sends a request, again where the server has too many and says when to come back (RFC 6585, section 4).
func (r refusals) sendPatiently(request *http.Request) (*http.Response, error) {
	for {
		response, err := r.RoundTripper.RoundTrip(request)
		if err != nil || response.StatusCode != fault.Busy.HTTPStatus() || request.GetBody == nil {
			return response, err
		}
		seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
		if err != nil || seconds < 1 || !pause(request.Context(), time.Duration(seconds)*time.Second) {
			return response, nil // as it is
		}
		_ = response.Body.Close()
		again := request.Clone(request.Context())
		if again.Body, err = request.GetBody(); err != nil {
			return nil, err
		}
		request = again
	}
}
