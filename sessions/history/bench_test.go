package history

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

func benchStore(b *testing.B) (*Store, sessions.SessionRef) {
	b.Helper()
	s, err := Open(b.Context(), Options{Folder: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s, benchSession(b, s, "bench")
}

func benchSession(b *testing.B, s *Store, id string) sessions.SessionRef {
	b.Helper()
	found, err := s.Open(b.Context(), sessions.StoredSession{ID: id, Language: "python", Created: time.Now()})
	if err == nil {
		err = s.Commit(b.Context(), found.Ref, sessions.ExecutionQueued{Number: 1, Queued: time.Now()})
	}
	if err != nil {
		b.Fatal(err)
	}
	return found.Ref
}

func line() kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "a line of output\n", Seq: 1, Time: time.Now()}
}

// BenchmarkOne is what a cell with one output waits for: that output on disk.
func BenchmarkOne(b *testing.B) {
	s, ref := benchStore(b)
	outputs := []kernels.Output{line()}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if err := s.Commit(context.Background(), ref, sessions.OutputsKept{Number: 1, First: i, Outputs: outputs}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCell is all that a cell writes: that it was accepted, began, printed a line and ended. A short cell is one commit.
func BenchmarkCell(b *testing.B) {
	for name, first := range map[string]int{"short": 4, "long": 2} {
		b.Run(name, func(b *testing.B) {
			s, ref := benchStore(b)
			outputs := []kernels.Output{line()}
			b.ReportAllocs()
			for n := 2; b.Loop(); n++ {
				changes := []sessions.Change{
					sessions.ExecutionQueued{Number: n, MsgID: "m", Code: "print('a line of output')", Queued: time.Now()},
					sessions.ExecutionBegan{Number: n, Generation: 1, Started: time.Now()},
					sessions.OutputsKept{Number: n, Outputs: outputs},
					sessions.ExecutionEnded{Number: n, Ended: time.Now(), Own: 1, Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}},
				}
				err := s.Commit(context.Background(), ref, changes[:first]...)
				if err == nil && first < len(changes) {
					err = s.Commit(context.Background(), ref, changes[first:]...)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFlood is 10,000 small outputs in batches of 500.
func BenchmarkFlood(b *testing.B) {
	s, ref := benchStore(b)
	batch := make([]kernels.Output, 500)
	for i := range batch {
		batch[i] = line()
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); {
		for range 10_000 / len(batch) {
			if err := s.Commit(context.Background(), ref, sessions.OutputsKept{Number: 1, First: i, Outputs: batch}); err != nil {
				b.Fatal(err)
			}
			i += len(batch)
		}
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "outputs/s")
}

// BenchmarkSideBySide is one output each of many sessions at once: they share transactions.
func BenchmarkSideBySide(b *testing.B) {
	s, _ := benchStore(b)
	var next atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		ref := benchSession(b, s, "s"+time.Now().String()+string(rune('a'+next.Add(1))))
		outputs := []kernels.Output{line()}
		for i := 0; pb.Next(); i++ {
			if err := s.Commit(context.Background(), ref, sessions.OutputsKept{Number: 1, First: i, Outputs: outputs}); err != nil {
				b.Error(err)
			}
		}
	})
}

// BenchmarkReadBack reads 10,000 outputs.
func BenchmarkReadBack(b *testing.B) {
	s, ref := benchStore(b)
	all := make([]kernels.Output, 10_000)
	for i := range all {
		all[i] = line()
	}
	if err := s.Commit(b.Context(), ref, sessions.OutputsKept{Number: 1, Outputs: all}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, err := range s.Outputs(b.Context(), ref, 1, 0) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != len(all) {
			b.Fatalf("%d came back", n)
		}
	}
	b.ReportMetric(float64(b.N)*10_000/b.Elapsed().Seconds(), "outputs/s")
}
