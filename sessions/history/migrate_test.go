package history

import (
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// old makes a data folder as a cellblock left it whose schema had a version, with the SQL of that time.
func old(t *testing.T, version int) (folder string, large kernels.Output) {
	t.Helper()
	folder = t.TempDir()
	large = kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat("large ", 20_000)}
	body, err := encodeBody(large)
	if err == nil {
		err = blobs{filepath.Join(folder, "blobs")}.put(blobName(body), body)
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := connect(filepath.Join(folder, FileName), 1, pragmas, "immediate")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for n := 1; n <= version; n++ {
		text, err := os.ReadFile(fmt.Sprintf("testdata/version%d.sql", n))
		if err == nil {
			_, err = db.Exec(strings.ReplaceAll(string(text), "BLOB'", blobName(body)+"'"))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return folder, large
}

// What cellblocks that are out there have written is read by this one, and gone on with. Each version of the schema has
// its file in testdata, which is never changed.
func TestOldDatabasesAreMigrated(t *testing.T) {
	for version := 1; version <= len(migrations); version++ {
		t.Run(fmt.Sprint("version ", version), func(t *testing.T) {
			folder, large := old(t, version)
			s := limited(t, Options{Folder: folder})
			if v, err := schemaVersion(t.Context(), s.read); err != nil || v != len(migrations) {
				t.Errorf("it has version %d, %v", v, err)
			}
			alice, bob := sessions.Owner{Issuer: "https://a", Subject: "alice"}, sessions.Owner{Issuer: "https://a", Subject: "bob"}
			checkOldSessions(t, s, alice, bob)
			checkOldExecutions(t, s, version)
			checkOldOutputs(t, s, large)

			found, err := s.Open(t.Context(), sessions.StoredSession{Owner: alice, ID: "runs", Language: "python"})
			if err != nil || found.Executions != 2 {
				t.Fatalf("opened it is %+v, %v", found, err)
			}
			ran(t, s, 11, 3, true, "on")
			wantTold(t, s, 11, 3, 0, "0:on")
			closeStore(t, s)

			s = limited(t, Options{Folder: folder, MaxAge: time.Hour})
			defer closeStore(t, s)
			if err := s.retain(t.Context(), time.Now(), false); err != nil {
				t.Fatal(err)
			}
			settled(t, s)
			wantNamedFilesOnly(t, s)
			if u, err := s.Usage(t.Context()); err != nil || u.Sessions != 1 || u.Executions != 2 {
				t.Errorf("of what is old is left %+v, %v", u, err) // the cell that nobody ended, and the new one
			}
		})
	}
}

func checkOldSessions(t *testing.T, s *Store, alice, bob sessions.Owner) {
	t.Helper()
	when := func(nanos int64) time.Time { return time.Unix(0, nanos).UTC() }
	for _, want := range []sessions.StoredSession{
		{Ref: 11, Owner: alice, ID: "runs", Workspace: "abcdefghijklmnop", Language: "python", Created: when(1700000000000000001),
			Used: when(1700000009000000000), Generations: 2, Executions: 2, Bytes: 100128},
		{Ref: 12, Owner: bob, ID: "done", Language: "bash", Created: when(1700000000000000000), Used: when(1700000002000000000),
			Closed: when(1700000002000000000), Why: "nobody used it", Executions: 1},
	} {
		if got, err := s.Session(t.Context(), want.Owner, want.ID); err != nil || got != want {
			t.Errorf("session %s is\n%+v, %v, want\n%+v", want.ID, got, err, want)
		}
	}
	generations, err := s.Generations(t.Context(), 11)
	if err != nil || len(generations) != 2 {
		t.Fatalf("generations: %+v, %v", generations, err)
	}
	if g := generations[0]; g.Ref.KernelID != "k1" || string(g.Ref.Data) != `{"pid":7}` || g.Seq != 4 || g.Why != "out of memory" ||
		!g.Ended.Equal(when(1700000004000000000)) || !generations[1].Ended.IsZero() {
		t.Errorf("generations: %+v", generations)
	}
}

func checkOldExecutions(t *testing.T, s *Store, version int) {
	t.Helper()
	first, err := s.Execution(t.Context(), 11, 1)
	result := sessions.Result{Duration: time.Second, Result: kernels.Result{
		Status: kernels.StatusError, ExecutionCount: 1, Error: &kernels.ExecError{Name: "E", Value: "v", Traceback: []string{"l"}},
	}}
	want := sessions.StoredExecution{
		Number: 1, Generation: 1, MsgID: "m-1", Code: "print(1)", Caller: "a client", Timeout: 10 * time.Minute, Preamble: "first this",
		Queued: first.Queued, Started: first.Started, Ended: first.Ended, Result: result, Outputs: 3, Own: 3, Bytes: 100128,
	}
	if err != nil || !reflect.DeepEqual(first, want) || first.Ended.UnixNano() != 1700000003000000000 {
		t.Errorf("the first cell is\n%+v, %v, want\n%+v", first, err, want)
	}
	second, err := s.Execution(t.Context(), 11, 2)
	if err != nil || second.Code != "print(2)" || !second.Ended.IsZero() || second.Restores != min(version-1, 1) || (second.File == "a script.py") != (version >= 7) ||
		(second.Args == "--n 4") != (version >= 9) {
		t.Errorf("the second cell is %+v, %v", second, err)
	}
	other, err := s.Execution(t.Context(), 12, 1)
	if err != nil || other.Failure == nil || other.Failure.Kind != fault.Cancelled || other.Failure.Hint != "try" {
		t.Errorf("the other session's cell is %+v, %v", other, err)
	}
}

func checkOldOutputs(t *testing.T, s *Store, large kernels.Output) {
	t.Helper()
	large.Seq = 3
	want := []kernels.Output{
		{Kind: kernels.OutputStream, Stream: "stdout", Text: "one\n", Seq: 2, Time: time.Unix(0, 1700000002000000001).UTC()},
		large,
		{Kind: kernels.OutputError, Seq: 4, Error: &kernels.ExecError{Name: "E", Value: "v", Traceback: []string{"l"}}},
	}
	n := 0
	for out, err := range s.Outputs(t.Context(), 11, 1, 0) {
		if err != nil || n >= len(want) || !reflect.DeepEqual(out.Output, want[n]) {
			t.Errorf("output %d is %.200s, %v", out.Index, fmt.Sprintf("%+v", out.Output), err)
		}
		n++
	}
	if n != len(want) {
		t.Errorf("%d outputs", n)
	}
}

// describe is all that a database has: its schema, and the rows of its executions.
func describe(t *testing.T, folder string) (all []string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(folder, FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, query := range []string{
		"SELECT name || COALESCE(sql, '') FROM sqlite_master ORDER BY name", "SELECT id || code || result FROM executions ORDER BY id",
		"SELECT 'version ' || version FROM schema_version",
	} {
		rows, err := collect(t.Context(), db, func(row scanner) (text string, err error) {
			err = row.Scan(&text)
			return text, err
		}, query)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, rows...)
	}
	return all
}

// A migration that fails half-way leaves what was there, and what a newer program has written is not touched.
func TestWhatCannotBeMigratedStays(t *testing.T) {
	newer := len(migrations) + 4
	for name, tt := range map[string]struct{ spoil, what, hint string }{
		"a column is there already": {"ALTER TABLE executions ADD COLUMN dropped_to INTEGER", "duplicate column name", "data folder"},
		"a newer version": {fmt.Sprint("UPDATE schema_version SET version = ", newer),
			fmt.Sprintf("it has version %d, and this program knows %d", newer, len(migrations)), "newer cellblock again"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, _ := old(t, 1)
			db, err := sql.Open("sqlite", filepath.Join(folder, FileName))
			if err == nil {
				_, err = db.Exec(tt.spoil)
			}
			if err == nil {
				err = db.Close()
			}
			if err != nil {
				t.Fatal(err)
			}
			before := describe(t, folder)
			s, err := Open(t.Context(), Options{Folder: folder, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				closeStore(t, s)
			}
			wantTrouble(t, err, tt.what, tt.hint)
			if after := describe(t, folder); !reflect.DeepEqual(after, before) {
				t.Errorf("it was\n%q\nand is\n%q", before, after)
			}
		})
	}
}
