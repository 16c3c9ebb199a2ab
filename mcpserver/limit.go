package mcpserver

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"golang.org/x/time/rate"

	"cellblock/audit"
	"cellblock/internal/fault"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// Limiter bounds how often each owner calls tools and reads resources. A nil Limiter bounds nothing.
type Limiter struct {
	perMinute, burst int

	mu      sync.Mutex
	buckets map[sessions.Owner]*bucket
	swept   time.Time
}

// bucket is one owner's.
type bucket struct {
	*rate.Limiter
	refusing bool // the last call was refused
}

// NewLimiter returns a limiter for so many calls a minute in the long run, and so many at once.
func NewLimiter(perMinute, burst int) *Limiter {
	return &Limiter{perMinute: perMinute, burst: burst, buckets: map[sessions.Owner]*bucket{}, swept: time.Now()}
}

// another is a limiter of its own with the same bounds.
func (l *Limiter) another() *Limiter {
	if l == nil {
		return nil
	}
	return NewLimiter(l.perMinute, l.burst)
}

// take counts a call, or returns how long the owner must wait for the next, and whether it is the first that is refused.
func (l *Limiter) take(o sessions.Owner, now time.Time) (wait time.Duration, first bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sweep(now)
	b := l.buckets[o]
	if b == nil {
		b = &bucket{Limiter: rate.NewLimiter(rate.Limit(float64(l.perMinute)/60), l.burst)}
		l.buckets[o] = b
	}
	if b.AllowN(now, 1) {
		b.refusing = false
		return 0, false
	}
	first, b.refusing = !b.refusing, true
	missing := 1 - b.TokensAt(now)
	return time.Duration(missing / float64(b.Limit()) * float64(time.Second)), first
}

// Count counts a call of an owner, and returns an error of kind Busy for one that is too many.
func (l *Limiter) Count(o sessions.Owner) error {
	if refused, _ := l.count(o); refused != nil {
		return refused
	}
	return nil
}

// count is Count that also tells whether the call is the first that is refused.
func (l *Limiter) count(o sessions.Owner) (refused *fault.Error, first bool) {
	if l == nil {
		return nil, false
	}
	wait, first := l.take(o, time.Now())
	if wait == 0 {
		return nil, false
	}
	return fault.New(fault.Busy, "too many calls: %d a minute are allowed, %d at once", l.perMinute, l.burst).
		WithHint("%s%s%s", waitBefore, waitText(wait), waitAfter), first
}

// sweep forgets owners who have not called for so long that their bucket is full again, as a new one is.
func (l *Limiter) sweep(now time.Time) {
	fill := time.Duration(float64(l.burst) / float64(l.perMinute) * float64(time.Minute))
	if now.Sub(l.swept) < fill {
		return
	}
	l.swept = now
	for o, b := range l.buckets {
		if b.TokensAt(now) >= float64(l.burst) {
			delete(l.buckets, o)
		}
	}
}

// Tells counts a call of an owner that is refused for another reason, and tells whether the audit log should hear of it: of
// those that come too often, of the first.
func (l *Limiter) Tells(o sessions.Owner) bool {
	if l == nil {
		return true
	}
	wait, first := l.take(o, time.Now())
	return wait == 0 || first
}

// limited refuses the calls of an owner who makes too many. It is a tool's error, and no status of HTTP, so that the model
// reads how long to wait. What pages look at is counted apart: however many of them a conversation has open, its model can call.
func (s *service) limited(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	if s.Limiter == nil {
		return next
	}
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		limiter := s.Limiter
		if r.Params.Name == showCell {
			limiter = s.looks
		}
		if err := s.excess(ctx, limiter, func(e *auditEntry) { e.describe(r) }); err != nil {
			return toolError(err), nil
		}
		return next(ctx, r)
	}
}

// limitedResource is limited for the reading of a resource, which costs as much as a call.
func (s *service) limitedResource(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
	if s.Limiter == nil {
		return next
	}
	return func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		if err := s.excess(ctx, s.Limiter, func(e *auditEntry) { e.describeResource(r.Params.URI) }); err != nil {
			transport.Fail(ctx, err)
			return nil, shown{err}
		}
		return next(ctx, r)
	}
}

// excess counts a call, and returns an error for one that is too many. Of calls that are refused one after another the audit
// log is told of the first.
func (s *service) excess(ctx context.Context, limiter *Limiter, describe func(*auditEntry)) error {
	owner, err := s.Owner(ctx)
	if err != nil {
		return err
	}
	refused, first := limiter.count(owner)
	if refused == nil {
		return nil
	}
	if first && s.Audit != nil {
		e := s.auditEntry(ctx)
		describe(&e)
		e.Event, e.Status, e.Reason, e.Code = audit.Denied, fault.Busy.String(), refused.Message, ""
		s.Audit.Append(e.Entry)
	}
	return refused
}

// What stands around the time to wait in the hint of a call that is too many.
const waitBefore, waitAfter = "wait ", ", then call again"

// WaitIn returns how long the hint of a call that was one too many says to wait, for programs that can; false for another.
func WaitIn(hint string) (time.Duration, bool) {
	text, before := strings.CutPrefix(hint, waitBefore)
	text, after := strings.CutSuffix(text, " s"+waitAfter)
	n, err := strconv.Atoi(text)
	return time.Duration(n) * time.Second, before && after && err == nil && n > 0
}

// waitText is a time to wait, not less than that, in whole seconds.
func waitText(d time.Duration) string {
	return fmt.Sprintf("%d s", int((d+time.Second-1)/time.Second))
}
