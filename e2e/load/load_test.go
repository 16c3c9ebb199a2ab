package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// fake answers as a server would, and wrongly after a number of calls.
type fake struct {
	calls, wrongAfter *atomic.Int64
	counted           int
	file              string
}

func (f *fake) Close() error { return nil }

func (f *fake) Call(_ context.Context, tool string, args map[string]any) (string, bool, error) {
	if n := f.calls.Add(1); f.wrongAfter != nil && n > f.wrongAfter.Load() {
		if n%2 == 0 {
			return "", false, errors.New("the connection broke")
		}
		return "something else", false, nil
	}
	code, _ := args["code"].(string)
	switch {
	case tool == "write_file":
		f.file = args["content"].(string)
	case strings.HasPrefix(code, "counted = 0"):
		return "here", false, nil
	case strings.HasPrefix(code, "counted"):
		f.counted++
		return fmt.Sprintf("at %d of /workspace", f.counted), false, nil
	case strings.HasPrefix(code, "for i"):
		return "line 498\nline 499", false, nil
	case strings.HasPrefix(code, "raise"):
		return "ValueError: on purpose", true, nil
	case strings.HasPrefix(code, "sum"):
		return "2666646666700000", false, nil
	case strings.HasPrefix(code, "print(open"):
		return f.file, false, nil
	}
	return "rested", false, nil
}

func dialFake(wrongAfter *atomic.Int64) func(context.Context) (caller, error) {
	calls := new(atomic.Int64)
	return func(context.Context) (caller, error) { return &fake{calls: calls, wrongAfter: wrongAfter}, nil }
}

// holdUntil is hold by three sessions, until enough of it has been seen.
func holdUntil(t *testing.T, wrongAfter *atomic.Int64, enough func(*tally) bool) *tally {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen *tally
	_, err := hold(ctx, dialFake(wrongAfter), 3, time.Minute, func(got *tally, _ time.Duration) {
		got.mu.Lock()
		defer got.mu.Unlock()
		if seen = got; enough(got) {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("not enough in a minute: %+v, %v", seen, err)
	}
	return seen
}

func TestWhatIsRightIsCounted(t *testing.T) {
	got := holdUntil(t, nil, func(got *tally) bool { return got.jobs > 3*len(jobs) })
	if got.bad() != 0 {
		t.Errorf("%+v", got.failures)
	}
}

func TestWhatIsWrongIsTold(t *testing.T) {
	var after atomic.Int64
	got := holdUntil(t, &after, func(got *tally) bool { return got.errors > 0 && got.losses > 0 })
	var said strings.Builder
	got.printFailures(&said)
	if !strings.Contains(said.String(), "the connection broke") || !strings.Contains(said.String(), "something else") {
		t.Errorf("%d errors, %d losses:\n%s", got.errors, got.losses, said.String())
	}
}

func TestFindStopsAtWhatIsHeld(t *testing.T) {
	for _, limit := range []int{0, 1, 5, 37, 64, 100} {
		var out strings.Builder
		err := find(t.Context(), options{most: 64, slowest: time.Second}, &out, func(_ context.Context, n int) (*tally, error) {
			all := newTally()
			all.add("count", time.Millisecond, nil)
			if n > limit {
				all.add("count", time.Millisecond, errors.New("too little memory"))
			}
			return all, nil
		})
		want := fmt.Sprintf("\n%d sessions are held.", limit)
		if limit >= 64 {
			want = "\n64 sessions are held; more"
		}
		if err != nil || !strings.Contains("\n"+out.String(), want) || limit < 64 && !strings.Contains(out.String(), "too little memory") {
			t.Errorf("limit %d: %v\n%s", limit, err, out.String())
		}
	}
	slow := newTally()
	slow.add("rest", time.Minute, nil)
	if tooMuch(slow, time.Second) == "" || tooMuch(newTally(), time.Second) == "" {
		t.Error("slow answers, and none at all, pass for held")
	}
}

func TestTheServerIsFoundByItsPort(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := processAt("http://" + l.Addr().String() + "/mcp")
	if _, err := os.Stat("/proc/net/tcp"); err != nil {
		t.Logf("SKIP part: no /proc here")
		return
	}
	if int(p) != os.Getpid() || p.memory() == "?" || p.descriptors() == "?" {
		t.Errorf("found %d, %s MB, %s descriptors", p, p.memory(), p.descriptors())
	}
	if none := processAt("https://example.org/mcp"); none != 0 || none.memory() != "?" {
		t.Errorf("found %d", none)
	}
}
