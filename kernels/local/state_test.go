//go:build linux

package local

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

func TestParseStat(t *testing.T) {
	const tail = " S 41 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3"
	for text, want := range map[string]procStat{
		"42 (sh)" + tail:                              {parent: 41, start: 987654},
		"42 (a) S 1 (b) )" + tail:                     {parent: 41, start: 987654},
		"42 (new\nline)" + tail + "\n":                {parent: 41, start: 987654},
		"42 (x)" + strings.Replace(tail, "S", "Z", 1): {zombie: true, parent: 41, start: 987654},
	} {
		if got, err := parseStat([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "42", "42 (sh) S 1", "42 (sh) S x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1", "42 sh" + tail} {
		if got, err := parseStat([]byte(text)); err == nil {
			t.Errorf("%q: %+v", text, got)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (sh) S 41 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 987654 1 2 3"))
	f.Fuzz(func(t *testing.T, b []byte) { _, _ = parseStat(b) })
}

func TestParseStatus(t *testing.T) {
	tests := map[string]struct {
		text string
		want statusFacts
		exit kernels.ExitStatus
	}{
		"nothing":    {"", statusFacts{exit: -1}, kernels.ExitStatus{Code: -1}},
		"running":    {"{ \"child-pid\": 7, \"mnt-namespace\": 1 }\n", statusFacts{exit: -1}, kernels.ExitStatus{Code: -1}},
		"ended":      {"{ \"child-pid\": 7 }\n{ \"exit-code\": 3 }\n", statusFacts{exit: 3}, kernels.ExitStatus{Code: 3}},
		"stopped":    {"{\"child-pid\":7}{\"asked\":true}\n{\"exit-code\":0}", statusFacts{asked: true}, kernels.ExitStatus{Asked: true}},
		"killed":     {"{\"exit-code\":137}", statusFacts{exit: 137}, kernels.ExitStatus{Code: -1, Signal: "SIGKILL"}},
		"cut short":  {"{\"child-pid\":7}\n{\"exit-c", statusFacts{exit: -1}, kernels.ExitStatus{Code: -1}},
		"not a line": {"bwrap: oh\n", statusFacts{exit: -1}, kernels.ExitStatus{Code: -1}},
	}
	for name, tt := range tests {
		got := parseStatus(strings.NewReader(tt.text))
		if got != tt.want || got.exitStatus() != tt.exit {
			t.Errorf("%s: %+v, %+v", name, got, got.exitStatus())
		}
	}
}

func FuzzParseStatus(f *testing.F) {
	f.Add("{ \"child-pid\": 7 }\n{ \"exit-code\": 3 }\n")
	f.Fuzz(func(t *testing.T, text string) { parseStatus(strings.NewReader(text)).exitStatus() })
}

func TestEntryLocksAndState(t *testing.T) {
	dir := t.TempDir()
	e, err := newEntry(dir, "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newEntry(dir, "abcdefgh"); !errors.Is(err, os.ErrExist) {
		t.Error("made twice:", err)
	}
	if _, err := openEntry(dir, "abcdefgh", unix.LOCK_SH); !errors.Is(err, errBusy) {
		t.Error("used while being launched:", err)
	}
	if _, err := e.load(); !errors.Is(err, os.ErrNotExist) {
		t.Error("half made:", err)
	}
	want := state{Version: stateVersion, Boot: "b", Main: identity{3, 4}, Init: &identity{5, 6}, Sandboxed: true, Started: time.Unix(9, 0).UTC(),
		Group: group{Dirs: []groupDir{{"/cg/x", 2, []string{memory}}}}, Labels: map[string]string{"a": "b"}}
	if err := e.save(want); err != nil {
		t.Fatal(err)
	}
	if got, err := e.load(); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v", got, err)
	}
	if err := e.share(); err != nil {
		t.Fatal(err)
	}
	other, err := openEntry(dir, "abcdefgh", unix.LOCK_SH)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openEntry(dir, "abcdefgh", unix.LOCK_EX); !errors.Is(err, errBusy) {
		t.Error("swept while used:", err)
	}
	if err := errors.Join(e.close(), other.close(), e.remove()); err != nil {
		t.Error(err)
	}
	if _, err := openEntry(dir, "abcdefgh", unix.LOCK_SH); !errors.Is(err, os.ErrNotExist) {
		t.Error("removed:", err)
	}
}

// Where a data folder has been copied, a server on the copy leaves the kernels of the other one alone; where it has been moved, they
// are found.
func TestCopiedStateIsAnothers(t *testing.T) {
	dir := t.TempDir()
	e, err := newEntry(dir, "abcdefgh")
	if err == nil {
		err = errors.Join(e.save(state{Version: stateVersion, Boot: "b"}), e.close())
	}
	copied, moved := filepath.Join(t.TempDir(), "copied"), filepath.Join(t.TempDir(), "moved")
	if err = errors.Join(err, os.CopyFS(copied, os.DirFS(dir)), os.Rename(dir, moved)); err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]error{copied: errCopied, moved: nil} {
		e, err := openEntry(in, "abcdefgh", unix.LOCK_SH)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.load(); !errors.Is(err, want) {
			t.Errorf("%s: %v", filepath.Base(in), err)
		}
		if err := e.close(); err != nil {
			t.Error(err)
		}
	}
}

// The log is told once of a kernel that is another server's, however often it is come across.
func TestCopiedStateIsLoggedOnce(t *testing.T) {
	dir := t.TempDir()
	copied := filepath.Join(t.TempDir(), "copied")
	e, err := newEntry(dir, "abcdefgh")
	if err == nil {
		err = errors.Join(e.save(state{Version: stateVersion, Boot: "b"}), e.close(), os.Mkdir(copied, 0o700), os.CopyFS(copied, os.DirFS(dir)))
	}
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	p, err := New(Config{StateDir: copied, RunDir: filepath.Join(t.TempDir(), "r"), ShimPath: "/bin/true", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range 3 {
		if refs, err := p.List(t.Context()); err != nil || len(refs) > 0 {
			t.Errorf("listed are %v, %v", refs, err)
		}
	}
	if n := strings.Count(log.String(), "abcdefgh: "); n != 1 {
		t.Errorf("it is logged %d times: %s", n, &log)
	}
	if _, err := os.Stat(filepath.Join(copied, "abcdefgh")); err != nil {
		t.Error("it was taken away:", err)
	}
}

func TestLoadRefusesWhatItDidNotWrite(t *testing.T) {
	e, err := newEntry(t.TempDir(), "abcdefgh")
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	good := filepath.Join(e.dir, "good")
	if err := os.WriteFile(good, []byte(`{"version":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	path := e.path(stateFile)
	for name, place := range map[string]func() error{
		"link":       func() error { return os.Symlink(good, path) },
		"pipe":       func() error { return syscall.Mkfifo(path, 0o600) },
		"folder":     func() error { return os.Mkdir(path, 0o700) },
		"not JSON":   func() error { return os.WriteFile(path, []byte("version 1"), 0o600) },
		"the future": func() error { return os.WriteFile(path, []byte(`{"version":99}`), 0o600) },
		"cut short":  func() error { return os.WriteFile(path, []byte(`{"version":1,`), 0o600) },
		"without end": func() error {
			return os.WriteFile(path, []byte(`{"labels":{"a":"`+strings.Repeat("x", maxState)+`"}}`), 0o600)
		},
	} {
		if err := place(); err != nil {
			t.Fatal(err)
		}
		if st, err := e.load(); err == nil || errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: %+v, %v", name, st, err)
		}
		_ = os.RemoveAll(path)
	}
}

// A pid that has come to mean another process, or that belongs to another boot, is not the kernel's.
func TestPIDReuse(t *testing.T) {
	cmd := exec.Command("sleep", "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := identify(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	st := state{Boot: boot, Main: id}
	other, elsewhen := st, st
	other.Main.Start--
	elsewhen.Boot = "another"
	if !st.alive() || other.alive() || elsewhen.alive() {
		t.Error(st.alive(), other.alive(), elsewhen.alive())
	}
	p, err := openProcess(id)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	if p.ended() {
		t.Error("ended before it was killed")
	}
	_ = cmd.Process.Kill()
	if err := p.wait(); err != nil || !p.ended() || st.alive() {
		t.Error("a zombie counts as alive:", err)
	}
	if ws, ours := p.reap(); !ours || exitCode(ws) != 137 {
		t.Error(ours, ws)
	}
	if _, ours := p.reap(); ours {
		t.Error("reaped twice")
	}
	if _, err := openProcess(id); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}

func TestAttachRefusesForeignRefs(t *testing.T) {
	dir := t.TempDir()
	p, err := New(Config{StateDir: filepath.Join(dir, "s"), RunDir: filepath.Join(dir, "r"), ShimPath: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	good := kernels.Ref{Provisioner: "local", Version: refVersion, KernelID: "abcdefgh", Data: []byte(`{"boot":"b","main":{"pid":1,"start":1}}`)}
	if _, err := p.Attach(t.Context(), good); !errors.Is(err, kernels.ErrGone) {
		t.Error("not there:", err)
	}
	for name, change := range map[string]func(*kernels.Ref){
		"provisioner": func(r *kernels.Ref) { r.Provisioner = "docker" },
		"version":     func(r *kernels.Ref) { r.Version = 9 },
		"id":          func(r *kernels.Ref) { r.KernelID = "../../etc" },
		"data":        func(r *kernels.Ref) { r.Data = []byte(`[]`) },
	} {
		ref := good
		change(&ref)
		if _, err := p.Attach(t.Context(), ref); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCheckSpec(t *testing.T) {
	dir := t.TempDir()
	p, err := New(Config{StateDir: filepath.Join(dir, "s"), RunDir: filepath.Join(dir, "r"), ShimPath: "/bin/true"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	valid, _ := script(t, p, "abcdefgh", "true")
	link := filepath.Join(dir, "link")
	if err := os.Symlink(valid.Workspace, link); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(dir, "kernel")
	if err := os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*kernels.Spec)
		kind   fault.Kind
	}{
		"id":                  {func(s *kernels.Spec) { s.ID = "../abcdefgh" }, fault.Invalid},
		"no argv":             {func(s *kernels.Spec) { s.Kernelspec.Argv = nil }, fault.Invalid},
		"transport":           {func(s *kernels.Spec) { s.Kernelspec.Transport = "udp" }, fault.Invalid},
		"interrupt mode":      {func(s *kernels.Spec) { s.Kernelspec.InterruptMode = "shout" }, fault.Invalid},
		"name with =":         {func(s *kernels.Spec) { s.Env = map[string]string{"A=B": ""} }, fault.Invalid},
		"NUL in the value":    {func(s *kernels.Spec) { s.Kernelspec.Env = map[string]string{"A": "\x00--share-net"} }, fault.Invalid},
		"relative workspace":  {func(s *kernels.Spec) { s.Workspace = "ws" }, fault.Invalid},
		"no workspace":        {func(s *kernels.Spec) { s.Workspace = "/nowhere" }, fault.Invalid},
		"workspace a link":    {func(s *kernels.Spec) { s.Workspace = link }, fault.Invalid},
		"workspace a file":    {func(s *kernels.Spec) { s.Workspace = outside }, fault.Invalid},
		"workspace of others": {func(s *kernels.Spec) { s.Workspace = "/usr" }, fault.Invalid},
		"no program":          {func(s *kernels.Spec) { s.Kernelspec.Argv = []string{"/usr/bin/nothing-like-it"} }, fault.Unavailable},
		"no program on PATH":  {func(s *kernels.Spec) { s.Kernelspec.Argv = []string{"nothing-like-it"} }, fault.Unavailable},
		"program not shown":   {func(s *kernels.Spec) { s.Kernelspec.Argv = []string{outside} }, fault.Unavailable},
	}
	for name, tt := range tests {
		spec := valid
		tt.change(&spec)
		if h, err := p.Launch(t.Context(), spec); err == nil || fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %v, %v", name, h, err)
		}
	}
	spec := valid
	spec.Kernelspec.Argv, spec.Kernelspec.Language = []string{"nothing-like-it"}, "python"
	if _, err := p.Launch(t.Context(), spec); !strings.Contains(fault.Hint(err), "ipykernel") {
		t.Error("hint:", fault.Hint(err))
	}
	if left := leftovers(t, p, dir); left != "" {
		t.Error(left)
	}
}
