package audit

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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

// Whatever is in the place of a log, either it begins with all that was written, or Verify says that something is wrong.
func FuzzVerify(f *testing.F) {
	whole := written(f, 3)
	head, err := os.ReadFile(filepath.Join(whole, "audit.jsonl.head"))
	if err != nil {
		f.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(whole, "audit.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	f.Add(text)
	f.Add(rest)
	f.Add(slices.Concat(rest, first))
	f.Add(slices.Concat(text, []byte(`{"seq":4,"before":"`)))
	f.Add([]byte("{\"seq\":18446744073709551615}\n{}\n[]\n\n\xff"))
	f.Fuzz(func(t *testing.T, put []byte) {
		dir := t.TempDir()
		for name, content := range map[string][]byte{"audit.jsonl": put, "audit.jsonl.head": head} {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if r := verified(t, dir); len(r.Problems) == 0 && !bytes.HasPrefix(put, text) {
			t.Errorf("%q is said to hold: %+v", put, r)
		}
	})
}
