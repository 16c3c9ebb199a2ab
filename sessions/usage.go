package sessions

import (
	"context"
	"time"
)

// usageEvery is how old what is told of the history's size may be.
const usageEvery = 30 * time.Second

// usageSeen is what the store last said of its size. Counting goes through an index of all cells, which is nothing for whoever asks often.
type usageSeen struct {
	turn chan struct{} // holds whose turn it is to look, and to ask the store: a lock whose waiters may give up
	at   time.Time
	Usage
}

// Usage tells what the history takes, of all owners, as it was half a minute ago at most; nothing where there is none. Who comes
// while the store counts for somebody else waits for that, or until ctx ends.
func (m *Manager) Usage(ctx context.Context) (Usage, error) {
	if m.cfg.Store == nil {
		return Usage{}, nil
	}
	seen := &m.usage
	select {
	case seen.turn <- struct{}{}:
	case <-ctx.Done():
		return Usage{}, context.Cause(ctx)
	}
	defer func() { <-seen.turn }()
	if !seen.at.IsZero() && time.Since(seen.at) < usageEvery {
		return seen.Usage, nil
	}
	now, err := m.cfg.Store.Usage(ctx)
	if err != nil {
		return Usage{}, err
	}
	seen.at, seen.Usage = time.Now(), now
	return now, nil
}
