package live

import (
	"cmp"
	"context"
	"crypto/rand"
	"net/http"
	"sync"
	"time"
)

// Streams are all streams that browsers listen to. The zero value has none.
type Streams struct {
	mu   sync.Mutex
	open map[string]*stream // by id

	patience time.Duration // of tests; zero is writeTimeout
}

// Change is what a browser wants to hear besides, and no more.
type Change struct {
	// First is the number of the first of Add: how many subscriptions the stream has had so far.
	First int
	Add   []Subscription
	// Remove are numbers of subscriptions.
	Remove []int
}

// Serve answers a request with a stream of subscriptions until ctx ends, or holds, which is asked now and then, says that it
// must. It returns when all topics have. Only its owner may change it.
func (x *Streams) Serve(ctx context.Context, w http.ResponseWriter, owner string, subscriptions []Subscription, holds func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of proxies
	s := &stream{
		owner: owner, ctx: ctx, items: make(chan item), running: map[int]context.CancelFunc{},
		w: w, rc: http.NewResponseController(w), patience: cmp.Or(x.patience, writeTimeout),
	}
	defer s.close()
	id := rand.Text()
	x.put(id, s)
	defer x.put(id, nil)
	s.begin(id)
	s.change(Change{Add: subscriptions})
	s.run(holds)
}

// put notes a stream under its id, or forgets it.
func (x *Streams) put(id string, s *stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.open == nil {
		x.open = map[string]*stream{}
	}
	if x.open[id] = s; s == nil {
		delete(x.open, id)
	}
}

// Change begins and ends subscriptions of a stream while all others go on, and tells whether it could. Where it could not, because
// the stream has ended, is somebody else's or had other changes before, nothing has changed; a new stream brings what is wanted.
func (x *Streams) Change(owner, id string, c Change) bool {
	x.mu.Lock()
	s := x.open[id]
	x.mu.Unlock()
	return s != nil && s.owner == owner && s.change(c)
}
