package web

import (
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"runtime/debug"
	"time"

	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
)

// bodyTimeout is how long a client may take to send a body that nobody reads, before its connection is closed. Who does
// read a body sets its own time (transport does), and takes it off again when it has read it.
const bodyTimeout = 30 * time.Second

// secure sets the headers that keep a browser from doing more with an answer than to read it.
func secure(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("X-Frame-Options", "DENY")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		next.ServeHTTP(w, r)
	})
}

// boundBodies gives every body a time, so that one that never comes does not hold its connection.
func boundBodies(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 {
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(bodyTimeout)) // not every writer has deadlines
		}
		next.ServeHTTP(w, r)
	})
}

// recoverPanics answers a panic with status 500 and logs it. Where the answer has begun, the connection is cut instead, so
// that nobody takes the half for the whole.
func recoverPanics(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &recorder{ResponseWriter: w}
		defer func() {
			reason := recover()
			switch reason {
			case nil:
				return
			case http.ErrAbortHandler:
				panic(reason)
			}
			logger.Error("panic in an HTTP handler", "method", r.Method, "path", r.URL.Path,
				"panic", fmt.Sprint(reason), "stack", string(debug.Stack()))
			if rec.status != 0 {
				panic(http.ErrAbortHandler)
			}
			writeError(w, fault.New(fault.Internal, "the server failed").WithHint("The server's log says more."))
		}()
		next.ServeHTTP(rec, r)
	})
}

// requestedHeaders is what a list of header names looks like.
var requestedHeaders = regexp.MustCompile(`^[A-Za-z0-9, _-]{1,1000}$`)

// shareWithOrigins lets pages of the origins that were named read the answers (CORS), and no others, though they may have
// passed the gate before. Their preflight requests carry no token, and get no further than here.
func shareWithOrigins(named *transport.Guard, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Add("Vary", "Origin")
		origin := r.Header.Get("Origin")
		if origin == "" || !named.Names(origin) {
			next.ServeHTTP(w, r)
			return
		}
		h := w.Header()
		h.Set("Access-Control-Allow-Origin", origin)
		h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			next.ServeHTTP(w, r)
			return
		}
		h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
		h.Set("Access-Control-Max-Age", "600")
		if names := r.Header.Get("Access-Control-Request-Headers"); requestedHeaders.MatchString(names) {
			h.Set("Access-Control-Allow-Headers", names)
		}
		w.WriteHeader(http.StatusNoContent)
	})
}
