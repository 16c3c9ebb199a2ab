package history

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

// limited opens a store with limits, as another process would. It must be closed.
func limited(t *testing.T, o Options) *Store {
	t.Helper()
	if o.Slot == "" {
		o.Slot = "keeper"
	}
	if o.Alive == nil {
		o.Alive = func(string) bool { return false }
	}
	o.Logger = slog.New(slog.DiscardHandler)
	s, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func closeStore(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

func claim(t *testing.T, s *Store, id string) sessions.SessionRef {
	t.Helper()
	found, err := s.Open(t.Context(), sessions.StoredSession{ID: id, Language: "python", Created: time.Now()})
	if err != nil {
		t.Error(err) // which may be called by other goroutines
	}
	return found.Ref
}

// ran commits a cell that was queued, printed texts and, if it is said so, ended.
func ran(t *testing.T, s *Store, ref sessions.SessionRef, number int, ended bool, texts ...string) {
	t.Helper()
	changes := []sessions.Change{
		sessions.ExecutionQueued{Number: number, Code: fmt.Sprint("cell ", number), Queued: time.Now()},
		sessions.ExecutionBegan{Number: number, Generation: 1, Started: time.Now()},
		printed(number, 0, texts...),
	}
	if ended {
		changes = append(changes, sessions.ExecutionEnded{Number: number, Ended: time.Now(), Own: len(texts),
			Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}})
	}
	if err := s.Commit(t.Context(), ref, changes...); err != nil {
		t.Error(err)
	}
}

func printed(number, first int, texts ...string) sessions.OutputsKept {
	kept := sessions.OutputsKept{Number: number, First: first}
	for _, text := range texts {
		kept.Outputs = append(kept.Outputs, kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text})
	}
	return kept
}

// told is what a reader of an execution gets from an index on, with the indices.
func told(t *testing.T, s *Store, ref sessions.SessionRef, number, from int) string {
	t.Helper()
	var b strings.Builder
	for out, err := range s.Outputs(t.Context(), ref, number, from) {
		if err != nil {
			t.Fatalf("output %d of cell %d: %v", out.Index, number, err)
		}
		text := out.Output.Text
		if n := out.Output.Notice; n != nil {
			text = n.String()
		}
		fmt.Fprintf(&b, "%d:%s ", out.Index, text)
	}
	return strings.TrimSpace(b.String())
}

func wantTold(t *testing.T, s *Store, ref sessions.SessionRef, number, from int, want string) {
	t.Helper()
	if got := told(t, s, ref, number, from); got != want {
		t.Errorf("cell %d from output %d on is %.200q, want %.200q", number, from, got, want)
	}
}

// pass lets time go by, and the store look at its limits.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestWhatIsOldIsDropped(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, Options{Folder: folder, MaxAge: time.Hour})
		defer closeStore(t, s)
		ref := claim(t, s, "a")
		ran(t, s, ref, 1, true, "one", strings.Repeat("large ", 20_000), "three")
		ran(t, s, ref, 2, false, "runs")
		before, err := s.Execution(t.Context(), ref, 1)
		if err != nil || before.Dropped != (sessions.Dropped{}) {
			t.Fatalf("before: %+v, %v", before, err)
		}
		pass(time.Hour - time.Minute)
		if len(filesIn(t, folder)) != 1 {
			t.Error("the large output went too early")
		}

		pass(upkeepPause + time.Minute)
		const notice = "… 3 outputs of this cell, 117.2 KiB, dropped by retention on 2000-01-01; let code write what must last into a file …"
		wantTold(t, s, ref, 1, 0, "2:"+notice)
		wantTold(t, s, ref, 1, 2, "2:"+notice)
		wantTold(t, s, ref, 1, 3, "")
		wantTold(t, s, ref, 2, 0, "0:runs")
		after, err := s.Execution(t.Context(), ref, 1)
		if err != nil || after.Code != "cell 1" || after.Bytes != 0 || after.Result.Status != kernels.StatusOK ||
			after.Dropped.Outputs != 3 || after.Dropped.Bytes != before.Bytes || after.Dropped.At.IsZero() {
			t.Errorf("after: %+v, %v", after, err)
		}
		second, _ := s.Execution(t.Context(), ref, 2)
		if u, err := s.Usage(t.Context()); err != nil || u.Bytes != second.Bytes || u.Executions != 2 {
			t.Errorf("what is kept is %+v, %v; of the second cell %d bytes", u, err, second.Bytes)
		}
		if files := filesIn(t, folder); len(files) != 0 {
			t.Errorf("files are left: %v", files)
		}

		// Something that the cell has left running prints on.
		if err := s.Commit(t.Context(), ref, printed(1, 3, "late")); err != nil {
			t.Fatal(err)
		}
		wantTold(t, s, ref, 1, 0, "2:"+notice+" 3:late")
		pass(upkeepPause)
		wantTold(t, s, ref, 1, 0, "2:"+strings.Replace(notice, "3 outputs of this cell, 117.2", "4 outputs of this cell, 117.2", 1))
	})
}

func TestCellsAndSessionsGoLast(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, Options{Folder: folder, MaxAge: time.Hour})
		defer closeStore(t, s)
		ref, other := claim(t, s, "a"), claim(t, s, "closed")
		ran(t, s, ref, 1, true, "one")
		ran(t, s, ref, 2, false, "runs")
		ran(t, s, other, 1, true, "one")
		if err := s.Commit(t.Context(), other, sessions.SessionClosed{Closed: time.Now(), Why: "done"}); err != nil {
			t.Fatal(err)
		}
		pass(rowsFactor*time.Hour - time.Minute)
		if u, err := s.Usage(t.Context()); err != nil || u.Executions != 3 || u.Sessions != 2 {
			t.Errorf("too early there are %+v, %v", u, err)
		}
		pass(2*upkeepPause + time.Minute)
		if u, err := s.Usage(t.Context()); err != nil || u.Executions != 1 || u.Sessions != 1 {
			t.Errorf("there are %+v, %v", u, err)
		}
		wantTold(t, s, ref, 2, 0, "0:runs")

		// What the first cell's background work prints is not kept, and nothing else suffers.
		if err := s.Commit(t.Context(), ref, printed(1, 1, strings.Repeat("large ", 20_000)), printed(2, 1, "on")); err != nil {
			t.Errorf("late output of a cell that is gone: %v", err)
		}
		wantTold(t, s, ref, 2, 0, "0:runs 1:on")
		synctest.Wait() // a commit is answered before files are removed
		if files := filesIn(t, folder); len(files) != 0 {
			t.Errorf("its file stays: %v", files)
		}
		found, err := s.Session(t.Context(), sessions.Owner{}, "a")
		if err != nil || found.Executions != 2 {
			t.Errorf("the session counts %d cells, %v", found.Executions, err)
		}
	})
}

// The oldest go first, whoever's they are, and the file gets smaller; what has just ended stays for a while.
func TestHistoryStaysWithinItsSize(t *testing.T) {
	const limit = 4 << 20
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, Options{Folder: folder, MaxBytes: limit})
		defer closeStore(t, s)
		refs := []sessions.SessionRef{claim(t, s, "a"), claim(t, s, "b")}
		text, large := strings.Repeat("x", 50_000), strings.Repeat("large ", 50_000)
		for n := 1; n <= 10; n++ {
			for i, ref := range refs {
				ran(t, s, ref, n, true, append(strings.Split(strings.Repeat(text+" ", 10), " "), fmt.Sprint(large, n, i))...)
			}
			pass(time.Second)
		}
		if size, err := s.size(t.Context()); err != nil || size < 3*limit {
			t.Fatalf("it takes %d bytes, %v", size, err)
		}
		pass(upkeepPause)
		size, err := s.size(t.Context())
		if err != nil || size > limit || size < limit/2 {
			t.Errorf("it takes %d bytes, %v", size, err)
		}
		if u, err := s.Usage(t.Context()); err != nil || u.Disk != size {
			t.Errorf("what is kept is %+v, %v; on the disk it is %d bytes", u, err, size)
		}
		for _, ref := range refs {
			for n := 1; n <= 10; n++ {
				e, err := s.Execution(t.Context(), ref, n)
				if err != nil || n != 8 && (e.Dropped.Outputs > 0) != (n < 8) {
					t.Errorf("of cell %d were dropped %+v, %v", n, e.Dropped, err)
				}
			}
		}
		var pages int
		if err := s.read.QueryRow("PRAGMA freelist_count").Scan(&pages); err != nil || pages != 0 {
			t.Errorf("%d pages are free in the file, %v", pages, err)
		}
		wantNamedFilesOnly(t, s)
	})
}

// When there are no outputs left to drop, code has to go.
func TestCodeAloneStaysWithinTheSize(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, Options{Folder: folder, MaxBytes: 2 << 20})
		defer closeStore(t, s)
		ref := claim(t, s, "a")
		for n := 1; n <= 40; n++ {
			err := s.Commit(t.Context(), ref,
				sessions.ExecutionQueued{Number: n, Code: strings.Repeat("c", 100_000), Queued: time.Now()},
				sessions.ExecutionEnded{Number: n, Ended: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			pass(time.Second)
		}
		pass(upkeepPause)
		left, err := s.Executions(t.Context(), ref, 1, 100, 0)
		if err != nil || len(left) < 10 || len(left) > 20 || left[len(left)-1].Number != 40 {
			t.Errorf("%d cells are left, %v", len(left), err)
		}
	})
}

// What a killed process has left running may be found again, and is left alone for a time; while a process that lives has
// the session, for ever.
func TestAbandonedCellsAreDropped(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		alive := true
		other := limited(t, Options{Folder: folder, Slot: "other"})
		ref := claim(t, other, "a")
		ran(t, other, ref, 1, false, "runs")
		o := Options{Folder: folder, MaxAge: 2 * 24 * time.Hour, Alive: func(string) bool { return alive }}
		s := limited(t, o)
		pass(leftTime + time.Hour)
		wantTold(t, s, ref, 1, 0, "0:runs")
		closeStore(t, s)

		alive = false
		s = limited(t, o)
		defer closeStore(t, s)
		synctest.Wait()
		wantTold(t, s, ref, 1, 0, "0:runs") // the server that starts may find its kernel, however old it is
		if err := other.writer.exec("UPDATE sessions SET used = ?", time.Now().UnixNano()); err != nil {
			t.Fatal(err)
		}
		pass(leftTime - time.Minute)
		wantTold(t, s, ref, 1, 0, "0:runs")
		pass(2 * upkeepPause)
		if got := told(t, s, ref, 1, 0); !strings.HasPrefix(got, "0:… 1 output of this cell, ") {
			t.Errorf("it is told as %q", got)
		}
		pass(rowsFactor*2*24*time.Hour - leftTime)
		if all, err := s.Sessions(t.Context(), sessions.Owner{}); err != nil || len(all) != 0 {
			t.Errorf("sessions are left: %+v, %v", all, err)
		}
		closeStore(t, other)
	})
}

// A cell with many outputs goes in several transactions; a process that is killed in between has told so far, and the
// next goes on.
func TestDroppingInPieces(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claim(t, s, "a")
	texts := strings.Split(strings.TrimSpace(strings.Repeat("x ", 2*dropOutputs+100)), " ")
	ran(t, s, ref, 1, true, texts...)
	err := s.writer.submit(t.Context(), func(w *writer) error {
		d, err := w.dropFirst(1)
		if err != nil || d.outputs != dropOutputs || !d.more {
			t.Errorf("one transaction dropped %+v, %v", d, err)
		}
		return w.tellDropped(1, d, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
	got := told(t, s, ref, 1, 0)
	if !strings.HasPrefix(got, fmt.Sprintf("%d:… %d outputs", dropOutputs-1, dropOutputs)) || strings.Count(got, ":x") != dropOutputs+100 {
		t.Errorf("half dropped it is %.150q", got)
	}
	f.Kill(t, s)

	again := limited(t, Options{Folder: f.path, MaxAge: time.Nanosecond})
	defer closeStore(t, again)
	if err := again.retain(t.Context(), time.Now().Add(2*leftTime), false); err != nil {
		t.Fatal(err)
	}
	e, err := again.Execution(t.Context(), ref, 1)
	if err == nil && (e.Dropped.Outputs != len(texts) || e.Bytes != 0) {
		t.Errorf("in the end %+v", e)
	}
}

// Files that could not be removed because somebody copied them are removed later.
func TestHeldFilesGoLater(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := limited(t, Options{Folder: folder})
		defer closeStore(t, s)
		ref := claim(t, s, "a")
		ran(t, s, ref, 1, true, strings.Repeat("large ", 20_000))
		lock := folderLock(folder)
		if err := lock.RLock(); err != nil {
			t.Fatal(err)
		}
		if err := s.Delete(t.Context(), sessions.Owner{}, "a"); err != nil {
			t.Fatal(err)
		}
		pass(3 * upkeepPause)
		if files := filesIn(t, folder); len(files) != 1 {
			t.Errorf("while it is copied there are %v", files)
		}
		if err := lock.Close(); err != nil {
			t.Fatal(err)
		}
		pass(2 * upkeepPause)
		if files, _ := filepath.Glob(filepath.Join(folder, "blobs", "??", "??", "*")); len(files) != 0 {
			t.Errorf("afterwards there are %v", files)
		}
	})
}
