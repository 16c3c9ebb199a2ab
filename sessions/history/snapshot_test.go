package history

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// copyFiles copies what a snapshot names.
func copyFiles(t *testing.T, snap *Snapshot, from, to string) (n int) {
	t.Helper()
	for f, err := range snap.Files(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		body, err := os.ReadFile(filepath.Join(from, f.Name))
		if err == nil && int64(len(body)) != f.Size {
			t.Errorf("%s has %d bytes, and %d are told", f.Name, len(body), f.Size)
		}
		if err == nil {
			err = os.MkdirAll(filepath.Dir(filepath.Join(to, f.Name)), 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name), body, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// load writes cells to sessions of a store, and deletes some, until it is told to stop. It counts what was acknowledged.
type load struct {
	mu     sync.Mutex
	acked  map[sessions.SessionRef]int
	stop   chan struct{}
	done   sync.WaitGroup
	much   chan struct{} // closed by enough: there is something to lose
	enough func()
	end    func()
}

const loadText = "small"

func loadLarge(ref sessions.SessionRef, number int) string {
	return strings.Repeat(fmt.Sprint(ref, " ", number, " "), 20_000)
}

func startLoad(t *testing.T, s *Store, writers int) *load {
	l := &load{acked: map[sessions.SessionRef]int{}, stop: make(chan struct{}), much: make(chan struct{})}
	l.enough = sync.OnceFunc(func() { close(l.much) })
	l.end = sync.OnceFunc(func() { close(l.stop); l.done.Wait() })
	for w := range writers {
		ref := claim(t, s, fmt.Sprint("writer-", w))
		l.done.Go(func() { l.write(t, s, ref, fmt.Sprint("brief-", w)) })
	}
	t.Cleanup(l.end)
	return l
}

func (l *load) write(t *testing.T, s *Store, ref sessions.SessionRef, brief string) {
	for number := 1; ; number++ {
		select {
		case <-l.stop:
			return
		default:
		}
		gone := claim(t, s, brief)
		ran(t, s, gone, 1, true, loadLarge(gone, number))
		ran(t, s, ref, number, true, loadText, loadLarge(ref, number))
		l.mu.Lock()
		if l.acked[ref] = number; number == 20 {
			l.enough()
		}
		l.mu.Unlock()
		if err := s.Delete(t.Context(), sessions.Owner{}, brief); err != nil {
			t.Error(err)
		}
	}
}

func (l *load) so() map[sessions.SessionRef]int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acked)
}

// While sessions write and others are deleted, a snapshot has all that was acknowledged before it, whole, with its files.
func TestSnapshotUnderLoad(t *testing.T) {
	s := newFolder(t).start(t)
	folder, to := filepath.Dir(s.blobs.root), t.TempDir()
	deleted := claim(t, s, "deleted")
	ran(t, s, deleted, 1, true, loadText, loadLarge(deleted, 1))
	running := claim(t, s, "running")
	ran(t, s, running, 1, false, "begun")
	if err := s.Commit(t.Context(), running, sessions.GenerationBegan{Number: 1, Started: time.Now(), Ref: kernels.Ref{KernelID: "k"}}); err != nil {
		t.Fatal(err)
	}
	l := startLoad(t, s, 3)
	<-l.much
	acked := l.so()
	acked[deleted] = 1
	snap, err := TakeSnapshot(t.Context(), folder, filepath.Join(to, FileName))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Delete(t.Context(), sessions.Owner{}, "deleted"); err != nil { // the snapshot has it
		t.Error(err)
	}
	files := copyFiles(t, snap, folder, to)
	if err := snap.Close(); err != nil {
		t.Error(err)
	}
	l.end()

	copied := limited(t, Options{Folder: to})
	defer closeStore(t, copied)
	for ref, cells := range acked {
		for number := 1; number <= cells; number++ {
			wantTold(t, copied, ref, number, 0, "0:"+loadText+" 1:"+strings.TrimSpace(loadLarge(ref, number)))
		}
	}
	if len(acked) < 2 || files < 20 {
		t.Errorf("of %d sessions %d files were copied", len(acked), files)
	}
	settled(t, copied)
	wantNamedFilesOnly(t, copied)
	left, err := copied.Session(t.Context(), sessions.Owner{}, "running")
	if err != nil || left.Held {
		t.Errorf("what ran is %+v, %v", left, err)
	}
	if g, err := copied.Generations(t.Context(), running); err != nil || len(g) != 1 || g[0].Ended.IsZero() {
		t.Errorf("its kernel is %+v, %v", g, err)
	}
	var result string
	if err := copied.read.QueryRow("PRAGMA integrity_check").Scan(&result); err != nil || result != "ok" {
		t.Errorf("integrity: %s, %v", result, err)
	}
}

// It need not be the data folder whose disk is full.
func TestSnapshotWithoutRoom(t *testing.T) {
	full := explainCopy(&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC})
	if text := fault.Text(full); fault.KindOf(full) != fault.Unavailable || !strings.Contains(text, "the disk to which it goes is full") || strings.Contains(text, "data folder") {
		t.Error(text)
	}
}

func TestSnapshotIsOneFile(t *testing.T) {
	f, _ := closed(t)
	to := t.TempDir()
	path := filepath.Join(to, FileName)
	snap, err := TakeSnapshot(t.Context(), f.path, path)
	if err != nil {
		t.Fatal(err)
	}
	if u, err := snap.Usage(t.Context()); err != nil || u.Sessions != 1 || u.Executions != 1 {
		t.Errorf("it has %+v, %v", u, err)
	}
	if err := snap.Close(); err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(to)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || len(files) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("there are %v, %v, %v", files, err, statErr)
	}
	db, err := connect(path, 1, nil, "deferred")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var vacuum int // so that what is deleted later can be given back
	if err := db.QueryRow("PRAGMA auto_vacuum").Scan(&vacuum); err != nil || vacuum != 2 {
		t.Errorf("auto_vacuum is %d, %v", vacuum, err)
	}
}

func TestSnapshotRefusals(t *testing.T) {
	good, _ := closed(t)
	newer, _ := closed(t)
	setVersionOf(t, newer.path, len(migrations)+1)
	damaged, _ := closed(t)
	if err := os.WriteFile(filepath.Join(damaged.path, FileName), []byte(strings.Repeat("nonsense ", 10_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	there := filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		folder, to string
		kind       fault.Kind
		what       string
	}{
		"no history":           {t.TempDir(), filepath.Join(t.TempDir(), "x"), fault.NotFound, "there is no history"},
		"a newer one":          {newer.path, filepath.Join(t.TempDir(), "x"), fault.Unavailable, "newer cellblock"},
		"a damaged one":        {damaged.path, filepath.Join(t.TempDir(), "x"), fault.Unavailable, "no database"},
		"a file that is there": {good.path, there, fault.Unavailable, "exists"},
	} {
		snap, err := TakeSnapshot(t.Context(), tt.folder, tt.to)
		if err == nil {
			_ = snap.Close()
		}
		if fault.KindOf(err) != tt.kind || !strings.Contains(err.Error(), tt.what) || fault.Hint(err) == "" {
			t.Errorf("%s: %v (%s)", name, err, fault.Hint(err))
		}
	}
}
