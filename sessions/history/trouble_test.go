package history

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

func needDisk(t *testing.T, err error) {
	t.Helper()
	kernelstest.Need(t, err == nil, "root, to mount a small disk")
}

// claimed returns a session with one execution.
func claimed(t *testing.T, s *Store) sessions.SessionRef {
	t.Helper()
	found, err := s.Open(t.Context(), sessions.StoredSession{ID: "s", Language: "python", Created: time.Now()})
	if err == nil {
		err = s.Commit(t.Context(), found.Ref, sessions.ExecutionQueued{Number: 1, Queued: time.Now()})
	}
	if err != nil {
		t.Fatal(err)
	}
	return found.Ref
}

func keep(t *testing.T, s *Store, ref sessions.SessionRef, first int, texts ...string) {
	t.Helper()
	kept := sessions.OutputsKept{Number: 1, First: first}
	for _, text := range texts {
		kept.Outputs = append(kept.Outputs, kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text})
	}
	if err := s.Commit(t.Context(), ref, kept); err != nil {
		t.Fatal(err)
	}
}

// wantTrouble checks that an error tells the operator what is wrong and what to do.
func wantTrouble(t *testing.T, err error, what, hint string) {
	t.Helper()
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), what) || !strings.Contains(fault.Hint(err), hint) {
		t.Errorf("the error is %v\nhint: %s\nwant %q and the hint %q", err, fault.Hint(err), what, hint)
	}
}

// closed returns a folder with a store in it that was closed, and its session.
func closed(t *testing.T) (*folder, sessions.SessionRef) {
	t.Helper()
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	keep(t, s, ref, 0, "a", strings.Repeat("b", 100_000), "c")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return f, ref
}

func openFolder(path string) (*Store, error) {
	return Open(context.Background(), Options{Folder: path, Logger: slog.New(slog.DiscardHandler)})
}

func TestDamagedDatabase(t *testing.T) {
	t.Run("not a database", func(t *testing.T) {
		f, _ := closed(t)
		if err := os.WriteFile(filepath.Join(f.path, FileName), []byte(strings.Repeat("nonsense ", 10_000)), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := openFolder(f.path)
		wantTrouble(t, err, "no database", "backup")
		wantTrouble(t, Check(t.Context(), f.path), "no database", "backup")
	})
	t.Run("damaged in the middle", func(t *testing.T) {
		f, ref := closed(t)
		path := filepath.Join(f.path, FileName)
		file, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		info, _ := file.Stat()
		for at := int64(4096); at < info.Size(); at += 4096 {
			if _, err := file.WriteAt([]byte(strings.Repeat("\xa5", 4096)), at); err != nil {
				t.Fatal(err)
			}
		}
		file.Close()
		s, err := openFolder(f.path)
		if err == nil {
			defer s.Close()
			err = s.Commit(t.Context(), ref, sessions.ExecutionQueued{Number: 2, Queued: time.Now()})
		}
		wantTrouble(t, err, "damaged", "backup")
	})
	t.Run("cut off", func(t *testing.T) {
		f, _ := closed(t)
		if err := os.Truncate(filepath.Join(f.path, FileName), 5000); err != nil {
			t.Fatal(err)
		}
		s, err := openFolder(f.path)
		if err == nil {
			defer s.Close()
			_, err = s.Open(t.Context(), sessions.StoredSession{ID: "s", Created: time.Now()})
		}
		wantTrouble(t, err, "damaged", "backup")
	})
}

func TestNewerAndOlderDatabases(t *testing.T) {
	f, ref := closed(t)
	setVersionOf(t, f.path, len(migrations)+1)
	_, err := openFolder(f.path)
	wantTrouble(t, err, "newer cellblock", "--data-dir")
	wantTrouble(t, Check(t.Context(), f.path), "newer cellblock", "--data-dir")
	setVersionOf(t, f.path, len(migrations))
	if err := Check(t.Context(), f.path); err != nil {
		t.Errorf("this program's own version: %v", err)
	}

	db, err := connect(filepath.Join(f.path, FileName), 1, pragmas, "immediate")
	if err != nil {
		t.Fatal(err)
	}
	next := append(migrations[:len(migrations):len(migrations)], "ALTER TABLE sessions ADD COLUMN note TEXT NOT NULL DEFAULT 'old'")
	broken := append(next[:len(next):len(next)], "ALTER TABLE sessions ADD COLUMN more TEXT; INSERT INTO nowhere VALUES (1)")
	if _, err := migrate(t.Context(), db, broken); err == nil {
		t.Error("a migration that fails succeeded")
	}
	if v, _ := schemaVersion(t.Context(), db); v != len(migrations) {
		t.Errorf("a migration that failed left version %d", v)
	}
	if was, err := migrate(t.Context(), db, next); err != nil || was != len(migrations) {
		t.Fatalf("an older database: %d, %v", was, err)
	}
	var note string
	if err := db.QueryRow("SELECT note FROM sessions WHERE id = ?", ref).Scan(&note); err != nil || note != "old" {
		t.Errorf("after the migration: %q, %v", note, err)
	}
	if v, _ := schemaVersion(t.Context(), db); v != len(next) {
		t.Errorf("it left version %d", v)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Whoever brings a history up to date is told, as there is no simple way back; nobody else is.
func TestANewFormIsTold(t *testing.T) {
	folder := t.TempDir()
	db, err := connect(filepath.Join(folder, FileName), 1, pragmas, "immediate")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrate(t.Context(), db, migrations[:len(migrations)-1]); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, at := range []struct {
		folder string
		told   bool
	}{{folder, true}, {folder, false}, {t.TempDir(), false}} {
		var log bytes.Buffer
		s, err := Open(t.Context(), Options{Folder: at.folder, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(log.String(), "the history has a new form") != at.told {
			t.Errorf("want it told: %v, got %q", at.told, log.String())
		}
	}
}

// Whoever only asks whether a history can be used makes none, and finds no fault with one that is only begun.
func TestCheckMakesNoHistory(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, FileName)
	if err := Check(t.Context(), folder); err != nil {
		t.Errorf("without a history: %v", err)
	}
	if _, err := os.Stat(file); !os.IsNotExist(err) {
		t.Errorf("its file: %v", err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Check(t.Context(), folder); err != nil {
		t.Errorf("one that is only begun: %v", err)
	}
	if info, err := os.Stat(file); err != nil || info.Size() != 0 {
		t.Errorf("it was changed: %v, %v", info, err)
	}
}

func setVersionOf(t *testing.T, folder string, version int) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(folder, FileName))
	if err == nil {
		_, err = db.Exec("UPDATE schema_version SET version = ?", version)
	}
	if err == nil {
		err = db.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestLockedDatabase(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	if err := s.writer.exec("PRAGMA busy_timeout = 50"); err != nil {
		t.Fatal(err)
	}
	other, err := connect(filepath.Join(f.path, FileName), 1, nil, "immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	tx, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	err = s.Commit(t.Context(), ref, sessions.ExecutionQueued{Number: 2, Queued: time.Now()})
	wantTrouble(t, err, "locked by another program", "cellblock.db")
	if s.Health() == nil {
		t.Error("Health is fine while nothing can be written")
	}
	if _, err := s.Execution(t.Context(), ref, 1); err != nil {
		t.Errorf("reading meanwhile: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(t.Context(), ref, sessions.ExecutionQueued{Number: 2, Queued: time.Now()}); err != nil {
		t.Errorf("after the lock was given back: %v", err)
	}
	if err := s.Health(); err != nil {
		t.Errorf("Health after that: %v", err)
	}
}

func TestFolderThatCannotBeWritten(t *testing.T) {
	_, err := openFolder(filepath.Join(t.TempDir(), "missing"))
	wantTrouble(t, err, "the history in the data folder cannot be used", "data folder")
}

func TestBlobs(t *testing.T) {
	f, ref := closed(t)
	files, err := filepath.Glob(filepath.Join(f.path, "blobs", "??", "??", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v, %v", files, err)
	}
	if info, _ := os.Stat(files[0]); info.Mode().Perm() != 0o600 || !strings.HasPrefix(filepath.Base(files[0]), filepath.Base(filepath.Dir(filepath.Dir(files[0])))) {
		t.Errorf("%s has mode %v", files[0], info.Mode())
	}
	s := f.start(t)
	read := func() (texts []string, errs []error) {
		for out, err := range s.Outputs(t.Context(), ref, 1, 0) {
			if err != nil {
				errs = append(errs, err)
			}
			texts = append(texts, out.Output.Text)
		}
		return texts, errs
	}
	if err := os.WriteFile(files[0], []byte("something else"), 0o600); err != nil {
		t.Fatal(err)
	}
	texts, errs := read()
	if len(texts) != 3 || texts[2] != "c" || len(errs) != 1 {
		t.Fatalf("with a damaged file: %d outputs, %v", len(texts), errs)
	}
	wantTrouble(t, errs[0], "damaged", "backup")
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	_, errs = read()
	wantTrouble(t, errs[0], "missing", "backup")

	// The same output once more mends both.
	if _, err := s.Open(t.Context(), sessions.StoredSession{ID: "s", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	keep(t, s, ref, 3, strings.Repeat("b", 100_000))
	if texts, errs := read(); len(errs) != 0 || len(texts) != 4 || texts[1] != texts[3] {
		t.Errorf("after it was written again: %v", errs)
	}
	if err := s.Delete(t.Context(), sessions.Owner{}, "s"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(files[0]); !os.IsNotExist(err) {
		t.Errorf("the deleted session's file: %v", err)
	}
}

// A file that goes away between being written and being named is written again, whoever took it away.
func TestBlobReclaimedBeforeItIsNamed(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	change, err := s.prepareOutputs(sessions.OutputsKept{Number: 1, Outputs: []kernels.Output{{Text: strings.Repeat("x", 100_000)}}})
	if err != nil {
		t.Fatal(err)
	}
	row := change.(preparedOutputs).rows[0]
	if err := s.writer.submit(t.Context(), func(w *writer) error { return w.removeUnnamed(row.blob) }); err != nil {
		t.Fatal(err)
	}
	if s.blobs.has(row.blob, len(row.body)) {
		t.Fatal("it was not reclaimed")
	}
	err = s.writer.submit(t.Context(), func(w *writer) error {
		c := commit{writer: w, session: ref, holder: s.holder}
		return c.apply(change)
	})
	if err != nil || !s.blobs.has(row.blob, len(row.body)) {
		t.Errorf("after the commit: %v", err)
	}
}

func TestOddFolders(t *testing.T) {
	for _, name := range []string{"a b", "50%25", "what?x=1&y", "hash#tag", "ünï", "a;b'c\"d"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		s, err := openFolder(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if err := s.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		info, err := os.Stat(filepath.Join(dir, FileName))
		if err != nil || info.Size() == 0 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the database is not there: %v", name, err)
		}
	}
}

func TestDeletingGivesTheDiskBack(t *testing.T) {
	s := newFolder(t).start(t)
	ref := claimed(t, s)
	pages := func() (n int) {
		if err := s.read.QueryRow("PRAGMA page_count").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := pages()
	for i := range 100 {
		keep(t, s, ref, i, strings.Repeat("x", 60_000))
	}
	full := pages()
	if err := s.Delete(t.Context(), sessions.Owner{}, "s"); err != nil {
		t.Fatal(err)
	}
	if after := pages(); full < 1000 || after > before+10 {
		t.Errorf("%d pages, full %d, after the deletion %d", before, full, after)
	}
}

// A deletion that a killed process has not finished is finished by the next.
func TestDeletionIsFinished(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	keep(t, s, ref, 0, "a", strings.Repeat("b", 100_000))
	err := s.writer.submit(t.Context(), func(w *writer) error {
		_, err := s.hide(w, sessions.Owner{}, "s")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	f.Kill(t, s)
	s = f.start(t)
	s.tidying.Wait()
	var rows int
	if err := s.read.QueryRow("SELECT (SELECT COUNT(*) FROM sessions) + (SELECT COUNT(*) FROM outputs)").Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows are left, %v", rows, err)
	}
}

func TestCloseEndsWhoWaits(t *testing.T) {
	f := newFolder(t)
	s := f.start(t)
	ref := claimed(t, s)
	ended := make(chan error)
	go func() {
		n := 2
		for {
			if err := s.Commit(context.Background(), ref, sessions.ExecutionQueued{Number: n, Queued: time.Now()}); err != nil {
				ended <- err
				return
			}
			n++
		}
	}()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	wantTrouble(t, <-ended, "closed", "")
}
