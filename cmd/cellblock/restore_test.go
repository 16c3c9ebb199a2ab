//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
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
		if h.Mode = 0o700; w.WriteHeader(h) != nil {
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

func folder(name string) *tar.Header {
	return &tar.Header{Name: name + "/", Typeflag: tar.TypeDir}
}

func link(name, to string) *tar.Header {
	return &tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to}
}

// sparse is an archive of a file that is nothing but a hole, which package tar reads but does not write.
func sparse(t *testing.T, size int64) []byte {
	t.Helper()
	records := ""
	for _, record := range []string{"GNU.sparse.major=0", "GNU.sparse.minor=1", "GNU.sparse.name=big", "GNU.sparse.numblocks=1",
		fmt.Sprintf("GNU.sparse.size=%d", size), fmt.Sprintf("GNU.sparse.map=%d,0", size)} {
		record = " " + record + "\n"
		n := len(record) + 2
		records += strconv.Itoa(n) + record
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range []*tar.Header{{Name: "records", Size: int64(len(records)), Mode: 0o600}, {Name: "big", Mode: 0o600}} {
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, records[:h.Size]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	archive := b.Bytes()
	archive[156] = tar.TypeXHeader
	sum := int(' ') * 8
	for i, c := range archive[:512] {
		if i < 148 || i >= 156 {
			sum += int(c)
		}
	}
	copy(archive[148:], fmt.Sprintf("%06o\x00 ", sum))
	if h, err := tar.NewReader(bytes.NewReader(archive)).Next(); err != nil || h.Name != "big" || h.Size != size {
		t.Fatalf("%+v, %v", h, err)
	}
	return archive
}

// A folder is read through no links but those that backups have: they would lead to what is no part of it.
func TestRestoreOfAFolderWithLinks(t *testing.T) {
	for name, to := range map[string]string{"dev_token.txt": "/etc/passwd", "blobs/aa": "/etc", "workspaces/abcdefghijklmnop.json": "/etc/passwd"} {
		t.Run(name, func(t *testing.T) {
			from, into := dataFolder(t), t.TempDir()
			at := filepath.Join(from, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.RemoveAll(at), os.Symlink(to, at)); err != nil {
				t.Fatal(err)
			}
			r := restore{source: from, data: into, report: io.Discard}
			if err := r.run(t.Context()); fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), name) {
				t.Errorf("got %v", err)
			}
			if left := listing(t, into); left != "" {
				t.Errorf("left behind: %q", left)
			}
		})
	}
}

// What users' files are is restored as it is, links that lead out of their workspace too; programs that would run as their owner are not.
func TestRestoreOfUsersFiles(t *testing.T) {
	dir := t.TempDir()
	out, err := newFolderArchive(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := restore{out: out, links: map[string]bool{}}
	for _, h := range []*tar.Header{folder("workspaces"), folder(aWorkspace), link(aWorkspace+".from", "nnnnnnnnnnnnnnnn"), link(aWorkspace+"/out", "/etc/passwd"),
		{Name: aWorkspace + "/program", Typeflag: tar.TypeReg, Mode: 0o6755}} {
		if h.Typeflag == tar.TypeDir {
			h.Mode = 0o3777
		}
		if h.Uid, h.Gid = os.Geteuid(), os.Getegid(); r.add(h, strings.NewReader("")) != nil {
			t.Fatal(h.Name)
		}
	}
	if err := out.close(); err != nil {
		t.Fatal(err)
	}
	in := filepath.Join(out.path(), aWorkspace)
	if to, err := os.Readlink(filepath.Join(in, "out")); err != nil || to != "/etc/passwd" {
		t.Errorf("%q, %v", to, err)
	}
	for name, want := range map[string]fs.FileMode{"program": 0o755, ".": fs.ModeDir | 0o777} {
		if info, err := os.Stat(filepath.Join(in, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
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
		"a way through a link":    {entries(t, folder("workspaces"), folder(aWorkspace), link(aWorkspace+"/l", "/tmp"), &tar.Header{Name: aWorkspace + "/l/x", Size: 1}), "", fault.Invalid, `l/x"`},
		"a way through a link that stays": {entries(t, folder("workspaces"), folder(aWorkspace), link(aWorkspace+"/l", ".."), &tar.Header{Name: aWorkspace + "/l/./x", Size: 1}), "",
			fault.Invalid, `x"`},
		"a history elsewhere":        {entries(t, link(history.FileName, "/tmp/x.db")), "", fault.Invalid, `"cellblock.db"`},
		"workspaces elsewhere":       {entries(t, db, link("workspaces", "/etc")), "", fault.Invalid, `"workspaces"`},
		"a workspace elsewhere":      {entries(t, db, folder("workspaces"), link(aWorkspace, "/etc")), "", fault.Invalid, `"workspaces/abc`},
		"one by another name of its": {entries(t, db, folder("workspaces"), link("workspaces/./abcdefghijklmnop", "/etc")), "", fault.Invalid, `"workspaces/./abc`},
		"a label elsewhere":          {entries(t, db, folder("workspaces"), link(aWorkspace+".json", "/etc/passwd")), "", fault.Invalid, `.json"`},
		"files from elsewhere":       {entries(t, db, folder("workspaces"), link(aWorkspace+".from", "../x")), "", fault.Invalid, `.from"`},
		"a device":                   {entries(t, db, &tar.Header{Name: "d", Typeflag: tar.TypeBlock, Devmajor: 8}), "", fault.Invalid, `"d"`},
		"a pipe":                     {entries(t, db, &tar.Header{Name: "p", Typeflag: tar.TypeFifo}), "", fault.Invalid, `"p"`},
		"a file with holes":          {sparse(t, 1<<28), "", fault.Invalid, `"big"`},
		"no database":                {entries(t, db), "", fault.Unavailable, "no database"},
		"a newer history":            {newerArchive(t), "", fault.Unavailable, "from a newer cellblock"},
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
