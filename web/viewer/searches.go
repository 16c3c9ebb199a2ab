package viewer

import (
	"context"
	"sync"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

// maxSearches bounds the searches that are under way, each of which reads some tens of megabytes at once; maxSearchesEach those of one
// owner, so that nobody keeps out everybody else.
const maxSearches, maxSearchesEach = 4, 2

// searches are those that are under way, or wait for that.
type searches struct {
	seats chan struct{} // taken by those that are under way

	mu sync.Mutex
	by map[sessions.Owner]int
}

func newSearches() *searches {
	return &searches{seats: make(chan struct{}, maxSearches), by: map[sessions.Owner]int{}}
}

// begin waits until there is room for a search, which end ends. The error is Busy where its owner has too many already.
func (s *searches) begin(ctx context.Context, o sessions.Owner) (end func(), err error) {
	if !s.count(o, 1) {
		return nil, fault.New(fault.Busy, "%d searches of yours are under way", maxSearchesEach).WithHint("Wait until one has ended.")
	}
	select {
	case s.seats <- struct{}{}:
		return func() { <-s.seats; s.count(o, -1) }, nil
	case <-ctx.Done():
		s.count(o, -1)
		return nil, fault.New(fault.Unavailable, "too many searches are under way").WithHint("Search again in a moment.")
	}
}

// count counts a search of somebody's that begins or ends, unless he has too many.
func (s *searches) count(o sessions.Owner, by int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[o]+by > maxSearchesEach {
		return false
	}
	if s.by[o] += by; s.by[o] == 0 {
		delete(s.by, o)
	}
	return true
}
