package sessions

import (
	"context"
	"time"
)

// Who only looks at a session does not use it: a page that somebody has forgotten must not keep a kernel alive.

type lookingKey struct{}

// Looking returns a context for calls by which a person watches what is there. They put off no end of a kernel or a session, and
// leave Info.LastUsed as it is.
func Looking(ctx context.Context) context.Context {
	return context.WithValue(ctx, lookingKey{}, true)
}

func looks(ctx context.Context) bool {
	looking, _ := ctx.Value(lookingKey{}).(bool)
	return looking
}

// want notes that somebody asked for the session by its id, so that it does not end as a minted one that nobody came back to.
func (s *session) want() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted = true
}

// used notes that somebody still wants the session.
func (s *session) used() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wanted, s.lastUsed = true, time.Now()
}

// touch notes that the kernel was used just now.
func (s *session) touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = time.Now()
}
