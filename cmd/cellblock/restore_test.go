//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions/history"
)

// archived returns a backup of a data folder as an archive.
func archived(t *testing.T, data string) []byte {
	t.Helper()
	dest := filepath.Join(t.TempDir(), "b.tar")
	b := backup{data: data, dest: dest, withSecrets: true, report: io.Discard}
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(dest)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// opened lets what was restored be removed by who is not root.
func opened(t *testing.T, folder string) {
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(folder, aWorkspace, "closed"), 0o700)
		_ = os.Chmod(filepath.Join(folder, aWorkspace, "fixed"), 0o700)
	})
}

func TestRestore(t *testing.T) {
	kernelstest.Need(t, os.Geteuid() == 0, "root, who can read all of it")
	data := dataFolder(t)
	if err := os.Chown(data, 12, 34); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	folder := filepath.Join(dir, "folder")
	b := backup{data: data, dest: folder, report: io.Discard}
	if err := b.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	opened(t, folder)
	archive, file := archived(t, data), filepath.Join(dir, "b.tar")
	if err := os.WriteFile(file, archive, 0o600); err != nil {
		t.Fatal(err)
	}
	secrets := " dev_private_key.pem dev_public_key.pem dev_token.txt"
	for name, tt := range map[string]struct {
		source  string
		secrets bool
	}{
		"a folder": {folder, false}, "an archive": {file, true}, "standard input": {fromStdin, true},
	} {
		t.Run(name, func(t *testing.T) {
			var said bytes.Buffer
			to := filepath.Join(t.TempDir(), "new", "data")
			opened(t, to)
			r := restore{source: tt.source, data: to, report: &said, stdin: bytes.NewReader(archive)}
			if err := r.run(t.Context()); err != nil {
				t.Fatal(fault.Text(err))
			}
			want := "blobs cellblock.db images images/names images/names/00.ml workspaces  /closed /closed/secret /deep /deep/er /deep/er/data.bin /fixed /fixed/file /link /odd\nname \xff… /out /plain.txt .json"
			if tt.secrets {
				want = strings.Replace(want, "cellblock.db", "cellblock.db"+secrets, 1)
				want = strings.Replace(want, " workspaces", " mcp_session_key workspaces", 1)
			}
			if got := listing(t, to); got != want {
				t.Errorf("it has\n%q, want\n%q", got, want)
			}
			if strings.Contains(said.String(), "new token") == tt.secrets || !strings.Contains(said.String(), "--data-dir "+to) {
				t.Errorf("it says\n%s", &said)
			}
			info, err := os.Stat(to)
			if err != nil {
				t.Fatal(err)
			}
			if at := info.Sys().(*syscall.Stat_t); at.Uid != 12 || at.Gid != 34 {
				t.Errorf("the folder belongs to %d:%d", at.Uid, at.Gid)
			}
			checkHistory(t, to)
			checkFiles(t, to)
		})
	}
}

// entries makes an archive.
func entries(t *testing.T, of ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range of {
		if h.Mode = 0o600; w.WriteHeader(h) != nil {
			t.Fatal(h.Name)
		}
		if _, err := w.Write(make([]byte, h.Size)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// What cannot be restored is refused in words that help, and leaves the data folder as it was.
func TestRestoreRefusals(t *testing.T) {
	data := dataFolder(t)
	if os.Geteuid() != 0 {
		_ = os.Chmod(filepath.Join(data, aWorkspace, "closed"), 0o700)
	}
	whole := archived(t, data)
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	_, _ = z.Write(whole)
	_ = z.Close()
	ended := bytes.TrimRight(whole, "\x00")
	between := whole[:(len(ended)+511)/512*512]
	db := &tar.Header{Name: history.FileName, Size: 3}
	for name, tt := range map[string]struct {
		archive []byte
		there   string
		kind    fault.Kind
		want    string
	}{
		"a history is there":      {whole, "cellblock.db", fault.Conflict, "nothing is overwritten\nHint: Stop the server, put that folder aside"},
		"a key is there":          {whole, "dev_private_key.pem", fault.Conflict, "has dev_private_key.pem already"},
		"cut off in a file":       {whole[:len(whole)/2], "", fault.Invalid, "ake another one"},
		"cut off between two":     {between, "", fault.Invalid, "unexpected EOF"},
		"compressed":              {zipped.Bytes(), "", fault.Invalid, "not compressed"},
		"nothing":                 {nil, "", fault.Invalid, "ake another one"},
		"an archive of something": {entries(t, &tar.Header{Name: "x", Size: 2000}), "", fault.Invalid, "none of cellblock's"},
		"of a failed backup":      {entries(t, db, &tar.Header{Name: incomplete, Size: 1}), "", fault.Invalid, "what made it has failed"},
		"a way out":               {entries(t, db, &tar.Header{Name: "../x", Size: 1}), "", fault.Invalid, `"../x"`},
		"another way out":         {entries(t, db, &tar.Header{Name: "/tmp/x", Size: 1}), "", fault.Invalid, `"/tmp/x"`},
		"a hard link":             {entries(t, db, &tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}), "", fault.Invalid, `"x"`},
		"a way through a link": {entries(t, &tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "/tmp"}, &tar.Header{Name: "l/x", Size: 1}), "",
			fault.Unavailable, "nothing was restored"},
		"no database":     {entries(t, db), "", fault.Unavailable, "no database"},
		"a newer history": {newerArchive(t), "", fault.Unavailable, "from a newer cellblock"},
	} {
		t.Run(name, func(t *testing.T) {
			to := t.TempDir()
			if tt.there != "" {
				if err := os.WriteFile(filepath.Join(to, tt.there), []byte("mine"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			before := listing(t, to)
			r := restore{source: fromStdin, data: to, report: io.Discard, stdin: bytes.NewReader(tt.archive)}
			if err := r.run(t.Context()); fault.KindOf(err) != tt.kind || !strings.Contains(fault.Text(err), tt.want) {
				t.Errorf("got %v: %s", fault.KindOf(err), fault.Text(err))
			}
			if left := listing(t, to); left != before {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

func TestRestoreFromNowhere(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	kernelstest.Need(t, err == nil, "a terminal")
	defer terminal.Close()
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		source string
		kind   fault.Kind
		want   string
	}{
		"no such file":    {filepath.Join(empty, "b.tar"), fault.NotFound, "cellblock backup"},
		"an empty folder": {empty, fault.Invalid, "is no backup"},
		"a terminal":      {fromStdin, fault.Invalid, "cellblock restore - <"},
	} {
		r := restore{source: tt.source, data: filepath.Join(empty, "data"), report: io.Discard, stdin: terminal}
		if err := r.run(t.Context()); fault.KindOf(err) != tt.kind || !strings.Contains(fault.Text(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A restore that is stopped has restored nothing, and takes away what one that was killed has left.
func TestRestoreStopped(t *testing.T) {
	data := dataFolder(t)
	if os.Geteuid() != 0 {
		_ = os.Chmod(filepath.Join(data, aWorkspace, "closed"), 0o700)
	}
	to := t.TempDir()
	if err := os.MkdirAll(filepath.Join(to, stagePrefix+"killed", "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := restore{source: fromStdin, data: to, report: io.Discard, stdin: bytes.NewReader(archived(t, data))}
	if err := r.run(ctx); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("stopped: %v", err)
	}
	if left := listing(t, to); left != "" {
		t.Errorf("left behind: %q", left)
	}
}

// Of a folder that cannot be read to its end, nothing is restored.
func TestRestoreOfAPart(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root reads all")
	}
	data, to := dataFolder(t), t.TempDir()
	r := restore{source: data, data: to, report: io.Discard}
	if err := r.run(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Text(err), "nothing was restored: 1 path of "+data+" cannot be read") {
		t.Errorf("%v", fault.Text(err))
	}
	if left := listing(t, to); left != "" {
		t.Errorf("left behind: %q", left)
	}
}

// newerArchive is a backup that a newer cellblock has made.
func newerArchive(t *testing.T) []byte {
	t.Helper()
	dir := t.TempDir()
	store, err := history.Open(t.Context(), history.Options{Folder: dir, Logger: slog.New(slog.DiscardHandler)})
	if err == nil {
		err = store.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, history.FileName))
	if err == nil {
		_, err = db.Exec("UPDATE schema_version SET version = version + 1")
		err = errors.Join(err, db.Close())
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	if err := errors.Join(err, w.AddFS(os.DirFS(dir)), w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
