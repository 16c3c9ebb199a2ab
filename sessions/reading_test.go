package sessions

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"cellblock/kernels"
)

// executionOf is a cell with a record and nothing else.
func executionOf(limit int64) *Execution {
	return &Execution{record: newRecord(limit, 1, ""), done: make(chan struct{}), phase: PhaseRunning}
}

func (e *Execution) endNow() {
	e.record.end()
	e.phase = PhaseEnded
	close(e.done)
}

// ended is a context that has ended, for reading what there is.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errEnough)
	return ctx
}

var errEnough = errors.New("enough")

func TestOutputsFromAMark(t *testing.T) {
	e := executionOf(1 << 20)
	for i := range 10 {
		e.record.append(line(i))
	}
	var last error
	mark := 0
	for out, err := range e.OutputsFrom(ended(t), 3) {
		if err != nil {
			last, mark = err, out.Next
			continue
		}
		if out.Text != line(out.Index).Text || out.Next != out.Index+1 || out.Index < 3 {
			t.Errorf("%+v", out)
		}
	}
	if !errors.Is(last, errEnough) || mark != 10 {
		t.Errorf("the end of what there is: %v at %d", last, mark)
	}
	e.record.append(line(10))
	e.endNow()
	e.record.append(line(11)) // late
	var texts string
	for out, err := range e.OutputsFrom(t.Context(), mark) {
		if err != nil {
			t.Fatal(err)
		}
		texts += out.Text
	}
	if texts != line(10).Text {
		t.Errorf("the rest: %q", texts)
	}
	if late := e.LateFrom(0); len(late) != 1 || late[0].Text != line(11).Text || late[0].Index != 11 || late[0].Next != 12 {
		t.Errorf("late: %+v", late)
	}
	if late := e.LateFrom(12); len(late) != 0 {
		t.Errorf("later: %+v", late)
	}
	for _, beyond := range []int{11, 12, 99, 1 << 40, -5} {
		for range e.OutputsFrom(t.Context(), beyond) {
			if beyond > 0 {
				t.Errorf("something at %d", beyond)
			}
		}
	}
}

// A reader who stops and goes on from his mark gets every output once, or is told that it is not kept, whatever is thrown
// away meanwhile.
func TestMarksMissNothing(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 2))
		e := executionOf(int64(1 + rng.IntN(8<<10)))
		mark, produced := 0, 0
		missed := false // a hole was told since the last output
		read := func(ctx context.Context) {
			before := mark
			for out, err := range e.OutputsFrom(ctx, mark) {
				switch {
				case err != nil:
				case out.Kind == kernels.OutputNotice:
					missed = true
				case out.Index < before:
					t.Fatalf("seed %d: output %d comes again behind %d", seed, out.Index, before)
				case out.Index > before && !missed:
					t.Fatalf("seed %d: output %d comes behind %d, and nothing was told", seed, out.Index, before)
				case out.Text != line(out.Index).Text:
					t.Fatalf("seed %d: output %d is %q", seed, out.Index, out.Text)
				default:
					before, missed = out.Index+1, false
				}
				mark = out.Next
			}
		}
		for range rng.IntN(300) {
			e.record.append(line(produced))
			produced++
			if rng.IntN(20) == 0 {
				read(ended(t))
			}
		}
		e.endNow()
		read(t.Context())
		if mark != produced && !missed {
			t.Fatalf("seed %d: ends at %d of %d", seed, mark, produced)
		}
	}
}
