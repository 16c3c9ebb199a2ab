//go:build linux

package shim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels/stream"
)

// fill appends n messages of size bytes.
func fill(j *journal, n, size int) {
	for range n {
		j.message(stream.IOPub, [][]byte{make([]byte, size)})
	}
}

// readAll returns the numbers that a cursor finds, gaps as from-to:bytes.
func readAll(t *testing.T, j *journal, after *uint64) string {
	t.Helper()
	c, next, err := j.follow(after)
	if err != nil {
		t.Fatal(err)
	}
	return readTo(c, next)
}

func readTo(c *cursor, next uint64) string {
	var words []string
	for c.next < next {
		e, _, _ := c.read()
		if e.event != nil && e.event.Gap != nil {
			words = append(words, fmt.Sprintf("%d-%d:%d", e.event.Gap.From, e.event.Gap.To, e.event.Gap.Bytes))
		} else {
			words = append(words, fmt.Sprint(e.seq))
		}
	}
	return strings.Join(words, " ")
}

func number(n uint64) *uint64 { return &n }

func TestJournal(t *testing.T) {
	const cost = 100 + entryCost + partCost // of a message of 100 bytes
	tests := map[string]struct {
		do    func(j *journal)
		after *uint64
		want  string
	}{
		"empty":                       {func(*journal) {}, nil, ""},
		"from the beginning":          {func(j *journal) { fill(j, 3, 100) }, nil, "1 2 3"},
		"after one":                   {func(j *journal) { fill(j, 3, 100) }, number(1), "2 3"},
		"after nothing":               {func(j *journal) { fill(j, 3, 100) }, number(0), "1 2 3"},
		"after all":                   {func(j *journal) { fill(j, 3, 100) }, number(3), ""},
		"acknowledged":                {func(j *journal) { fill(j, 3, 100); _, _ = j.ack(2) }, nil, "3"},
		"acknowledged, asked again":   {func(j *journal) { fill(j, 3, 100); _, _ = j.ack(2) }, number(1), "2-2:0 3"},
		"acknowledged twice":          {func(j *journal) { fill(j, 3, 100); _, _ = j.ack(2); _, _ = j.ack(1) }, nil, "3"},
		"overflow":                    {func(j *journal) { fill(j, 10, 100) }, nil, "1-5:500 6 7 8 9 10"},
		"overflow, acknowledged":      {func(j *journal) { fill(j, 4, 100); _, _ = j.ack(2); fill(j, 10, 100) }, nil, "3-9:700 10 11 12 13 14"},
		"overflow after where I was":  {func(j *journal) { fill(j, 10, 100) }, number(7), "8 9 10"},
		"overflow, acknowledged past": {func(j *journal) { fill(j, 10, 100); _, _ = j.ack(8) }, nil, "9 10"},
		"a frame larger than the cap": {func(j *journal) { fill(j, 1, 100_000) }, nil, "1"},
		"and small ones before it":    {func(j *journal) { fill(j, 2, 100); fill(j, 1, 100_000) }, nil, "1 2 3"},
		"and small ones after it":     {func(j *journal) { fill(j, 1, 100_000); fill(j, 2, 100) }, nil, "1 2 3"},
		"and too many after it":       {func(j *journal) { fill(j, 1, 100_000); fill(j, 10, 100) }, nil, "1-6:100500 7 8 9 10 11"},
		"two larger than the cap":     {func(j *journal) { fill(j, 2, 100_000) }, nil, "1-1:100000 2"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			j := newJournal(4 * cost)
			tt.do(j)
			if got := readAll(t, j, tt.after); got != tt.want {
				t.Fatalf("got %q, want %q", got, tt.want)
			}
			if tt.after == nil {
				if got := readAll(t, j, nil); got != tt.want {
					t.Fatalf("the second time %q, want %q", got, tt.want)
				}
			}
		})
	}
}

// A connection that is slower than the kernel sees a gap that begins behind what it has got.
func TestJournalSlowCursor(t *testing.T) {
	j := newJournal(4 * (100 + entryCost + partCost))
	fill(j, 2, 100)
	c, next, _ := j.follow(nil)
	if got := readTo(c, next); got != "1 2" {
		t.Fatal(got)
	}
	fill(j, 10, 100)
	if got := readTo(c, 13); got != "3-7:500 8 9 10 11 12" {
		t.Fatal(got)
	}
}

// Who has more to keep than there is room for waits for a reader that goes on, and for no other.
func TestJournalRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal(10_000)
		ctx, cancel := context.WithCancel(t.Context())
		wait := func() time.Duration {
			start := time.Now()
			j.room(ctx)
			return time.Since(start)
		}
		fill(j, 1, 100)
		c, _, _ := j.follow(nil)
		if got := wait(); got != 0 {
			t.Errorf("there was room: %v", got)
		}
		fill(j, 1, 20_000)
		fill(j, 10, 10)
		go func() {
			for seq := uint64(1); seq <= 2; seq++ {
				time.Sleep(fetchTime - time.Millisecond)
				_, _ = j.ack(seq)
			}
		}()
		if got := wait(); got != 2*(fetchTime-time.Millisecond) {
			t.Errorf("waited %v for a slow reader", got)
		}
		fill(j, 1, 20_000)
		if got, again := wait(), wait(); got != fetchTime || again != 0 {
			t.Errorf("waited %v for a reader that is stuck, and then %v", got, again)
		}
		_, _ = j.ack(3)
		fill(j, 1, 20_000)
		time.AfterFunc(time.Second, cancel)
		if got, again := wait(), wait(); got != time.Second || again != 0 {
			t.Errorf("waited %v until the kernel's end, and then %v", got, again)
		}
		ctx = t.Context()
		time.AfterFunc(time.Second, c.close)
		if got, again := wait(), wait(); got != time.Second || again != 0 {
			t.Errorf("waited %v for a reader that goes, and then %v", got, again)
		}
	})
}

func TestJournalRefuses(t *testing.T) {
	j := newJournal(1000)
	fill(j, 2, 10)
	if _, err := j.ack(3); !errors.Is(err, stream.ErrMalformed) {
		t.Fatalf("ack of the future: %v", err)
	}
	if _, _, err := j.follow(number(3)); !errors.Is(err, stream.ErrMalformed) {
		t.Fatalf("follow the future: %v", err)
	}
}

func TestJournalFreesMemory(t *testing.T) {
	j := newJournal(1 << 20)
	for range 100 {
		fill(j, 100, 100)
		_, _ = j.ack(j.next - 1)
	}
	if j.used() != 0 || len(j.entries) != 0 {
		t.Fatalf("%d bytes in %d entries", j.used(), len(j.entries))
	}
	fill(j, 10_000, 1000)
	if j.used() > 1<<20+2000 {
		t.Fatalf("%d bytes used, the cap is 1 MB", j.used())
	}
}

// A cursor waits for what comes, and close ends the wait.
func TestCursorWaits(t *testing.T) {
	j := newJournal(1000)
	c, _, _ := j.follow(nil)
	got := make(chan string)
	go func() {
		for {
			e, more, ok := c.read()
			got <- fmt.Sprint(e.seq, more, ok)
			if !ok {
				return
			}
		}
	}()
	for i := range 3 {
		fill(j, 1, 1)
		if s, want := <-got, fmt.Sprintf("%d false true", i+1); s != want {
			t.Fatalf("got %s, want %s", s, want)
		}
	}
	c.close()
	if s := <-got; s != "0 false false" {
		t.Fatal(s)
	}
}

// The journal against a model: every number arrives once, as itself or in a gap, and gaps count exactly, unless the
// server comes back to a place in the middle of what was given up: then Bytes is at most too large.
func FuzzJournal(f *testing.F) {
	f.Add([]byte{1, 200, 3, 90, 250, 7, 7, 7})
	f.Fuzz(func(t *testing.T, ops []byte) {
		j := newJournal(2000)
		var sizes []int64 // of number i+1
		c, _, _ := j.follow(nil)
		seen, exact := uint64(0), true
		for _, op := range ops {
			switch {
			case op < 128:
				fill(j, 1, int(op)*8)
				sizes = append(sizes, int64(op)*8)
			case op < 200 && seen < uint64(len(sizes)):
				e, _, _ := c.read()
				if e.event == nil {
					if e.seq != seen+1 || int64(len(e.msg.Parts[0])) != sizes[seen] {
						t.Fatalf("number %d after %d", e.seq, seen)
					}
				} else {
					var bytes int64
					for _, n := range sizes[seen:e.seq] {
						bytes += n
					}
					if g := e.event.Gap; g.From != seen+1 || g.To != e.seq || g.Bytes < bytes || (exact && g.Bytes != bytes) {
						t.Fatalf("gap %+v after %d, %d bytes", g, seen, bytes)
					}
					exact = true
				}
				seen = e.seq
			case op < 240:
				_, _ = j.ack(seen)
			default: // another connection; how much came before it is known only while that frame is kept
				exact = exact && seen+1 >= j.first
				c, _, _ = j.follow(&seen)
			}
		}
	})
}
