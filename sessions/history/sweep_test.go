package history

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// settled waits until a store has tidied up.
func settled(t *testing.T, s *Store) {
	t.Helper()
	s.tidying.Wait()
	if err := s.writer.submit(t.Context(), func(*writer) error { return nil }); err != nil { // behind the last removal
		t.Fatal(err)
	}
}

// filesIn returns the paths of all files below a folder.
func filesIn(t *testing.T, folder string) (paths []string) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(folder, "blobs", "??", "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// wantNamedFilesOnly checks that the blobs of a folder are those that rows name.
func wantNamedFilesOnly(t *testing.T, s *Store) {
	t.Helper()
	named, err := collect(t.Context(), s.read, func(row scanner) (name string, err error) {
		err = row.Scan(&name)
		return name, err
	}, "SELECT DISTINCT blob FROM outputs WHERE blob IS NOT NULL ORDER BY blob")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, path := range filesIn(t, filepath.Dir(s.blobs.root)) {
		if blobFile.MatchString(filepath.Base(path)) {
			found = append(found, filepath.Base(path))
		}
	}
	slices.Sort(found)
	if !slices.Equal(found, named) {
		t.Errorf("%d files are there, %d are named", len(found), len(named))
	}
}

// Files that no row names are swept when the store is opened, with a grace for what is being written.
func TestSweepOfFiles(t *testing.T) {
	f, ref := closed(t)
	b := blobs{filepath.Join(f.path, "blobs")}
	plant := func(path string, age time.Duration) string {
		t.Helper()
		when := time.Now().Add(-age)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for i := range 2*sweepFiles + 10 { // as a killed process leaves them
		body := fmt.Appendf(nil, "never committed %d", i)
		if err := b.put(blobName(body), body); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Dir(filesIn(t, f.path)[0])
	gone := plant(filepath.Join(dir, newFile+"1"), 2*halfWritten)
	stays := []string{plant(filepath.Join(dir, newFile+"2"), 0), plant(filepath.Join(dir, "notes.txt"), 2*halfWritten)}

	s := f.start(t)
	settled(t, s)
	wantNamedFilesOnly(t, s)
	if _, err := os.Stat(gone); !os.IsNotExist(err) {
		t.Errorf("what was half written long ago: %v", err)
	}
	for _, path := range stays {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	for out, err := range s.Outputs(t.Context(), ref, 1, 0) {
		if err != nil {
			t.Errorf("output %d: %v", out.Index, err)
		}
	}
}

// A commit that contradicts what is there leaves no file.
func TestRefusedCommitLeavesNoFile(t *testing.T) {
	s := newFolder(t).start(t)
	ref := claimed(t, s)
	for name, change := range map[string]sessions.Change{
		"an index twice":   sessions.OutputsKept{Number: 1, Outputs: []kernels.Output{{Text: strings.Repeat("z", 100_000)}}},
		"no such cell":     sessions.OutputsKept{Number: 7, Outputs: []kernels.Output{{Text: strings.Repeat("y", 100_000)}}},
		"a number of cell": sessions.ExecutionQueued{Number: 1, Queued: time.Now()},
	} {
		if name == "an index twice" {
			keep(t, s, ref, 0, "a")
		}
		large := sessions.OutputsKept{Number: 1, First: 9, Outputs: []kernels.Output{{Text: strings.Repeat("x", 100_000)}}}
		if err := s.Commit(t.Context(), ref, large, change); fault.KindOf(err) != fault.Conflict {
			t.Errorf("%s: %v", name, err)
		}
	}
	settled(t, s)
	if files := filesIn(t, filepath.Dir(s.blobs.root)); len(files) != 0 {
		t.Errorf("%d files are left", len(files))
	}
}

// Stores that are opened, and so sweep, while others write and delete the very same outputs take nothing from them.
func TestSweepBesideWriters(t *testing.T) {
	const writers, batches = 3, 40
	f := newFolder(t)
	refs := make([]sessions.SessionRef, writers)
	stores := make([]*Store, writers)
	body := func(i int) string { return strings.Repeat(fmt.Sprintf("shared %d ", i), 10_000) }
	var working, sweeping sync.WaitGroup
	for w := range writers {
		stores[w] = f.start(t)
		working.Go(func() { refs[w] = writeAndDelete(t, stores[w], fmt.Sprint("s", w), batches, body) })
	}
	done := make(chan struct{})
	sweeping.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			s, err := Open(t.Context(), Options{Folder: f.path, Slot: "sweeper", Alive: f.alive, Logger: stores[0].log})
			if err != nil {
				t.Error(err)
				return
			}
			settled(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	working.Wait()
	close(done)
	sweeping.Wait()
	for w, s := range stores {
		n := 0
		for out, err := range s.Outputs(t.Context(), refs[w], 1, 0) {
			if err != nil || out.Output.Text != body(out.Index) {
				t.Errorf("writer %d, output %d: %v", w, out.Index, err)
			}
			n++
		}
		if n != batches {
			t.Errorf("writer %d: %d outputs", w, n)
		}
	}
	for _, s := range stores {
		settled(t, s)
	}
	wantNamedFilesOnly(t, stores[0])
}

// writeAndDelete commits the same outputs to a session that it keeps and to one that it deletes, one after another.
func writeAndDelete(t *testing.T, s *Store, id string, batches int, body func(int) string) sessions.SessionRef {
	begin := func(id string) sessions.SessionRef {
		found, err := s.Open(t.Context(), sessions.StoredSession{ID: id, Language: "python", Created: time.Now()})
		if err == nil {
			err = s.Commit(t.Context(), found.Ref, sessions.ExecutionQueued{Number: 1, Queued: time.Now()})
		}
		if err != nil {
			t.Error(err)
		}
		return found.Ref
	}
	put := func(ref sessions.SessionRef, i int) {
		outs := []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: body(i)}}
		if err := s.Commit(t.Context(), ref, sessions.OutputsKept{Number: 1, First: i, Outputs: outs}); err != nil {
			t.Error(err)
		}
	}
	kept := begin(id)
	for i := range batches {
		put(begin(id+"-brief"), i)
		if err := s.Delete(t.Context(), sessions.Owner{}, id+"-brief"); err != nil {
			t.Error(err)
		}
		put(kept, i)
	}
	return kept
}
