package web

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"cellblock/auth"
	"cellblock/internal/request"
)

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the status and passes it on.
func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write writes a part of the body.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController the writer below, which can flush and has deadlines.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// count tells of every answer.
func (cfg Config) count(next http.Handler) http.Handler {
	if cfg.Answered == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, rec := time.Now(), &recorder{ResponseWriter: w}
		defer func() { cfg.Answered(askedFor(r.URL.Path), cmp.Or(rec.status, http.StatusOK), time.Since(began)) }()
		next.ServeHTTP(rec, r)
	})
}

// askedFor says in a word, of a few, what a path is for.
func askedFor(path string) string {
	switch path {
	case mcpPath:
		return "mcp"
	case healthPath, readyPath, metricsPath:
		return "health"
	}
	if strings.HasPrefix(path, "/assets/") {
		return "assets"
	}
	return "viewer"
}

type subjectKey struct{}

// logRequests writes a line per request: method, path, status, duration and whom the token spoke for. Never a query, a
// header or a body: tokens and code are in those.
func logRequests(logger *slog.Logger, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began, subject := time.Now(), new(string)
		rec := &recorder{ResponseWriter: w}
		defer func() {
			level, info := slog.LevelInfo, request.FromContext(r.Context())
			switch askedFor(r.URL.Path) {
			case "health", "assets": // asked by machines, all day, and dozens for a page
				level = slog.LevelDebug
			}
			logger.Log(r.Context(), level, "request", "request", info.ID, "client", info.Address, "method", clip(r.Method, 16), "path", clip(r.URL.Path, 200), "status", rec.status,
				"duration", time.Since(began).Round(time.Microsecond), "subject", *subject)
		}()
		next.ServeHTTP(rec, r.WithContext(context.WithValue(r.Context(), subjectKey{}, subject)))
	})
}

// noteSubject tells logRequests whom the request is made for.
func noteSubject(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		subject, logged := r.Context().Value(subjectKey{}).(*string)
		if p, ok := auth.FromContext(r.Context()); ok && logged {
			*subject = clip(p.Subject, 100)
		}
		next.ServeHTTP(w, r)
	})
}

// clip keeps a client from writing long lines into the log.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "…"
}
