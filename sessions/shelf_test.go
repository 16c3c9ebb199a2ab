package sessions

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// slowStore takes its time for each commit, or does not work at all. Of what it is given it keeps the outputs.
type slowStore struct {
	Store
	pause time.Duration

	mu     sync.Mutex
	broken error
	rows   map[int]map[int]kernels.Output // by execution and index
}

func (s *slowStore) Open(_ context.Context, want StoredSession) (StoredSession, error) {
	want.Ref = 1
	return want, s.Health()
}

func (s *slowStore) Health() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken
}

// fail makes it not work; nil: work again.
func (s *slowStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = err
}

func (s *slowStore) Commit(_ context.Context, _ SessionRef, changes ...Change) error {
	time.Sleep(s.pause)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.broken != nil {
		return s.broken
	}
	for _, change := range changes {
		if kept, ok := change.(OutputsKept); ok {
			s.keep(kept)
		}
	}
	return nil
}

func (s *slowStore) keep(kept OutputsKept) {
	rows := s.rows[kept.Number]
	if rows == nil {
		rows = map[int]kernels.Output{}
		s.rows[kept.Number] = rows
	}
	for i, out := range kept.Outputs {
		rows[kept.First+i] = out
	}
	if h := kept.Hole; h != nil {
		for i := h.From; i < h.To; i++ {
			delete(rows, i)
		}
		for i, note := range h.Notices {
			rows[h.From+i] = note
		}
	}
}

func (s *slowStore) Outputs(_ context.Context, _ SessionRef, number, from int) iter.Seq2[StoredOutput, error] {
	return func(yield func(StoredOutput, error) bool) {
		s.mu.Lock()
		var found []StoredOutput
		last := 0
		for i := range s.rows[number] {
			last = max(last, i)
		}
		for i := from; i <= last; i++ {
			if out, ok := s.rows[number][i]; ok {
				found = append(found, StoredOutput{i, out})
			}
		}
		s.mu.Unlock()
		for _, out := range found {
			if !yield(out, nil) {
				return
			}
		}
	}
}

// shelved returns a record that is saved to a store.
func shelved(t *testing.T, store Store, limit int64) *record {
	t.Helper()
	h := newHands()
	s := newSaver(store, StoredSession{}, slog.New(slog.DiscardHandler), h.run)
	if err := s.open(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.abandon(); h.close() })
	r := newRecord(limit, 1, "")
	r.shelf = &shelf{saver: s}
	return r
}

func large(i int, size int) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Seq: uint64(i + 1), Text: fmt.Sprintf("%d %s\n", i, strings.Repeat("x", size))}
}

// accounted is what a reader has of a record: the bytes that he got, and those that he was told of.
func accounted(r *record) (got, told int64) {
	for _, out := range readAll(r, &cursor{}) {
		got += int64(len(out.Text))
		if out.Notice != nil && out.Notice.Elided != nil {
			told += out.Notice.Elided.Bytes
		}
	}
	return got, told
}

// A store that is slower than the kernel is waited for: nothing is given up, and memory stays bounded.
func TestSlowStoreIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{pause: time.Second, rows: map[int]map[int]kernels.Output{}}
		r := shelved(t, store, 1<<30)
		var acked atomic.Uint64
		r.onDealt(acked.Store)
		var total int64
		for i := range 200 {
			out := large(i, 1<<20)
			total += int64(len(out.Text))
			r.append(out)
			r.room(t.Context())
			if held := r.size(); held > maxUnsaved {
				t.Fatalf("%d bytes are in memory after output %d", held, i)
			}
		}
		r.end()
		if err := r.shelf.saver.flush(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, told := accounted(r); got != total || told != 0 {
			t.Errorf("of %d bytes a reader got %d and was told of %d", total, got, told)
		}
		if acked.Load() != 200 {
			t.Errorf("the shim was told of %d", acked.Load())
		}
	})
}

// A store that does not work is not waited for: head and tail stay in memory, the shim may forget, and all of what is
// left is stored when the store works again.
func TestBrokenStoreIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{rows: map[int]map[int]kernels.Output{}}
		r := shelved(t, store, 1<<30)
		var acked atomic.Uint64
		r.onDealt(acked.Store)
		store.fail(fault.New(fault.Unavailable, "the disk is full"))
		var total int64
		began := time.Now()
		for i := range 200 {
			out := large(i, 1<<20)
			total += int64(len(out.Text))
			r.append(out)
			synctest.Wait()
			r.room(t.Context())
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("it was waited for %v", waited)
		}
		if held := r.size(); held > maxUnsaved+maxUnsaved/2 {
			t.Errorf("%d bytes are in memory", held)
		}
		time.Sleep(time.Minute)
		if acked.Load() == 0 {
			t.Error("the shim must keep all of it")
		}
		if got, told := accounted(r); got+told != total || told == 0 {
			t.Errorf("of %d bytes a reader got %d and was told of %d", total, got, told)
		}
		r.end()
		r.squeeze()
		if held := r.size(); held > 4<<20 {
			t.Errorf("squeezed, %d bytes are in memory", held)
		}
		got, told := accounted(r)
		if got+told != total {
			t.Errorf("squeezed, of %d bytes a reader got %d and was told of %d", total, got, told)
		}
		store.fail(nil)
		time.Sleep(time.Minute)
		if err := r.shelf.saver.flush(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if held := r.size(); held > endedMemory {
			t.Errorf("stored, %d bytes are in memory", held)
		}
		if again, toldAgain := accounted(r); again != got || toldAgain != told {
			t.Errorf("stored, a reader got %d and was told of %d; before %d and %d", again, toldAgain, got, told)
		}
		if stored, toldStored := accountedRows(store); stored != got || toldStored != told {
			t.Errorf("the store has %d and tells of %d; readers got %d and %d", stored, toldStored, got, told)
		}
	})
}

// Of a record whose reader is gone, and that the store has not taken, the beginning and the end stay.
func TestSqueezedRecordKeepsItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{rows: map[int]map[int]kernels.Output{}}
		r := shelved(t, store, 1<<30)
		store.fail(fault.New(fault.Unavailable, "the disk is full"))
		var total int64
		for i := range 100 {
			out := large(i, 64<<10)
			total += int64(len(out.Text))
			r.append(out)
		}
		r.end()
		r.squeeze()
		store.fail(nil)
		time.Sleep(time.Minute)
		outs := readAll(r, &cursor{})
		if first, last := outs[0].Text, outs[len(outs)-1].Text; !strings.HasPrefix(first, "0 ") || !strings.HasPrefix(last, "99 ") {
			t.Errorf("it begins with %.10q and ends with %.10q", first, last)
		}
		got, told := accounted(r)
		stored, toldStored := accountedRows(store)
		if got+told != total || got > 1<<20 || got != stored || told != toldStored {
			t.Errorf("of %d bytes, read %d told %d, stored %d told %d", total, got, told, stored, toldStored)
		}
	})
}

// An earlier version may have counted only what came before the hole.
func TestCellWithoutItsEndIsReadToTheEnd(t *testing.T) {
	note := kernels.Output{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Incomplete: "the rest is gone"}}
	store := &slowStore{rows: map[int]map[int]kernels.Output{1: {0: large(0, 1), 1: large(1, 1), 2: note}}}
	r := restoredRecord(store, 1, StoredExecution{Number: 1, Outputs: 2, Own: 10, Ended: time.Now()})
	if outs := readAll(r, &cursor{}); len(outs) != 3 || outs[2].Notice == nil {
		t.Errorf("what is read of it is %+v", outs)
	}
}

func accountedRows(s *slowStore) (got, told int64) {
	for out := range s.Outputs(context.Background(), 1, 1, 0) {
		got += int64(len(out.Output.Text))
		if n := out.Output.Notice; n != nil {
			told += n.Elided.Bytes
		}
	}
	return got, told
}

// A store that hangs holds a cell's outputs up for a while only.
func TestHangingStoreIsNotWaitedForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &slowStore{pause: time.Hour, rows: map[int]map[int]kernels.Output{}}
		r := shelved(t, store, 1<<30)
		began := time.Now()
		for i := range 40 {
			r.append(large(i, 1<<20))
			r.room(t.Context())
		}
		if waited := time.Since(began); waited > patience {
			t.Errorf("40 MiB waited %v", waited)
		}
		time.Sleep(5 * time.Hour)
	})
}

// Whatever the sizes, the pace of the store and of the readers: what is read, what is stored and what is told add up.
func TestNothingIsUnaccountedFor(t *testing.T) {
	for seed := range 60 {
		synctest.Test(t, func(t *testing.T) {
			store := &slowStore{pause: time.Duration(seed%3) * time.Millisecond, rows: map[int]map[int]kernels.Output{}}
			r := shelved(t, store, int64(1000<<(seed%8)))
			var total, followed int64
			var c cursor
			count := func(outs []kernels.Output) {
				for _, out := range outs {
					followed += int64(len(out.Text))
					if out.Notice != nil {
						followed += out.Notice.Elided.Bytes
					}
				}
			}
			for i := range 400 {
				out := large(i, (i*seed*7919)%1500)
				total += int64(len(out.Text))
				r.append(out)
				if (i*seed)%11 == 0 {
					time.Sleep(time.Duration(i%5) * time.Millisecond)
				}
				if (i+seed)%37 == 0 {
					count(readAll(r, &c))
					r.evictAll()
				}
			}
			r.end()
			if err := r.shelf.saver.flush(t.Context(), time.Minute); err != nil {
				t.Fatal(err)
			}
			count(readAll(r, &c))
			if followed != total {
				t.Errorf("seed %d: of %d bytes the follower has %d", seed, total, followed)
			}
			got, told := accounted(r)
			stored, toldStored := accountedRows(store)
			if got+told != total || got != stored || told != toldStored {
				t.Errorf("seed %d: of %d bytes, read %d told %d, stored %d told %d", seed, total, got, told, stored, toldStored)
			}
		})
	}
}

// evictAll drops from memory whatever is stored, but for what grows.
func (r *record) evictAll() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.shelf != nil {
		r.evict(0)
	}
}
