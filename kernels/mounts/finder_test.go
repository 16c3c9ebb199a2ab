package mounts

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// hanging returns a Finder one of whose sources hangs until gone is closed, and the number of looks that are at it.
func hanging(gone chan struct{}) (f *Finder, stuck *atomic.Int32) {
	stuck = new(atomic.Int32)
	return &Finder{Folder: func(_ []string, source string) (string, error) {
		if source == "/gone" {
			stuck.Add(1)
			defer stuck.Add(-1)
			<-gone
		}
		return source, nil
	}}, stuck
}

// A source that hangs ends neither who waits for it nor who waits for another; however many try, one look is stuck; and when it answers
// again, kernels have it again.
func TestFinderHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := make(chan struct{})
		f, stuck := hanging(gone)
		lost, well := []kernels.Mount{{Source: "/gone", Target: "/data"}}, []kernels.Mount{{Source: "/well", Target: "/data"}}
		for range 3 {
			begun := time.Now()
			_, err := f.Resolve(t.Context(), lost)
			if fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" || !strings.Contains(err.Error(), "/gone") || time.Since(begun) != Patience {
				t.Errorf("%v after %v", err, time.Since(begun))
			}
		}
		for what, look := range map[string]func(context.Context) error{
			"resolve":  func(ctx context.Context) error { _, err := f.Resolve(ctx, lost); return err },
			"writable": func(ctx context.Context) error { _, err := f.Writable(ctx, lost, 0, 0); return err },
		} {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if err := look(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: with a second's time: %v", what, err)
			}
			cancel()
		}
		if n := stuck.Load(); n != 1 {
			t.Errorf("%d looks are stuck", n)
		}
		if _, err := f.Resolve(t.Context(), well); err != nil {
			t.Errorf("another source: %v", err)
		}
		close(gone)
		if got, err := f.Resolve(t.Context(), lost); err != nil || got[0].Source != "/gone" {
			t.Errorf("once it answers: %v, %v", got, err)
		}
		synctest.Wait()
		if f.turns.Len() != 0 {
			t.Errorf("turns of %d sources stay behind", f.turns.Len())
		}
	})
}

// A Finder of this host finds and refuses what Resolve does.
func TestFinder(t *testing.T) {
	root, outside := tree(t)
	f := &Finder{Roots: []string{root}}
	got, err := f.Resolve(t.Context(), []kernels.Mount{{Source: filepath.Join(root, "inside"), Target: "/data"}})
	if err != nil || got[0].Source != filepath.Join(root, "data") {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := f.Resolve(t.Context(), []kernels.Mount{{Source: outside, Target: "/data"}}); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a folder outside: %v", err)
	}
}
