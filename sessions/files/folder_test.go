//go:build unix

package files

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/internal/fault"
)

func TestClean(t *testing.T) {
	for name, want := range map[string]string{
		"": ".", ".": ".", "a": "a", "./a/b/": "a/b", "a/../b": "b", "/workspace": ".", "/workspace/a": "a", "/workspace/../a": "",
		"/workspaces/a": "", "..": "", "../a": "", "a/../../b": "", "/etc/passwd": "", "a\x00b": "", "a\xffb": "", "..a": "..a",
		strings.Repeat("x", maxPath+1): "",
	} {
		got, err := Clean(name)
		if got != want || (err != nil) != (want == "") || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%.20q: %q, %v", name, got, err)
		}
	}
}

func read(t *testing.T, f *Folder, name string) string {
	t.Helper()
	file, _, err := f.OpenFile(name)
	if err != nil {
		return "error: " + fault.Text(err)
	}
	defer file.Close()
	b, err := io.ReadAll(file)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

func TestWriteAndRead(t *testing.T) {
	f, dir, _ := newFolder(t)
	e, created, err := f.Write("/workspace/a/b/c.txt", []byte("one"))
	if err != nil || !created || e.Path != "a/b/c.txt" || e.Size != 3 || e.Kind != File {
		t.Fatalf("%+v %v %v", e, created, err)
	}
	if got := read(t, f, "a/b/c.txt"); got != "one" {
		t.Error(got)
	}
	script := filepath.Join(dir, "a/b/c.txt")
	if err := os.Chmod(script, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, created, err := f.Write("a/b/c.txt", []byte("two")); err != nil || created {
		t.Error(created, err)
	}
	for path, mode := range map[string]os.FileMode{"a": 0o755, "a/b": 0o755, "a/b/c.txt": 0o755} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
		if stat := info.Sys().(*syscall.Stat_t); os.Geteuid() == 0 && (stat.Uid != 65534 || stat.Gid != 65534) {
			t.Errorf("%s belongs to %d:%d", path, stat.Uid, stat.Gid)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "a/b/.*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// What cannot be done is said by a kind and a hint, without a path of the host's.
func TestRefusals(t *testing.T) {
	f, dir, secret := newFolder(t)
	put(t, filepath.Join(dir, "d/x"), "x")
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	socket, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for name, target := range map[string]string{
		"out": secret, "up": "../secret", "updir": "..", "chain": "out", "loop": "loop", "broken": "nothing", "in": "d/x", "indir": "d", "proc": "/proc/self/root",
		"whole": Inside + "/d/x", "top": "/workspace//", "over": "top/in", "sly": "/workspace/../etc/passwd", "like": "/workspaces/x", "round": "/workspace/round", "lost": "/workspace/nothing",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, f, "in") + read(t, f, "indir/x") + read(t, f, "whole") + read(t, f, "top/d/x") + read(t, f, "over") + read(t, f, "top/top/whole"); got != "xxxxxx" {
		t.Errorf("links inside: %q", got)
	}
	write := func(name string) error { _, _, err := f.Write(name, []byte("y")); return err }
	open := func(name string) error {
		file, _, err := f.OpenFile(name)
		if err == nil {
			file.Close()
		}
		return err
	}
	remove := func(name string) error { _, err := f.Delete(name, false); return err }
	removeAll := func(name string) error { _, err := f.Delete(name, true); return err }
	for _, tt := range []struct {
		do   func(string) error
		name string
		kind fault.Kind
		word string
	}{
		{open, "nothing", fault.NotFound, "there is no"}, {open, "d/x/y", fault.NotFound, "there is no"}, {open, "broken", fault.NotFound, "there is no"},
		{open, "pipe/x", fault.NotFound, "there is no"}, {open, "pipes", fault.NotFound, `did you mean "pipe"? list_files`},
		{open, "d", fault.Invalid, "is a folder"}, {open, "pipe", fault.Invalid, "a pipe"}, {open, "sock", fault.Invalid, "a socket"},
		{open, "out", fault.Invalid, "leads out"}, {open, "up", fault.Invalid, "leads out"}, {open, "updir/secret", fault.Invalid, "leads out"},
		{open, "chain", fault.Invalid, "leads out"}, {open, "loop", fault.Invalid, "in a circle"}, {open, "proc/etc/passwd", fault.Invalid, "leads out"},
		{open, "sly", fault.Invalid, "leads out"}, {open, "like", fault.Invalid, "leads out"}, {open, "round", fault.Invalid, "in a circle"}, {open, "round/x", fault.Invalid, "in a circle"}, {open, "top/top/out", fault.Invalid, "leads out"},
		{open, "", fault.Invalid, "path: is empty"}, {write, "", fault.Invalid, "path: is empty"}, {removeAll, "", fault.Invalid, "path: is empty"},
		{open, "lost", fault.NotFound, "there is no"}, {open, "top", fault.Invalid, "is a folder"},
		{write, "updir/new", fault.Invalid, "leads out"}, {write, "proc/tmp/new", fault.Invalid, "leads out"}, {write, ".", fault.Invalid, "workspace itself"},
		{write, "d", fault.Invalid, "is a folder"}, {write, "pipe", fault.Invalid, "a pipe"}, {write, "pipe/x", fault.Invalid, "is a file"}, {write, "d/x/y", fault.Invalid, "is a file"}, {write, "d/x/y/z", fault.Invalid, "is a file"},
		{write, strings.Repeat("n", 300), fault.Invalid, "name too long"},
		{remove, ".", fault.Invalid, "workspace itself"}, {removeAll, "/workspace", fault.Invalid, "workspace itself"}, {remove, "nothing", fault.NotFound, "there is no"},
		{remove, "d", fault.Conflict, "recursive=true"}, {removeAll, "updir/w", fault.Invalid, "leads out"}, {removeAll, "updir/secret", fault.Invalid, "leads out"},
	} {
		err := tt.do(tt.name)
		if fault.KindOf(err) != tt.kind || err == nil || !strings.Contains(fault.Text(err), tt.word) || strings.Contains(fault.Text(err), filepath.Dir(dir)) {
			t.Errorf("%.20s: %v", tt.name, err)
		}
	}
	for _, name := range []string{"out", "updir", "pipe", "sock", "loop", "in"} {
		if err := removeAll(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A link is replaced, not followed.
	if err := write("up"); err != nil || read(t, f, "up") != "y" {
		t.Error(err)
	}
	if err := removeAll("d"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(secret); string(b) != "secret" {
		t.Errorf("beside the workspace: %q %v", b, err)
	}
}

// A link is followed to where code sees it lead, or not at all: what ".." leads to behind a link is not told by a text.
func TestLinksLeadWhereCodeSeesThem(t *testing.T) {
	f, dir, _ := newFolder(t)
	put(t, filepath.Join(dir, "x"), "wrong")
	put(t, filepath.Join(dir, "sub/x"), "right")
	put(t, filepath.Join(dir, "sub/deep/y"), "right")
	for name, target := range map[string]string{
		"d": "sub/deep", "l": "/workspace/d/../x", "top": "/workspace", "rel": "d/../x", "sub/deep/up": "../x", "sub/deep/far": ".././deep/../x", "sub/home": "..", "round": "/workspace/round",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const refused = `is or lies behind a link that is absolute or leads out of the workspace, which is not followed here`
	for name, want := range map[string]string{
		"rel": "right", "d/up": "right", "top/d/up": "right", "top/d/y": "right", "top/sub/x": "right", "top/sub/home/sub/x": "right", "l": refused, "top/rel": refused, "top/d/far": refused,
	} {
		if got := read(t, f, name); got != want && !strings.Contains(got, want) || want == refused && !strings.Contains(got, "name the file itself") {
			t.Errorf("%s: %s", name, got)
		}
	}
	// Whatever else may be asked of such a path is told the same.
	_, _, written := f.Write("top/new", nil)
	_, described := f.Stat("top/x")
	_, listed := f.List(Query{Path: "top/sub"})
	_, deleted := f.Delete("top/x", false)
	_, _, round := f.Write("round/x", nil)
	for i, err := range []error{written, described, listed, deleted, round} {
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), refused) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// Links of user code's making hold nobody up, however deep they lead and however many there are.
func TestLinksAreFollowedWithinBounds(t *testing.T) {
	f, dir, _ := newFolder(t)
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	const depth = 300
	deep := Inside + "/" + strings.Repeat("a/", depth)
	for range depth {
		if err := at.Mkdir("a", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("a")
		at.Close()
		if at = next; err != nil {
			t.Fatal(err)
		}
	}
	for i := range 39 {
		if err := at.Symlink(deep+strconv.Itoa(i+1), strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	at.Close()
	chain := Inside + "/short/" + strings.Repeat("./", 30)
	for name, target := range map[string]string{"one": deep + "x", "chain": deep + "0", "short": ".", "circle": chain + "circle", "in": Inside + "/file"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put(t, filepath.Join(dir, "file"), "x")
	if got := read(t, f, "short/in"); got != "x" {
		t.Error(got)
	}
	start := time.Now()
	for name, want := range map[string]string{"one": "name the file itself", "chain": "name the file itself", "circle": "in a circle", "in/" + strings.Repeat("b/", 400): "name the file itself"} {
		if got := read(t, f, name); !strings.Contains(got, want) {
			t.Errorf("%.20s: %s", name, got)
		}
	}
	if took := time.Since(start); took > 10*time.Second {
		t.Errorf("it took %s", took)
	}
}

func TestList(t *testing.T) {
	f, dir, _ := newFolder(t)
	for _, name := range []string{"b.csv", "a.txt", "data/one.csv", "data/deep/two.csv", "data/deep/three.py"} {
		put(t, filepath.Join(dir, name), "12345")
	}
	if err := os.Symlink("/etc", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("data", filepath.Join(dir, "in")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(Inside+"/b.csv", filepath.Join(dir, "whole")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ path, glob, want string }{
		{"", "", "a.txt b.csv data/ in->data out->/etc! pipe? whole->/workspace/b.csv data/deep/ data/one.csv data/deep/three.py data/deep/two.csv"},
		{"data", "", "data/deep/ data/one.csv data/deep/three.py data/deep/two.csv"},
		{"/workspace/data/one.csv", "", "data/one.csv"}, {"", "*.csv", "b.csv data/one.csv data/deep/two.csv"}, {"data", "deep/*", "data/deep/three.py data/deep/two.csv"},
		{"", "**/*.csv", "b.csv data/one.csv data/deep/two.csv"}, {"", "data/**/t*", "data/deep/three.py data/deep/two.csv"}, {"", "./data/*.csv", "data/one.csv"}, {"", "nothing", ""},
		{"out", "", "out->/etc!"},
	} {
		l, err := f.List(Query{Path: tt.path, Glob: tt.glob, Most: 100})
		var got []string
		for _, e := range l.Entries {
			text := e.Path + map[Kind]string{Dir: "/", Special: "?", Link: "->" + e.Target}[e.Kind]
			if e.Outside {
				text += "!"
			}
			got = append(got, text)
		}
		if strings.Join(got, " ") != tt.want || err != nil || l.Partial {
			t.Errorf("%s %s: %v %v %v", tt.path, tt.glob, got, l.Partial, err)
		}
	}
	l, err := f.List(Query{Most: 2})
	if err != nil || len(l.Entries) != 2 || l.Files != 9 || l.Folders != 2 || l.Bytes != 25 {
		t.Errorf("%+v %v", l, err)
	}
	for _, bad := range []Query{{Glob: "["}, {Glob: "**/**/**/**"}, {Path: "../x"}} {
		if _, err := f.List(bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if _, err := f.List(Query{Path: "nothing"}); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
}

func TestListIsBounded(t *testing.T) {
	f, dir, _ := newFolder(t)
	w := walk{root: f.root, left: 10, until: timeFar(), follow: func(string) bool { return true }}
	visited := 0
	w.visit = func(*os.Root, string, string) bool { visited++; return false }
	for i := range 1000 {
		put(t, filepath.Join(dir, "f"+strings.Repeat("x", i%200)+string(rune('a'+i/200))), "")
	}
	w.run(".")
	if !w.partial || visited > 512 {
		t.Errorf("%d visited, partial %v", visited, w.partial)
	}
}

func TestScan(t *testing.T) {
	f, dir, _ := newFolder(t)
	scan := func() Scan {
		s, ok := f.Scan()
		if !ok {
			t.Error("not all")
		}
		return s
	}
	put(t, filepath.Join(dir, "same"), "x")
	put(t, filepath.Join(dir, "longer"), "x")
	put(t, filepath.Join(dir, "replaced"), "x")
	put(t, filepath.Join(dir, "gone"), "x")
	before := scan()
	if changes := scan().Since(before); len(changes) != 0 {
		t.Errorf("nothing happened: %v", changes)
	}
	put(t, filepath.Join(dir, "longer"), "xx")
	if _, _, err := f.Write("replaced", []byte("y")); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "gone")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"d/new", ".hidden", "__pycache__/x.pyc", ".cache/x", "d/.ipynb_checkpoints/x"} {
		put(t, filepath.Join(dir, name), "new")
	}
	want := []Change{{Path: "d/new", New: true, Size: 3}, {Path: "longer", Size: 2}, {Path: "replaced", Size: 1}, {Path: "gone", Deleted: true}}
	if changes := scan().Since(before); !slices.Equal(changes, want) {
		t.Errorf("got %v, want %v", changes, want)
	}
	for i := range maxScanned {
		put(t, filepath.Join(dir, "many", strings.Repeat("x", i%200)+string(rune('a'+i/200))), "")
	}
	if _, ok := f.Scan(); ok {
		t.Error("too many files are no reason to stop")
	}
}

// A folder is deleted however much is in it and however deep it goes, with few descriptors.
func TestDeleteDeepAndMany(t *testing.T) {
	f, dir, _ := newFolder(t)
	at, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	for range 3000 {
		if err := at.Mkdir("deep", 0o755); err != nil {
			t.Fatal(err)
		}
		next, err := at.OpenRoot("deep")
		at.Close()
		if at = next; err != nil {
			t.Fatal(err)
		}
	}
	at.Close()
	for i := range 3000 {
		put(t, filepath.Join(dir, "deep", strconv.Itoa(i%30), strconv.Itoa(i)), "")
	}
	var before syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	few := before
	few.Cur = 100
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	_, err = f.Delete("deep", true)
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &before); err != nil {
		t.Fatal(err)
	}
	if left, _ := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left: %v %v", left, err)
	}
}

// One folder is listed without what is in those below it.
func TestListFlat(t *testing.T) {
	f, _, _ := newFolder(t)
	for _, name := range []string{"a.txt", "d/b.txt", "d/e/c.txt"} {
		if _, _, err := f.Write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for at, want := range map[string]string{"": "a.txt d", "d": "d/b.txt d/e"} {
		l, err := f.List(Query{Path: at, Flat: true, Most: 10})
		var names []string
		for _, e := range l.Entries {
			names = append(names, e.Path)
		}
		if got := strings.Join(names, " "); err != nil || got != want || l.Files+l.Folders != 2 {
			t.Errorf("%q: %s %+v %v", at, got, l, err)
		}
	}
}
