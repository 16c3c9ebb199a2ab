package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"cellblock/auth"
)

// Down is the status of a server that cannot do its work. It is answered with 503, so that a load balancer understands it;
// every other status with 200.
const Down = "down"

const (
	// healthAge is how old a report may be that /health shows: anybody may ask, and looking costs something.
	healthAge = 2 * time.Second
	// healthTimeout is how long looking may take.
	healthTimeout = 5 * time.Second
)

// Health is how the server is.
type Health struct {
	// Status is "ok", "degraded" or Down.
	Status string
	// Reason is shown to anybody, where it is not empty. It must tell nothing of the machine and its network.
	Reason string
	// Detail is shown to callers with a token, as JSON. It must hold no secrets and nothing of one owner, or of the machine.
	Detail any
	// OperatorDetail is shown in its place to those who operate the server. Nil: Detail is.
	OperatorDetail any
}

// health answers /health: status, version and uptime to anybody, the detail to whoever has a token, each as much as is his.
type health struct {
	look    func(context.Context) Health
	version string
	started time.Time
	detail  http.Handler

	mu   sync.Mutex
	last Health
	at   time.Time
}

func newHealth(cfg Config, started time.Time) *health {
	h := &health{look: cfg.Health, version: cfg.Version, started: started}
	if h.look == nil {
		h.look = func(context.Context) Health { return Health{Status: "ok"} }
	}
	h.detail = auth.RequireBearer(cfg.Verifier, cfg.Bearer)(noteSubject(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := h.now(r.Context())
		detail := now.Detail
		if now.OperatorDetail != nil && cfg.Operator != nil && cfg.Operator(r.Context()) {
			detail = now.OperatorDetail
		}
		h.answer(w, now, detail)
	})))
	return h
}

func (h *health) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		h.detail.ServeHTTP(w, r)
		return
	}
	h.answer(w, h.now(r.Context()), nil)
}

func (h *health) answer(w http.ResponseWriter, now Health, detail any) {
	writeJSON(w, now.code(w), struct {
		Status  string  `json:"status"`
		Reason  string  `json:"reason,omitempty"`
		Version string  `json:"version"`
		Uptime  float64 `json:"uptime_seconds"`
		Detail  any     `json:"detail,omitempty"`
	}{now.Status, now.Reason, h.version, time.Since(h.started).Round(time.Second).Seconds(), detail})
}

// ready answers /ready, for what sends a server work: whether it can do any.
func (h *health) ready(w http.ResponseWriter, r *http.Request) {
	now := h.now(r.Context())
	writeJSON(w, now.code(w), struct {
		Ready  bool   `json:"ready"`
		Reason string `json:"reason,omitempty"`
	}{now.Status != Down, now.Reason})
}

// code is the status of an answer, with when to ask again where that is worth it.
func (h Health) code(w http.ResponseWriter) int {
	if h.Status != Down {
		return http.StatusOK
	}
	w.Header().Set("Retry-After", "5")
	return http.StatusServiceUnavailable
}

// now returns how the server is, or was a moment ago. One caller looks at a time, and for all who wait.
func (h *health) now(ctx context.Context) Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.at) < healthAge {
		return h.last
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), healthTimeout)
	defer cancel()
	h.last, h.at = h.look(ctx), time.Now()
	return h.last
}
