package sessions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"cellblock/kernels"
)

func line(i int) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: fmt.Sprintf("line %d\n", i)}
}

// readAll reads what a record has now.
func readAll(r *record, c *cursor) (outs []kernels.Output) {
	for {
		out, ok, _ := r.next(c)
		if !ok {
			return outs
		}
		outs = append(outs, out)
	}
}

func TestRecordKeepsHeadAndTailAndCountsTheRest(t *testing.T) {
	const lines, limit = 10_000, 64 << 10
	r := newRecord(limit, 1, "")
	var total tally
	for i := range lines {
		for _, out := range []kernels.Output{
			line(i), {Kind: kernels.OutputStream, Stream: "stderr", Text: "e"}, {Kind: kernels.OutputDisplay, Metadata: []byte("{}")},
		} {
			r.append(out)
			total.add(out, 1)
		}
	}
	r.end()
	if size := r.size(); size > limit || size < limit/2 {
		t.Errorf("it holds %d bytes of at most %d", size, limit)
	}
	outs := readAll(r, &cursor{})
	var got tally
	notes := 0
	for _, out := range outs {
		if out.Kind != kernels.OutputNotice {
			got.add(out, 1)
			continue
		}
		notes++
		switch e := out.Notice.Elided; e.Stream {
		case "stdout":
			got.stdout.bytes += e.Bytes
			got.stdout.lines += e.Lines
		case "stderr":
			got.stderr.bytes += e.Bytes
		default:
			got.messages += e.Messages
			got.messageBytes += e.Bytes
		}
	}
	if notes != 3 || got != total {
		t.Errorf("%d notices; read and left out together are %+v, produced were %+v", notes, got, total)
	}
	if first, last := outs[0].Text, outs[len(outs)-3].Text; first != "line 0\n" || last != "line 9999\n" {
		t.Errorf("it begins with %q and ends with %q", first, last)
	}
}

func TestReaderWhoKeepsUpMissesNothing(t *testing.T) {
	r := newRecord(4<<10, 1, "")
	var c cursor
	for i := range 10_000 {
		r.append(line(i))
		outs := readAll(r, &c)
		if len(outs) != 1 || outs[0].Text != fmt.Sprintf("line %d\n", i) {
			t.Fatalf("after line %d: %+v", i, outs)
		}
	}
}

// No reader is waited for. Whatever his pace, what he got and what he was told that he missed add up to what was
// produced.
func TestReadersOfAnyPaceAreToldExactly(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := newRecord(int64(1+rng.IntN(8<<10)), 1, "")
		var c cursor
		var got, produced int64
		count := func(outs []kernels.Output) {
			for _, out := range outs {
				if out.Notice != nil {
					got += out.Notice.Elided.Bytes
				}
				got += int64(len(out.Text))
			}
		}
		for i := range rng.IntN(300) {
			r.append(line(i))
			produced += int64(len(line(i).Text))
			if rng.IntN(20) == 0 {
				count(readAll(r, &c))
			}
		}
		r.end()
		count(readAll(r, &c))
		if got != produced {
			t.Fatalf("seed %d: %d of %d bytes accounted for", seed, got, produced)
		}
	}
}

func TestLateOutputIsReadFromItsOwnCursor(t *testing.T) {
	r := newRecord(2<<10, 1, "")
	r.append(line(1))
	r.end()
	late := r.lateFrom(0)
	for i := range 100 {
		r.append(line(1000 + i))
	}
	if outs := readAll(r, &cursor{}); len(outs) != 1 || outs[0].Text != "line 1\n" {
		t.Errorf("the cell's own outputs are %+v", outs)
	}
	outs := readAll(r, &late)
	if len(outs) < 2 || !strings.Contains(outs[len(outs)-1].Text, "1099") {
		t.Errorf("late: %+v", outs)
	}
}

func TestManyReadersFollowAsItComes(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	e := start(t, m, alice, python("s", "print 500"))
	var wg sync.WaitGroup
	for range 10 {
		wg.Go(func() {
			if got := text(t, e); strings.Count(got, "\n") != 500 || !strings.HasSuffix(got, "line 499\n") {
				t.Errorf("got %d lines", strings.Count(got, "\n"))
			}
		})
	}
	wg.Wait()
}

func TestReaderStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, python("s", "sleep 1h"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			var last error
			for _, err := range e.Outputs(ctx) {
				last = err
			}
			ended <- last
		}()
		synctest.Wait()
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

// What code sends to a widget counts as what it shows does: nothing else bounds it.
func TestRecordCountsMessagesOfAnyType(t *testing.T) {
	r := newRecord(1<<20, 1, "")
	for range 100 {
		r.append(kernels.Output{Kind: kernels.OutputOther, Type: "comm_msg", Content: make([]byte, 64<<10)})
	}
	r.end()
	held := 0
	for _, out := range readAll(r, &cursor{}) {
		held += len(out.Content)
	}
	if held == 0 || held > 1<<20 || int64(held) > r.size() {
		t.Errorf("it holds %d bytes, and says %d", held, r.size())
	}
}
