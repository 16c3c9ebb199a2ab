package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"cellblock/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testKey = []byte("a key for tests")

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func openLog(t *testing.T, dir string, change ...func(*Options)) *Log {
	t.Helper()
	o := Options{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, Logger: quiet}
	for _, c := range change {
		c(&o)
	}
	l, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// written makes a log of n lines and returns its folder.
func written(t *testing.T, n int, change ...func(*Options)) string {
	t.Helper()
	dir := t.TempDir()
	writeMore(t, dir, n, change...)
	return dir
}

func writeMore(t *testing.T, dir string, n int, change ...func(*Options)) {
	t.Helper()
	l := openLog(t, dir, change...)
	l.Required = true // one write each
	for i := range n {
		if err := l.Require(t.Context(), Entry{Event: Answered, Tool: "execute_python", Subject: "ann", Session: fmt.Sprintf("s%d", i), Status: "ok"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
}

func small(o *Options) { o.MaxBytes = 1500 } // about five lines

func verified(t *testing.T, dir string) Report {
	t.Helper()
	r, err := Verify(filepath.Join(dir, "audit.jsonl"), testKey, 1)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// linesOf returns all lines of a log, and the files that they are in.
func linesOf(t *testing.T, dir string) (files []string, lines [][]byte) {
	t.Helper()
	files, err := names{filepath.Join(dir, "audit.jsonl")}.files()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(text) {
			lines = append(lines, slices.Clone(l))
		}
	}
	return files, lines
}

func TestAWholeLogHolds(t *testing.T) {
	dir := written(t, 23, small)
	writeMore(t, dir, 3, small) // another process
	r := verified(t, dir)
	if r.Lines != 26 || r.First != 1 || r.Last != 26 || r.Files < 4 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
	files, lines := linesOf(t, dir)
	for _, name := range append(files, filepath.Join(dir, "audit.jsonl.head")) {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 || info.Size() > 1500 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	var first map[string]any
	if err := json.Unmarshal(lines[0], &first); err != nil || first["tool"] != "execute_python" || first["seq"] != 1.0 || first["time"] == nil {
		t.Errorf("%s: %v", lines[0], err)
	}
}

// TestTampering does to a log of 12 lines in several files what somebody might who has no key.
func TestTampering(t *testing.T) {
	other := written(t, 12) // of the same key
	_, foreign := linesOf(t, other)
	replace := func(old, new string) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte { l[4] = bytes.Replace(l[4], []byte(old), []byte(new), 1); return l }
	}
	for name, tt := range map[string]struct {
		edit func([][]byte) [][]byte
		want []string
	}{
		"a changed word":         {replace("ann", "bob"), []string{"line 5 (", "was changed"}},
		"a changed number":       {replace(`"seq":5`, `"seq":7`), []string{"line 5 (", "was changed"}},
		"a changed space":        {replace(`"seq":5`, `"seq": 5`), []string{"line 5 (", "was changed"}},
		"a changed seal":         {func(l [][]byte) [][]byte { copy(l[4][len(l[4])-67:], strings.Repeat("0", 64)); return l }, []string{"line 5 (", "was changed"}},
		"a member more":          {replace(`,"seal"`, `,"status":"error","seal"`), []string{"line 5 (", "was changed"}},
		"one taken out":          {func(l [][]byte) [][]byte { return slices.Delete(l, 4, 5) }, []string{"line 5 is missing"}},
		"three taken out":        {func(l [][]byte) [][]byte { return slices.Delete(l, 4, 7) }, []string{"lines 5 to 7 are missing"}},
		"the first taken out":    {func(l [][]byte) [][]byte { return l[1:] }, []string{"line 1 is missing"}},
		"the last taken out":     {func(l [][]byte) [][]byte { return l[:11] }, []string{"line 12 is missing"}},
		"cut in a line":          {func(l [][]byte) [][]byte { l[9] = l[9][:40]; return l[:10] }, []string{"lines 10 to 12 are missing"}},
		"two exchanged":          {func(l [][]byte) [][]byte { l[3], l[4] = l[4], l[3]; return l }, []string{"line 4 (", "not in its place"}},
		"one copied":             {func(l [][]byte) [][]byte { return slices.Insert(l, 8, l[2]) }, []string{"line 3 (", "twice"}},
		"text between":           {func(l [][]byte) [][]byte { return slices.Insert(l, 3, []byte("hello\n")) }, []string{"is no line of the log"}},
		"one of another log":     {func(l [][]byte) [][]byte { l[4] = foreign[4]; return l }, []string{"line 5 (", "does not follow"}},
		"the last of another":    {func(l [][]byte) [][]byte { l[11] = foreign[11]; return l }, []string{"line 12 (", "does not follow"}},
		"an old one at the end":  {func(l [][]byte) [][]byte { return append(l, l[2]) }, []string{"line 3 (", "twice"}},
		"an end of its own":      {func(l [][]byte) [][]byte { return append(l, []byte(`{"seq":13,"seal":"00"}`+"\n")) }, []string{"is no line of the log"}},
		"everything of another":  {func([][]byte) [][]byte { return foreign }, []string{"line 12 is not the one that the head names"}},
		"all of it taken out":    {func([][]byte) [][]byte { return nil }, []string{"lines 1 to 12 are missing"}},
		"a line without its end": {func(l [][]byte) [][]byte { l[4] = bytes.TrimSuffix(l[4], []byte("\n")); return l }, []string{"is no line of the log", "lines 5 to 6 are missing"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, 12)
			_, lines := linesOf(t, dir)
			if err := os.WriteFile(filepath.Join(dir, "audit.jsonl"), bytes.Join(tt.edit(lines), nil), 0o600); err != nil {
				t.Fatal(err)
			}
			said := strings.Join(verified(t, dir).Problems, "\n")
			for _, want := range tt.want {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q:\n%s", want, said)
				}
			}
			writeMore(t, dir, 1) // and no start makes it good
			if r := verified(t, dir); len(r.Problems) == 0 || r.Last <= 12 {
				t.Errorf("after the next start: %+v", r)
			}
		})
	}
}

// Files that are written no more are as safe as the one that is.
func TestTamperingWithFiles(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(dir string, files []string) error
		want string
	}{
		"a full one removed":    {func(_ string, files []string) error { return os.Remove(files[1]) }, "are missing"},
		"the first one removed": {func(_ string, files []string) error { return os.Remove(files[0]) }, "lines 1 to "},
		"the last one removed":  {func(_ string, files []string) error { return os.Remove(files[len(files)-1]) }, "missing"},
		"a full one cut":        {func(_ string, files []string) error { return os.Truncate(files[1], 100) }, "ends in the middle of a line"},
		"two exchanged":         {func(_ string, files []string) error { return exchange(files[0], files[1]) }, "not in its place"},
		"the head removed":      {func(dir string, _ []string) error { return os.Remove(filepath.Join(dir, "audit.jsonl.head")) }, "no head"},
		"the head of a new log": {func(dir string, _ []string) error {
			return os.WriteFile(filepath.Join(dir, "audit.jsonl.head"), []byte("{}"), 0o600)
		}, "no head"},
		"an older head and tail": {olderHead, "are missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := written(t, 23, small)
			files, _ := linesOf(t, dir)
			if err := tt.do(dir, files); err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(verified(t, dir).Problems, "\n"); !strings.Contains(said, tt.want) {
				t.Errorf("it does not say %q:\n%s", tt.want, said)
			}
			writeMore(t, dir, 2, small)
			if said := strings.Join(verified(t, dir).Problems, "\n"); said == "" {
				t.Error("after the next start nothing is wrong any more")
			}
		})
	}
}

func exchange(a, b string) error {
	x, errA := os.ReadFile(a)
	y, errB := os.ReadFile(b)
	if errA != nil || errB != nil {
		return fmt.Errorf("%v, %v", errA, errB)
	}
	if err := os.WriteFile(a, y, 0o600); err != nil {
		return err
	}
	return os.WriteFile(b, x, 0o600)
}

// olderHead counts fewer lines than there are, with a seal that somebody without the key has made up.
func olderHead(dir string, files []string) error {
	name := filepath.Join(dir, "audit.jsonl.head")
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	text = bytes.Replace(text, []byte(`"lines":23`), []byte(`"lines":20`), 1)
	if err := os.WriteFile(name, text, 0o600); err != nil {
		return err
	}
	return os.Remove(files[2])
}

// A process that is killed in the middle of a line leaves its beginning.
func TestAnUnfinishedLineIsCutOffAndToldOf(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	_, lines := linesOf(t, dir)
	appendTo(t, name, lines[4][:37])
	if r := verified(t, dir); len(r.Problems) > 0 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "37 bytes") {
		t.Errorf("before the start: %+v", r)
	}
	writeMore(t, dir, 1)
	r := verified(t, dir)
	if len(r.Problems) > 0 || r.Lines != 7 || len(r.Notes) != 1 || !strings.Contains(r.Notes[0], "a process was killed while it wrote line 6") {
		t.Errorf("after it: %+v", r)
	}
}

// A process that is killed after its lines and before the head has written them.
func TestLinesBehindTheHeadAreTakenOver(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	h, err := names{name}.readHead(testKey)
	if err != nil {
		t.Fatal(err)
	}
	text, at, err := appendLine(testKey, nil, h.next(), Entry{Event: Called})
	if err != nil {
		t.Fatal(err)
	}
	text, _, err = appendLine(testKey, text, at, Entry{Event: Answered})
	if err != nil {
		t.Fatal(err)
	}
	appendTo(t, name, append(text, text[:10]...)) // and a bit of a third
	writeMore(t, dir, 2)
	if r := verified(t, dir); len(r.Problems) > 0 || r.Lines != 10 {
		t.Errorf("%+v", r)
	}
}

// A process that is killed while it begins a new file leaves none that is written.
func TestKilledWhileANewFileIsBegun(t *testing.T) {
	dir := written(t, 5)
	name := filepath.Join(dir, "audit.jsonl")
	if err := os.Rename(name, names{name}.full(1)); err != nil {
		t.Fatal(err)
	}
	writeMore(t, dir, 2)
	if r := verified(t, dir); len(r.Problems)+len(r.Notes) > 0 || r.Lines != 7 || r.Files != 2 {
		t.Errorf("%+v", r)
	}
}

func appendTo(t *testing.T, name string, text []byte) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_WRONLY, 0)
	if err == nil {
		_, err = f.Write(text)
		err = cmpErr(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

func cmpErr(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func TestArchivedFiles(t *testing.T) {
	dir := written(t, 23, small)
	files, lines := linesOf(t, dir)
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files[0]); err != nil {
		t.Fatal(err)
	}
	gone := uint64(bytes.Count(text, []byte("\n")))
	path := filepath.Join(dir, "audit.jsonl")
	if r, err := Verify(path, testKey, gone+1); err != nil || len(r.Problems) > 0 || r.Lines != uint64(len(lines))-gone {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := Verify(path, testKey, gone); err != nil || len(r.Problems) != 1 {
		t.Errorf("one too many: %+v, %v", r, err)
	}
}

// Several processes write one log.
func TestWritersSideBySide(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for range 4 {
		l := openLog(t, dir, small)
		wg.Go(func() {
			for range 200 {
				l.Append(Entry{Event: Answered, Tool: "execute_python"})
			}
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if r := verified(t, dir); r.Lines != 800 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
}

// broken keeps a log from being written, and returns what makes it good again.
func broken(t *testing.T, dir string) (mend func()) {
	t.Helper()
	in := filepath.Join(dir, "audit.jsonl.lock") // a folder where a file is to be
	if err := errors.Join(os.RemoveAll(in), os.Mkdir(in, 0o700)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(in); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWhatCannotBeWrittenIsWrittenLater(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	mend := broken(t, dir)
	for range 3 {
		l.Append(Entry{Event: Answered})
	}
	l.Required = true // to wait for the writer, which does not keep what somebody waits for
	if err := l.Require(t.Context(), Entry{Event: Called}); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("a call goes on without its line: %v", err)
	}
	if err := l.Health(); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("health: %v", err)
	}
	mend()
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Error(err)
	}
	if err := l.Health(); err != nil {
		t.Errorf("health: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if r := verified(t, dir); r.Lines != 4 || len(r.Problems)+len(r.Notes) > 0 {
		t.Errorf("%+v", r)
	}
}

func TestWhatIsLostIsCounted(t *testing.T) {
	dir := t.TempDir()
	l := openLog(t, dir)
	mend := broken(t, dir)
	for range 2*maxKept + 7 { // the queue and what is kept hold so many at the most
		l.Append(Entry{Event: Answered})
	}
	l.Required = true
	for { // until there is room, and then until the writer has seen all before it
		if err := l.Require(t.Context(), Entry{Event: Called}); err == nil {
			t.Fatal("nothing is broken")
		} else if !strings.Contains(err.Error(), "too much waits") {
			break
		}
		runtime.Gosched()
	}
	mend()
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	r := verified(t, dir)
	_, lines := linesOf(t, dir)
	var lost line
	for _, text := range lines {
		var l line
		if _, err := unsealed(testKey, bytes.TrimSuffix(text, []byte("\n")), &l); err == nil && l.Event == Lost {
			lost = l
		}
	}
	if told := r.Lines - 2 + lost.Count; lost.Count == 0 || told != 2*maxKept+7 || len(r.Notes) != 1 {
		t.Errorf("%d lines and %d lost, of %d: %v", r.Lines, lost.Count, 2*maxKept+7, r.Notes)
	}
}

func TestRequiredLogThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	broken(t, dir)
	o := Options{Path: filepath.Join(dir, "audit.jsonl"), Key: testKey, Required: true, Logger: quiet}
	if _, err := Open(o); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("%v", err)
	}
	o.Required = false
	l, err := Open(o)
	if err != nil || l.Health() == nil {
		t.Errorf("%v, %v", err, l.Health())
	}
	if err := l.Require(t.Context(), Entry{Event: Called}); err != nil {
		t.Errorf("a log that is not required held up a call: %v", err)
	}
	if err := l.Close(); err == nil {
		t.Error("Close says nothing of what is lost")
	}
}

func TestRequireEndsWithItsCall(t *testing.T) {
	l := openLog(t, t.TempDir(), func(o *Options) { o.Required = true })
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 100 { // the disk is mostly slower
		if err := l.Require(ctx, Entry{Event: Called}); err != nil {
			return
		}
	}
	t.Error("a call that was given up waited for the disk a hundred times")
}

func TestCodeIsLeftOutUnlessItIsWanted(t *testing.T) {
	for _, want := range []bool{false, true} {
		dir := t.TempDir()
		l := openLog(t, dir, func(o *Options) { o.Code = want })
		l.Append(Entry{Event: Called, Code: "secret = 1", CodeBytes: 10, Reason: strings.Repeat("r", 5000), Files: make([]string, 500)})
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		_, lines := linesOf(t, dir)
		if got := bytes.Contains(lines[0], []byte("secret = 1")); got != want {
			t.Errorf("code %v: %s", want, lines[0])
		}
		if len(lines[0]) > 3000 || !bytes.Contains(lines[0], []byte(`"more_files":400`)) {
			t.Errorf("not bounded: %d bytes", len(lines[0]))
		}
	}
}

// TestNothingThatACallerSendsMakesALineLong: the longest line would fill the disk, or be too long to be read again.
func TestNothingThatACallerSendsMakesALineLong(t *testing.T) {
	long := strings.Repeat("<", 16<<20) // six bytes each in JSON
	dir := t.TempDir()
	l := openLog(t, dir, func(o *Options) { o.Code = true })
	e := Entry{Event: Called, Files: []string{long, "short"}, Session: long, Code: long}
	l.Append(e)
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if e.Files[0] != long {
		t.Error("the caller's own list was changed")
	}
	_, lines := linesOf(t, dir)
	if most := 6*maxCode + 10*6*maxText; len(lines) != 1 || len(lines[0]) > most || !bytes.Contains(lines[0], []byte(`"short"`)) {
		t.Errorf("%d lines, the first of %d bytes, more than %d", len(lines), len(lines[0]), most)
	}
	if r := verified(t, dir); r.Lines != 1 || len(r.Problems) > 0 {
		t.Errorf("verified: %+v", r)
	}
}

func TestKey(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadKey(dir); err == nil {
		t.Error("a key for verifying was made up")
	}
	key, err := Key(dir)
	if err != nil || len(key) != keyBytes {
		t.Fatal(key, err)
	}
	if again, err := ReadKey(dir); err != nil || !bytes.Equal(key, again) {
		t.Error(again, err)
	}
	if info, err := os.Stat(filepath.Join(dir, KeyName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, KeyName), []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Key(dir); fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
}

func TestNothingToVerify(t *testing.T) {
	if _, err := Verify(filepath.Join(t.TempDir(), "audit.jsonl"), testKey, 1); fault.KindOf(err) != fault.NotFound {
		t.Error(err)
	}
	var none *Log
	none.Append(Entry{})
	if err := none.Require(t.Context(), Entry{}); err != nil || none.Health() != nil || none.Close() != nil {
		t.Error("a log that is none does something")
	}
}

func BenchmarkAppend(b *testing.B) {
	l, err := Open(Options{Path: filepath.Join(b.TempDir(), "audit.jsonl"), Key: testKey, Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	e := Entry{Event: Answered, Issuer: "https://issuer", Subject: "ann", Tool: "execute_python", Session: "analysis", Status: "ok"}
	b.ReportAllocs()
	for b.Loop() {
		l.Append(e)
	}
}
