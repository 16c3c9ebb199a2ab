package live

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/internal/fault"
)

const (
	// MaxSubscriptions bounds those of one stream.
	MaxSubscriptions = 256 // of all tabs of a browser, four and less of each; stream.js has it, too
	// heartbeat is how often something is sent on a quiet stream, so that one that was cut off is noticed.
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

// Resume sets the cursors of subscriptions to those of the last event that a browser had, as it names it when it reconnects
// (Last-Event-ID). What does not fit them is not taken.
func Resume(subscriptions []Subscription, lastEventID string) {
	cursors := strings.Split(lastEventID, ",")
	if len(cursors) != len(subscriptions) || slices.ContainsFunc(cursors, func(c string) bool { return CheckCursor(c) != nil }) {
		return
	}
	for i := range subscriptions {
		subscriptions[i].After = cursors[i]
	}
}

// item is an event of one subscription.
type item struct {
	sub   int
	event Event
}

// Serve answers a request with a stream of subscriptions until ctx ends, or holds, which is asked now and then, says that it
// must. It returns when all topics have.
func Serve(ctx context.Context, w http.ResponseWriter, subscriptions []Subscription, holds func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	var topics sync.WaitGroup
	defer topics.Wait()
	defer cancel()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // of proxies
	s := &stream{w: w, rc: http.NewResponseController(w), items: make(chan item)}
	s.buf.WriteString("retry: 1000\n\n")
	for i, sub := range subscriptions {
		s.cursors = append(s.cursors, sub.After)
		topics.Go(func() { s.feed(ctx, i, sub) })
	}
	s.run(ctx, holds)
}

// stream writes; only run touches it beside items.
type stream struct {
	w       http.ResponseWriter
	rc      *http.ResponseController
	buf     bytes.Buffer
	cursors []string
	items   chan item
}

// feed runs a topic.
func (s *stream) feed(ctx context.Context, i int, sub Subscription) {
	send := func(e Event) error {
		select {
		case s.items <- item{i, e}:
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
func (s *stream) run(ctx context.Context, holds func() bool) {
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
			s.buf.WriteString(":\n\n")
		case <-ctx.Done():
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
	if it.event.Cursor != "" {
		s.cursors[it.sub] = it.event.Cursor
	}
	data, err := json.Marshal(struct {
		Sub   int    `json:"sub"`
		After string `json:"after"`
		Event string `json:"event"`
		Data  any    `json:"data"`
	}{it.sub, s.cursors[it.sub], it.event.Name, it.event.Data})
	if err != nil {
		panic("live: " + err.Error()) // a value of ours that is no JSON is a defect
	}
	s.buf.WriteString("id: " + strings.Join(s.cursors, ",") + "\ndata: ")
	s.buf.Write(data)
	s.buf.WriteString("\n\n")
}

// end tells the browser that its sign-in has ended, so that it does not come back.
func (s *stream) end() {
	s.buf.WriteString("event: signedout\ndata: {}\n\n")
	_ = s.flush()
}

func (s *stream) flush() error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer has deadlines
	_, err := s.w.Write(s.buf.Bytes())
	s.buf.Reset()
	if err != nil {
		return err
	}
	return s.rc.Flush()
}
