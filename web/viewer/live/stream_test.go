package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cellblock/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// count tells the numbers after its cursor up to most, and then waits.
func count(most int) Topic {
	return func(ctx context.Context, after string, send func(Event) error) error {
		n, _ := strconv.Atoi(after)
		for n++; n <= most; n++ {
			if err := send(Event{Name: "number", Cursor: strconv.Itoa(n), Data: n}); err != nil {
				return err
			}
		}
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// message is one event as a browser sees it.
type message struct {
	event string
	Sub   int    `json:"sub"`
	After string `json:"after"`
	Event string `json:"event"`
	Data  any    `json:"data"`
}

// listen reads a stream until it has seen enough, or it ends, and hangs up. begun hears how the stream is called.
func listen(t *testing.T, url string, begun func(id string), enough func(message) bool) (heard []message) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	return events(t, response.Body, begun, enough)
}

// events reads a stream's events until it has seen enough, or the stream ends. A last line that was cut off does not count.
func events(t *testing.T, body io.Reader, begun func(id string), enough func(message) bool) (heard []message) {
	t.Helper()
	var m message
	lines := bufio.NewReader(body)
	for line, err := lines.ReadString('\n'); err == nil; line, err = lines.ReadString('\n') {
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case field == "event":
			m.event = value
		case field == "data" && m.event == "stream":
			begun(strings.Trim(value, `"`))
			m = message{}
		case field == "data" && m.event == "beat":
			m = message{}
		case field == "data":
			if err := json.Unmarshal([]byte(value), &m); err != nil {
				t.Fatalf("%s: %v", value, err)
			}
			heard = append(heard, m)
			if enough(m) {
				return heard
			}
			m = message{}
		}
	}
	return heard
}

// nobody hears how a stream is called.
func nobody(string) {}

// serve serves streams of topics, each from its cursor in the address on.
func serve(t *testing.T, streams *Streams, holds func() bool, topics ...Topic) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var subscriptions []Subscription
		after := r.URL.Query()["after"]
		for i, topic := range topics {
			sub := Subscription{Topic: topic}
			if i < len(after) {
				sub.After = after[i]
			}
			subscriptions = append(subscriptions, sub)
		}
		streams.Serve(r.Context(), w, "ann", subscriptions, holds)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func always() bool { return true }

// A browser that hangs up at any event gets the rest when it comes back: nothing twice, nothing missing, each topic in its order.
func TestNothingTwiceNothingMissing(t *testing.T) {
	const most = 40
	url := serve(t, new(Streams), always, count(most), count(most))
	next, after := []int{1, 1}, []string{"", ""}
	for next[0]+next[1] < 2*most+2 {
		n := 0
		for _, m := range listen(t, url+"?after="+after[0]+"&after="+after[1], nobody, func(message) bool { n++; return n == 7 || next[0]+next[1]+n == 2*most+2 }) {
			if m.Data != float64(next[m.Sub]) || m.After != fmt.Sprint(next[m.Sub]) {
				t.Fatalf("subscription %d: %v, want %d", m.Sub, m.Data, next[m.Sub])
			}
			next[m.Sub]++
			after[m.Sub] = m.After
		}
	}
}

// What is added to a stream and removed from it leaves alone what it carries besides: none of that begins again.
func TestStreamIsChanged(t *testing.T) {
	var streams Streams
	begins, ended := new(atomic.Int32), make(chan struct{})
	kept := func(ctx context.Context, _ string, send func(Event) error) error {
		begins.Add(1)
		_ = send(Event{Name: "kept"})
		<-ctx.Done()
		return nil
	}
	removed := func(ctx context.Context, _ string, _ func(Event) error) error {
		<-ctx.Done()
		close(ended)
		return nil
	}
	var id string
	added := false
	heard := listen(t, serve(t, &streams, always, kept, removed), func(name string) { id = name }, func(m message) bool {
		if m.Event == "kept" {
			for what, changed := range map[string]bool{
				"a stranger": streams.Change("bob", id, Change{First: 2}), "another stream": streams.Change("ann", "X", Change{First: 2}),
				"what comes too late": streams.Change("ann", id, Change{First: 1}),
				"too many":            streams.Change("ann", id, Change{First: 2, Add: make([]Subscription, MaxSubscriptions-1)}),
			} {
				if changed {
					t.Errorf("%s changed the stream", what)
				}
			}
			added = streams.Change("ann", id, Change{First: 2, Add: []Subscription{{count(3), "2"}}, Remove: []int{1, 1, 7}})
			<-ended
		}
		return m.Sub == 2
	})
	last := heard[len(heard)-1]
	if !added || len(heard) != 2 || last.Sub != 2 || last.Data != 3.0 || begins.Load() != 1 {
		t.Errorf("added %v, heard %+v, which began %d times", added, heard, begins.Load())
	}
}

// A stream that has ended, and all of its topics, takes no more changes.
func TestEndedStreamIsNotChanged(t *testing.T) {
	var streams Streams
	var id string
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(over)
		streams.Serve(r.Context(), w, "ann", []Subscription{{Topic: count(1)}}, always)
	}))
	defer server.Close()
	listen(t, server.URL, func(name string) { id = name }, func(message) bool { return true })
	<-over
	if streams.Change("ann", id, Change{First: 1}) || len(streams.open) > 0 {
		t.Errorf("it goes on as one of %d", len(streams.open))
	}
}

// An error of one topic is told, and the others go on.
func TestErrorOfATopic(t *testing.T) {
	fails := func(context.Context, string, func(Event) error) error {
		return fault.New(fault.NotFound, "no such thing")
	}
	told, counted := false, false
	listen(t, serve(t, new(Streams), always, fails, count(3)), nobody, func(m message) bool {
		body, _ := m.Data.(map[string]any)
		told = told || m.Sub == 0 && m.Event == "error" && body["message"] == "no such thing"
		counted = counted || m.Sub == 1 && m.Data == 3.0
		return told && counted
	})
	if !told || !counted {
		t.Errorf("told %v, counted %v", told, counted)
	}
}

// A stream whose sign-in has ended says so before it ends.
func TestEndOfTheSignIn(t *testing.T) {
	var gone atomic.Bool
	ctx, cancel := context.WithCancel(t.Context())
	topic := func(context.Context, string, func(Event) error) error {
		gone.Store(true)
		cancel()
		<-ctx.Done()
		return nil
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		new(Streams).Serve(ctx, w, "ann", []Subscription{{Topic: topic}}, func() bool { return !gone.Load() })
	}))
	defer server.Close()
	heard := listen(t, server.URL, nobody, func(message) bool { return false })
	if len(heard) != 1 || heard[0].event != "signedout" {
		t.Errorf("heard %+v", heard)
	}
}

// A reader who has stopped reading holds nobody up but himself, and his topics end with him.
func TestReaderGoesAway(t *testing.T) {
	ended := make(chan struct{})
	flood := func(ctx context.Context, _ string, send func(Event) error) error {
		defer close(ended)
		for {
			if err := send(Event{Name: "flood", Data: strings.Repeat("x", 10000)}); err != nil {
				return err
			}
		}
	}
	listen(t, serve(t, new(Streams), always, flood), nobody, func(message) bool { return true })
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the topic goes on")
	}
}

// Of a reader that holds its connection and reads nothing, no more is kept than sockets and one batch hold; it is let go, and misses
// nothing when it comes back.
func TestReaderStalls(t *testing.T) {
	const most, size = 800, 32 << 10
	var told atomic.Int32
	ended := make(chan struct{}, 2)
	topic := func(ctx context.Context, after string, send func(Event) error) error {
		defer func() { ended <- struct{}{} }()
		return count(most)(ctx, after, func(e Event) error {
			told.Store(int32(e.Data.(int)))
			e.Data = strings.Repeat("x", size)
			return send(e)
		})
	}
	url := serve(t, &Streams{patience: 100 * time.Millisecond}, always, topic)
	conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("who does not read is not let go")
	}
	if n := told.Load(); n == most {
		t.Errorf("all of %d events were taken from the topic for a reader that reads none", n)
	}
	next := 1
	if response, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
		t.Error(err)
	} else { // until it was let go, the last line perhaps in part
		next = inOrder(t, events(t, response.Body, nobody, func(message) bool { return false }), next)
	}
	if next == 1 || next > most {
		t.Fatalf("it has got events up to %d", next-1)
	}
	rest := listen(t, serve(t, new(Streams), always, topic)+"?after="+strconv.Itoa(next-1), nobody, func(m message) bool { return m.After == strconv.Itoa(most) })
	if next = inOrder(t, rest, next); next != most+1 {
		t.Errorf("it has got events up to %d", next-1)
	}
}

// inOrder checks that what was heard has the cursors from next on, and returns the one after them.
func inOrder(t *testing.T, heard []message, next int) int {
	t.Helper()
	for _, m := range heard {
		if m.After != strconv.Itoa(next) {
			t.Fatalf("after %d comes %q", next-1, m.After)
		}
		next++
	}
	return next
}

// A quiet stream is heard of: by an event, as pages do not get to see comments.
func TestBeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*heartbeat+time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		new(Streams).Serve(ctx, w, "ann", []Subscription{{Topic: count(0)}}, always)
		if beats := strings.Count(w.Body.String(), "event: beat\ndata: 0\n\n"); beats != 2 {
			t.Errorf("%d beats in %q", beats, w.Body)
		}
	})
}
