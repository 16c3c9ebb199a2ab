package live

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"time"

	"cellblock/internal/fault"
)

const (
	// MaxSubscriptions bounds those of one stream.
	MaxSubscriptions = 256 // of all tabs of a browser, four and less of each; stream.js has it, too
	// heartbeat is how often a beat is sent, so that a stream that was cut off is noticed at both ends. stream.js knows it, too.
	heartbeat = 15 * time.Second
	// writeTimeout is how long a browser may take to read what was sent.
	writeTimeout = 30 * time.Second
	// batch is how much is gathered before it is sent, while more is there to be sent.
	batch = 64 << 10
)

// Event is one thing that a topic tells.
type Event struct {
	// Name says what kind of thing it is, to the page.
	Name string
	// Cursor is where the topic stands behind this event. See CheckCursor.
	Cursor string
	// Data is sent as JSON.
	Data any
}

// Topic tells all that has happened after a cursor, "" from the beginning, and goes on as things happen, until ctx ends.
// An error that it returns is told to the page, which hears no more of it; nil ends it without a word. send returns an error
// when nobody listens any more.
type Topic func(ctx context.Context, after string, send func(Event) error) error

// Subscription is a topic, and where its page stands.
type Subscription struct {
	Topic Topic
	After string
}

var cursorForm = regexp.MustCompile(`^[A-Za-z0-9._:-]{0,200}$`)

// CheckCursor returns an Invalid error for a text that cannot be a cursor: up to 200 of A-Z a-z 0-9 "." "_" ":" "-".
func CheckCursor(text string) error {
	if !cursorForm.MatchString(text) {
		return fault.New(fault.Invalid, "that is no cursor").WithHint("Load the page again.")
	}
	return nil
}

// item is an event of one subscription.
type item struct {
	sub   int
	after string // where the subscription then stands
	event Event
}

// stream is what one browser listens to. What writes belongs to run.
type stream struct {
	owner string // who may change it
	ctx   context.Context
	items chan item

	mu      sync.Mutex
	ended   bool
	had     int                        // subscriptions so far
	running map[int]context.CancelFunc // what ends those that there are
	topics  sync.WaitGroup

	w   http.ResponseWriter
	rc  *http.ResponseController
	buf bytes.Buffer
	// patience is how long the browser may take to read what was sent.
	patience time.Duration
}

// change ends and begins subscriptions, all or nothing, and tells whether it could: what comes too late does not fit.
func (s *stream) change(c Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept, remove := len(s.running), slices.Compact(slices.Sorted(slices.Values(c.Remove)))
	for _, n := range remove {
		if s.running[n] != nil {
			kept--
		}
	}
	if s.ended || c.First != s.had || kept+len(c.Add) > MaxSubscriptions {
		return false
	}
	for _, n := range remove {
		if end := s.running[n]; end != nil {
			end()
			delete(s.running, n)
		}
	}
	for _, sub := range c.Add {
		ctx, cancel := context.WithCancel(s.ctx)
		n := s.had
		s.running[n] = cancel
		s.topics.Go(func() { s.feed(ctx, n, sub) })
		s.had++
	}
	return true
}

// close ends all subscriptions, and returns when they have ended.
func (s *stream) close() {
	s.mu.Lock()
	s.ended = true
	for _, end := range s.running {
		end()
	}
	s.mu.Unlock()
	s.topics.Wait()
}

// feed runs a topic.
func (s *stream) feed(ctx context.Context, n int, sub Subscription) {
	after := sub.After
	send := func(e Event) error {
		if e.Cursor != "" {
			after = e.Cursor
		}
		select {
		case s.items <- item{n, after, e}:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if err := sub.Topic(ctx, sub.After, send); err != nil && ctx.Err() == nil {
		_ = send(Event{Name: "error", Data: fault.BodyOf(err)}) // nobody listens: nobody is told
	}
}

// run writes what comes, at once when nothing else does.
func (s *stream) run(holds func() bool) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for s.flush() == nil {
		select {
		case it := <-s.items:
			s.write(it)
			s.gather()
		case <-beat.C:
			if !holds() {
				s.end()
				return
			}
			s.buf.WriteString("event: beat\ndata: 0\n\n") // a comment would not reach the page
		case <-s.ctx.Done():
			if !holds() {
				s.end()
			}
			return
		}
	}
}

// gather writes what is there already.
func (s *stream) gather() {
	for s.buf.Len() < batch {
		select {
		case it := <-s.items:
			s.write(it)
		default:
			return
		}
	}
}

func (s *stream) write(it item) {
	data, err := json.Marshal(struct {
		Sub   int    `json:"sub"`
		After string `json:"after"`
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{it.sub, it.after, it.event.Name, it.event.Data})
	if err != nil {
		panic("live: " + err.Error()) // a value of ours that is no JSON is a defect
	}
	s.buf.WriteString("data: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}

// begin tells the browser how its stream is called.
func (s *stream) begin(id string) {
	s.buf.WriteString("event: stream\ndata: " + strconv.Quote(id) + "\n\n")
}

// end tells the browser that its sign-in has ended, so that it does not come back.
func (s *stream) end() {
	s.buf.WriteString("event: signedout\ndata: {}\n\n")
	_ = s.flush()
}

func (s *stream) flush() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(s.patience)) // not every writer has deadlines
	_, err := s.w.Write(s.buf.Bytes())
	s.buf.Reset()
	if err != nil {
		return err
	}
	return s.rc.Flush()
}
