package audit

import (
	"bytes"
	"strings"
	"testing"
)

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
