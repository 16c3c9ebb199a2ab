package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/sessions"
)

func TestLimiter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(60, 10)
		ann, bob := sessions.Owner{Issuer: "i", Subject: "ann"}, sessions.Owner{Issuer: "i", Subject: "bob"}
		for n := range 10 {
			if wait, _ := l.take(ann, time.Now()); wait != 0 {
				t.Fatalf("call %d at once waits %v", n, wait)
			}
		}
		for n, wantFirst := range []bool{true, false} {
			if wait, first := l.take(ann, time.Now()); wait != time.Second || first != wantFirst {
				t.Errorf("refused call %d: wait %v, first %v", n, wait, first)
			}
		}
		if wait, _ := l.take(bob, time.Now()); wait != 0 {
			t.Errorf("another owner waits %v", wait)
		}
		time.Sleep(time.Second)
		if wait, _ := l.take(ann, time.Now()); wait != 0 {
			t.Errorf("a second later: %v", wait)
		}
		if wait, first := l.take(ann, time.Now()); wait == 0 || !first {
			t.Errorf("and another: %v, first %v", wait, first)
		}
		time.Sleep(10 * time.Second)
		for range 10 {
			if wait, _ := l.take(ann, time.Now()); wait != 0 {
				t.Errorf("after a rest: %v", wait)
			}
		}
	})
}

func TestLimiterForgetsWhoIsGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLimiter(60, 10)
		for n := range 1000 {
			l.take(sessions.Owner{Subject: fmt.Sprint(n)}, time.Now())
		}
		time.Sleep(10 * time.Second)
		busy := sessions.Owner{Subject: "busy"}
		for range 10 {
			l.take(busy, time.Now())
		}
		if len(l.buckets) != 1 {
			t.Errorf("%d owners are remembered", len(l.buckets))
		}
		for range 5 { // who still calls is not forgotten
			time.Sleep(5 * time.Second)
			for range 5 {
				l.take(busy, time.Now())
			}
		}
		if wait, _ := l.take(busy, time.Now()); wait == 0 {
			t.Error("a bucket was filled before its time")
		}
	})
}

func TestTooManyCallsAreRefusedWithTheTimeToWait(t *testing.T) {
	w, lines := auditedWorld(t, false)
	w.service.Limiter = NewLimiter(1, 2)
	w.server = w.service.server()
	for range 2 {
		if got := w.call("list_sessions", nil); got.isError {
			t.Error(got)
		}
	}
	for range 3 {
		if got := w.call("list_sessions", nil); !got.isError || !strings.Contains(got.String(), "too many calls: 1 a minute are allowed, 2 at once\nHint: wait 60 s") {
			t.Error(got)
		}
	}
	w.owner.Subject = "bob"
	if got := w.call("list_sessions", nil); got.isError {
		t.Error(got)
	}
	got := lines()
	if len(got) != 4 { // the refusals are one
		t.Fatal(got)
	}
	has(t, got[2], map[string]any{"event": "denied", "tool": "list_sessions", "status": "busy", "subject": "alice"})
}

func TestReadingResourcesCountsAsCalling(t *testing.T) {
	w, lines := auditedWorld(t, false)
	w.service.Limiter = NewLimiter(1, 2)
	w.server = w.service.server()
	for n, want := range []string{"there is no session", "there is no session", "too many calls", "too many calls"} {
		if _, rpcError := w.read("cellblock://sessions/s/notebook.ipynb"); rpcError == nil || !strings.Contains(rpcError.Message, want) {
			t.Errorf("reading %d: %+v", n, rpcError)
		}
	}
	got := lines()
	if len(got) != 3 {
		t.Fatal(got)
	}
	has(t, got[2], map[string]any{"event": "denied", "tool": "resources/read", "status": "busy", "session": "s"})
}

func TestWaitIn(t *testing.T) {
	for _, d := range []time.Duration{time.Millisecond, time.Second, 90 * time.Second} {
		hint := waitBefore + waitText(d) + waitAfter
		if got, ok := WaitIn(hint); !ok || got < d || got >= d+time.Second {
			t.Errorf("%q: %v, %v", hint, got, ok)
		}
	}
	for _, hint := range []string{"", "wait", "wait 3 s", "wait -3 s, then call again", "wait x s, then call again", "please wait 3 s, then call again"} {
		if got, ok := WaitIn(hint); ok {
			t.Errorf("%q: %v", hint, got)
		}
	}
}
