//go:build unix

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

const (
	aWorkspace = "workspaces/abcdefghijklmnop"
	largeText  = "large "
)

// dataFolder is a data folder as a server has it: a history, a workspace in which users' code has left all sorts of
// things, keys, locks.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, sub := range []string{"slots", aWorkspace + "/deep/er", aWorkspace + "/closed", aWorkspace + "/fixed", "workspaces/nobodys0000000a", "images/names"} {
		ok(os.MkdirAll(filepath.Join(dir, sub), 0o700))
	}
	for name, text := range map[string]string{
		"slots/s0": "", "installation": "0011223344556677\n", "dev_private_key.pem": "KEY", "dev_public_key.pem": "KEY", "dev_token.txt": "TOKEN",
		"mcp_session_key": "SECRET", "images/cellblock-derived-1": "", "images/names/00.ml": "cellblock-derived-1:latest", aWorkspace + ".json": `{"session_id":"a"}`, aWorkspace + ".lock": "", "workspaces/nobodys0000000a/x": "x",
		aWorkspace + "/plain.txt": "plain", aWorkspace + "/deep/er/data.bin": strings.Repeat("\x00\x01", 50_000),
		aWorkspace + "/odd\nname \xff" + strings.Repeat("x", 200): "odd", aWorkspace + "/closed/secret": "closed", aWorkspace + "/fixed/file": "fixed",
	} {
		ok(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	in := func(name string) string { return filepath.Join(dir, aWorkspace, name) }
	ok(os.Symlink("/etc/passwd", in("out")))
	ok(os.Symlink("deep/er", in("link")))
	ok(syscall.Mkfifo(in("pipe"), 0o600))
	ok(os.Chtimes(in("plain.txt"), time.Now(), time.Unix(1_600_000_000, 0)))
	ok(os.Chmod(in("plain.txt"), 0o754))
	ok(os.Chmod(in("fixed"), 0o500))
	ok(os.Chmod(in("closed"), 0))
	t.Cleanup(func() { _ = os.Chmod(in("closed"), 0o700); _ = os.Chmod(in("fixed"), 0o700) })

	store, err := history.Open(t.Context(), history.Options{Folder: dir, Logger: slog.New(slog.DiscardHandler)})
	ok(err)
	found, err := store.Open(t.Context(), sessions.StoredSession{ID: "a", Language: "python", Created: time.Now()})
	ok(err)
	ok(store.Commit(t.Context(), found.Ref, sessions.ExecutionQueued{Number: 1, Code: "1", Queued: time.Now()},
		sessions.OutputsKept{Number: 1, Outputs: []kernels.Output{
			{Kind: kernels.OutputStream, Stream: "stdout", Text: "small "}, {Kind: kernels.OutputStream, Stream: "stdout", Text: strings.Repeat(largeText, 20_000)},
		}}, sessions.ExecutionEnded{Number: 1, Ended: time.Now(), Own: 2}))
	t.Cleanup(func() { ok(store.Close()) }) // it is in use meanwhile
	return dir
}

// backedUp makes a backup and returns the folder that a server would be started with, and what was said.
func backedUp(t *testing.T, data, name string, change func(*backup)) (folder, said string) {
	t.Helper()
	var report bytes.Buffer
	parent := t.TempDir()
	b := backup{data: data, dest: filepath.Join(parent, name), report: &report}
	if change != nil {
		change(&b)
	}
	if name == toStdout {
		f, err := os.OpenFile(filepath.Join(parent, "out.tar"), os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		b.dest, b.stdout = toStdout, f
	}
	if err := b.run(t.Context()); err != nil {
		t.Fatal(fault.Text(err))
	}
	if name == toStdout {
		b.dest, name = filepath.Join(parent, "out.tar"), "out.tar"
	}
	folder = b.dest
	if entries, err := os.ReadDir(parent); err != nil || len(entries) != 1 {
		t.Errorf("beside the backup there are %v, %v", entries, err)
	}
	if strings.HasSuffix(name, ".tar") {
		if info, err := os.Stat(b.dest); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v, %v", info.Mode(), err)
		}
		folder = t.TempDir()
		if out, err := exec.Command("tar", "-xpf", b.dest, "-C", folder).CombinedOutput(); err != nil {
			t.Fatalf("tar: %v\n%s", err, out)
		}
	}
	closed := filepath.Join(folder, aWorkspace, "closed")
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700); _ = os.Chmod(filepath.Join(folder, aWorkspace, "fixed"), 0o700) })
	return folder, report.String()
}

// listing is the names of all in a folder but outputs' files.
func listing(t *testing.T, folder string) string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(folder, path)
		if err == nil && name != "." && !strings.HasPrefix(name, "blobs"+string(filepath.Separator)) {
			names = append(names, strings.ReplaceAll(strings.TrimPrefix(name, aWorkspace), strings.Repeat("x", 200), "…"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(names, " ")
}

func TestBackup(t *testing.T) {
	const (
		db    = "blobs cellblock.db"
		names = " images images/names images/names/00.ml"
		ours  = db + names
		files = " workspaces  /closed /closed/secret /deep /deep/er /deep/er/data.bin /fixed /fixed/file /link /odd\nname \xff… /out /plain.txt .json"
	)
	kernelstest.Need(t, os.Geteuid() == 0, "root, who can read all of it")
	data := dataFolder(t)
	for name, tt := range map[string]struct {
		dest   string
		change func(*backup)
		want   string
		said   string
	}{
		"a folder":        {"copy", nil, ours + files, "not in it: keys and tokens"},
		"an archive":      {"copy.tar", nil, ours + files, "to restore: cellblock restore --data-dir FOLDER"},
		"standard output": {toStdout, nil, ours + files, "the backup is whole; to restore: cellblock restore"},
		"with secrets":    {"copy", func(b *backup) { b.withSecrets = true }, db + " dev_private_key.pem dev_public_key.pem dev_token.txt" + names + " mcp_session_key" + files, "in it: keys and tokens"},
		"without files":   {"copy.tar", func(b *backup) { b.noFiles = true }, ours, "--no-files"},
		"an odd name":     {"a b'c%20?.d", nil, ours + files, "1 special file not in it (sockets, pipes and the like)"},
		"the outputs too": {"x", nil, ours + files, "1 session, 1 cell, 1 file of outputs"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, said := backedUp(t, data, tt.dest, tt.change)
			if got := listing(t, folder); got != tt.want {
				t.Errorf("it has\n%q, want\n%q", got, tt.want)
			}
			if !strings.Contains(said, tt.said) {
				t.Errorf("%q is not said:\n%s", tt.said, said)
			}
			checkHistory(t, folder)
			if strings.Contains(tt.want, "plain.txt") {
				checkFiles(t, folder)
			}
		})
	}
}

func checkHistory(t *testing.T, folder string) {
	t.Helper()
	store, err := history.Open(t.Context(), history.Options{Folder: folder, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	found, err := store.Session(t.Context(), sessions.Owner{}, "a")
	if err != nil || found.Executions != 1 || found.Held {
		t.Fatalf("the session is %+v, %v", found, err)
	}
	var text string
	for out, err := range store.Outputs(t.Context(), found.Ref, 1, 0) {
		if err != nil {
			t.Error(err)
		}
		text += out.Output.Text
	}
	if text != "small "+strings.Repeat(largeText, 20_000) {
		t.Errorf("the cell printed %.50q, %d characters", text, len(text))
	}
}

func checkFiles(t *testing.T, folder string) {
	t.Helper()
	in := func(name string) string { return filepath.Join(folder, aWorkspace, name) }
	plain, err := os.Stat(in("plain.txt"))
	if err != nil || plain.Mode() != 0o754 || plain.ModTime().Unix() != 1_600_000_000 {
		t.Errorf("the plain file is %+v, %v", plain, err)
	}
	if text, err := os.ReadFile(in("link/data.bin")); err != nil || string(text) != strings.Repeat("\x00\x01", 50_000) {
		t.Errorf("through the link there are %d bytes, %v", len(text), err)
	}
	if to, err := os.Readlink(in("out")); err != nil || to != "/etc/passwd" {
		t.Errorf("the link out is %q, %v", to, err)
	}
	for name, want := range map[string]fs.FileMode{"fixed": 0o500, "closed": 0} {
		if info, err := os.Stat(in(name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func(p []byte)

func (f writerFunc) Write(p []byte) (int, error) { f(p); return len(p), nil }

// No server moves files from one workspace to another while they are copied.
func TestBackupHoldsFiles(t *testing.T) {
	data, copied := dataFolder(t), false
	lock := flock.New(filepath.Join(data, "workspaces"), flock.SetFlag(os.O_RDONLY))
	defer lock.Close()
	b := backup{data: data, dest: filepath.Join(t.TempDir(), "b"), report: writerFunc(func(p []byte) {
		if strings.HasPrefix(string(p), "workspaces:") {
			free, err := lock.TryLock()
			if copied = true; free || err != nil {
				t.Errorf("the lock: %v, %v", free, err)
			}
		}
	})}
	t.Cleanup(func() {
		_ = os.Chmod(filepath.Join(b.dest, aWorkspace, "closed"), 0o700)
		_ = os.Chmod(filepath.Join(b.dest, aWorkspace, "fixed"), 0o700)
	})
	if err := b.run(t.Context()); err != nil || !copied {
		t.Errorf("%v, %v", err, copied)
	}
	if free, err := lock.TryLock(); !free {
		t.Errorf("the lock is held after the backup: %v", err)
	}
}

func TestBackupRefusals(t *testing.T) {
	data := dataFolder(t)
	there := t.TempDir()
	link := filepath.Join(there, "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	empty := t.TempDir()
	for name, tt := range map[string]struct {
		data, dest string
		kind       fault.Kind
		want       string
	}{
		"a folder that is there":   {data, there, fault.Conflict, "nothing is overwritten"},
		"a link that is there":     {data, link, fault.Conflict, "is there already"},
		"inside of the data":       {data, filepath.Join(data, "copy"), fault.Invalid, "outside"},
		"inside, through a link":   {data, filepath.Join(link, "workspaces", "copy.tar"), fault.Invalid, "outside"},
		"another archive":          {data, filepath.Join(there, "copy.zip"), fault.Invalid, filepath.Join(there, "copy.tar")},
		"a compressed one":         {data, filepath.Join(there, "copy.tar.GZ"), fault.Invalid, filepath.Join(there, "copy.tar")},
		"in no folder":             {data, filepath.Join(there, "no", "copy"), fault.NotFound, "Make it first"},
		"of no data, by a pipe":    {empty, toStdout, fault.NotFound, "--data-dir"},
		"of no data":               {empty, filepath.Join(there, "copy"), fault.NotFound, "--data-dir"},
		"of a folder that is none": {filepath.Join(there, "none"), filepath.Join(there, "copy.tar"), fault.NotFound, "--data-dir"},
	} {
		b := backup{data: tt.data, dest: tt.dest, report: new(bytes.Buffer)}
		if err := b.run(t.Context()); fault.KindOf(err) != tt.kind || !strings.Contains(fault.Text(err), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	b := backup{data: data, dest: filepath.Join(there, "stopped"), report: new(bytes.Buffer)}
	if err := b.run(ctx); fault.KindOf(err) != fault.Cancelled {
		t.Errorf("stopped: %v", err)
	}
	if entries, err := os.ReadDir(there); err != nil || len(entries) != 1 {
		t.Errorf("left behind: %v, %v", entries, err)
	}
}

// What standard output gets of a backup that fails is no whole archive, and no copy of the history stays in the data folder: neither this
// one's nor that of an earlier one that was killed.
func TestBackupToNobody(t *testing.T) {
	data := dataFolder(t)
	for _, name := range []string{"killed", "at-work"} {
		if err := os.Mkdir(filepath.Join(data, stagePrefix+name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	atWork := stageLock(filepath.Join(data, stagePrefix+"at-work"))
	if err := atWork.RLock(); err != nil {
		t.Fatal(err)
	}
	defer atWork.Close()
	left := func() string {
		all, err := filepath.Glob(filepath.Join(data, stagePrefix+"*"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.ReplaceAll(strings.Join(all, " "), filepath.Join(data, stagePrefix), "")
	}
	ctx, cancel := context.WithCancel(t.Context())
	var part bytes.Buffer
	b := backup{data: data, dest: toStdout, stdout: &part, report: writerFunc(func(p []byte) {
		if strings.HasPrefix(string(p), "history:") {
			cancel()
		}
	})}
	if err := b.run(ctx); fault.KindOf(err) != fault.Cancelled || !strings.Contains(fault.Text(err), "only a part of a backup") {
		t.Errorf("stopped: %v", err)
	}
	entries, err := tar.NewReader(&part), error(nil)
	for err == nil {
		_, err = entries.Next()
	}
	if err == io.EOF {
		t.Error("what was stopped looks like a whole archive")
	}
	reads, writes, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	reads.Close()
	defer writes.Close()
	b = backup{data: data, dest: toStdout, stdout: writes, report: new(bytes.Buffer)}
	if err := b.run(t.Context()); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Text(err), "Look at who reads it") {
		t.Errorf("nobody reads: %v", err)
	}
	if got := left(); got != "at-work" {
		t.Errorf("left in the data folder: %q", got)
	}
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	kernelstest.Need(t, err == nil, "a terminal")
	defer terminal.Close()
	b = backup{data: data, dest: toStdout, stdout: terminal, report: new(bytes.Buffer)}
	if err := b.run(t.Context()); fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), "cellblock backup - >") {
		t.Errorf("a terminal: %v", err)
	}
}

// Where a workspace is a volume of an engine, a backup that has none of its files says so.
func TestBackupOfVolumes(t *testing.T) {
	data := dataFolder(t)
	for _, said := range []bool{false, true} {
		_, report := backedUp(t, data, "copy.tar", nil)
		if strings.Contains(report, "1 workspace without files here") != said {
			t.Errorf("files are elsewhere: %v, but\n%s", said, report)
		}
		for _, closed := range []string{"closed", "fixed"} {
			_ = os.Chmod(filepath.Join(data, aWorkspace, closed), 0o700)
		}
		if err := os.RemoveAll(filepath.Join(data, aWorkspace)); err != nil {
			t.Fatal(err)
		}
	}
}

// A file that gets shorter while it is copied does not spoil what comes behind it.
func TestExactly(t *testing.T) {
	for from, want := range map[string]string{"abc": "abc\x00\x00", "abcde": "abcde", "abcdefg": "abcde", "": "\x00\x00\x00\x00\x00"} {
		e := &exactly{from: strings.NewReader(from), left: 5}
		var got bytes.Buffer
		if _, err := got.ReadFrom(e); err != nil || got.String() != want || e.short != (len(from) < 5) {
			t.Errorf("%q: %q, %v, %v", from, got.String(), e.short, err)
		}
	}
}

// A process that was killed while it moved a session's files has left some of them in a folder that has no label any more.
func TestBackupOfAnUnfinishedMove(t *testing.T) {
	data := dataFolder(t)
	in := func(name string) string { return filepath.Join(data, "workspaces", name) }
	const from, to = "mmmmmmmmmmmmmmmm", "nnnnnnnnnnnnnnnn"
	for _, err := range []error{
		os.Mkdir(in(from), 0o700), os.Mkdir(in(to), 0o700), os.WriteFile(in(from+"/left"), nil, 0o600), os.WriteFile(in(to+"/moved"), nil, 0o600),
		os.WriteFile(in(to+".json"), []byte(`{"session_id":"m","language":"python"}`), 0o600), os.Symlink(from, in(to+".from")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	folder, _ := backedUp(t, data, "copy", nil)
	if link, err := os.Readlink(filepath.Join(folder, "workspaces", to+".from")); err != nil || link != from {
		t.Errorf("%q, %v", link, err)
	}
	for _, name := range []string{from + "/left", to + "/moved", to + ".json"} {
		if _, err := os.Stat(filepath.Join(folder, "workspaces", name)); err != nil {
			t.Error(err)
		}
	}
}

// Users' code moves things about while they are copied: what is copied of them is an archive, and a folder, all the same.
func TestBackupOfWhatMoves(t *testing.T) {
	folder, dest := t.TempDir(), t.TempDir()
	root, err := os.OpenRoot(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(root.Symlink("other", "d"), root.Mkdir("other", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"f", "other/x"} {
		if err := root.WriteFile(name, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, err := newFolderArchive(dest)
	if err != nil {
		t.Fatal(err)
	}
	defer out.abandon()
	b, seen := backup{report: io.Discard, out: out}, newTree()
	seen.folders["."] = true
	list := func(name string) []fs.DirEntry {
		entries, err := fs.ReadDir(root.FS(), name)
		if err != nil {
			t.Fatal(err)
		}
		return entries
	}
	all := list(".")
	for _, step := range []struct {
		entry fs.DirEntry
		path  string
		want  error
	}{{all[0], "d", nil}, {list("d")[0], "d/x", errMoved}, {all[1], "f", nil}, {all[1], "f", errMoved}, {all[2], "other", nil}, {list("other")[0], "other/x", nil}, {all[2], "other", errMoved}} {
		if err := b.copyEntry(root, seen, step.entry, step.path, step.path); !errors.Is(err, step.want) || step.want == nil && err != nil {
			t.Errorf("%s: %v, want %v", step.path, err, step.want)
		}
	}
}
