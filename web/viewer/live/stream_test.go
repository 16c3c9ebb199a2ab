package live

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
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
	id, event string
	Sub       int    `json:"sub"`
	After     string `json:"after"`
	Event     string `json:"event"`
	Data      any    `json:"data"`
}

// listen reads a stream until it has seen enough, or it ends, and hangs up.
func listen(t *testing.T, url, lastEventID string, enough func(message) bool) (heard []message) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Last-Event-ID", lastEventID)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var m message
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		field, value, _ := strings.Cut(lines.Text(), ": ")
		switch field {
		case "id":
			m.id = value
		case "event":
			m.event = value
		case "data":
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

func serve(t *testing.T, holds func() bool, topics ...Topic) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var subscriptions []Subscription
		for _, topic := range topics {
			subscriptions = append(subscriptions, Subscription{Topic: topic})
		}
		Resume(subscriptions, r.Header.Get("Last-Event-ID"))
		Serve(r.Context(), w, subscriptions, holds)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func always() bool { return true }

// A browser that hangs up at any event gets the rest when it comes back: nothing twice, nothing missing, each topic in its order.
func TestNothingTwiceNothingMissing(t *testing.T) {
	const most = 40
	url := serve(t, always, count(most), count(most))
	last, next := "", []int{1, 1}
	for next[0]+next[1] < 2*most+2 {
		n := 0
		for _, m := range listen(t, url, last, func(message) bool { n++; return n == 7 || next[0]+next[1]+n == 2*most+2 }) {
			if m.Data != float64(next[m.Sub]) || m.After != fmt.Sprint(next[m.Sub]) {
				t.Fatalf("subscription %d: %v, want %d", m.Sub, m.Data, next[m.Sub])
			}
			next[m.Sub]++
			last = m.id
		}
	}
	if last != fmt.Sprintf("%d,%d", most, most) {
		t.Errorf("the last id is %q", last)
	}
}

// An error of one topic is told, and the others go on.
func TestErrorOfATopic(t *testing.T) {
	fails := func(context.Context, string, func(Event) error) error {
		return fault.New(fault.NotFound, "no such thing")
	}
	told, counted := false, false
	listen(t, serve(t, always, fails, count(3)), "", func(m message) bool {
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
		Serve(ctx, w, []Subscription{{Topic: topic}}, func() bool { return !gone.Load() })
	}))
	defer server.Close()
	heard := listen(t, server.URL, "", func(message) bool { return false })
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
	listen(t, serve(t, always, flood), "", func(message) bool { return true })
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the topic goes on")
	}
}

func FuzzResume(f *testing.F) {
	f.Add("1,2")
	f.Add("1")
	f.Add("a\n,b")
	f.Fuzz(func(t *testing.T, id string) {
		subscriptions := []Subscription{{After: "x"}, {After: "y"}}
		Resume(subscriptions, id)
		for _, s := range subscriptions {
			if err := CheckCursor(s.After); err != nil {
				t.Errorf("%q was taken from %q", s.After, id)
			}
		}
	})
}
