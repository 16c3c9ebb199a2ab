package mcpserver

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/sessions"
)

// A warning that comes again and again is told once. What differs, what is short, and what stdout has are told as they are,
// but for a line without end.
func TestRepeatsAreFolded(t *testing.T) {
	var b strings.Builder
	for i := range 8 {
		fmt.Fprintf(&b, "warning: line %d of eight, which are the same\n", i)
	}
	warning, line := b.String(), strings.Repeat("x", 99)+"\n"
	told := strings.TrimSpace(warning)
	for name, tt := range map[string]struct {
		outs []kernels.Output
		want string
	}{
		"several lines":  {[]kernels.Output{stderr("first\n" + strings.Repeat(warning, 60) + "last\n")}, text("[stderr]\nfirst\n" + told + "\n… the same 8 lines 59 times more …\nlast")},
		"one line":       {[]kernels.Output{stderr(strings.Repeat(line, 4) + warning + warning)}, text("[stderr] " + line + "… the same line 3 times more …\n" + told + "\n… the same 8 lines once more …")},
		"stdout goes on": {[]kernels.Output{stderr(warning + warning), stdout("a\n")}, text("[stderr]\n"+told+"\n… the same 8 lines once more …", "a")},
		"short":          {[]kernels.Output{stderr("a\na\na\n")}, text("[stderr]\na\na\na")},
		"stdout":         {[]kernels.Output{stdout(warning + warning)}, text(told + "\n" + told)},
		"a flood": {[]kernels.Output{stdout("a\n" + strings.Repeat("flood\n", 1000) + "b\n" + strings.Repeat("0\n", 19) + strings.Repeat("\n", 300) + "c\n")},
			text("a\nflood\n… the same line 999 times more …\nb\n" + strings.Repeat("0\n", 19) + strings.Repeat("\n", 300) + "c")},
		"a flood that ends in the middle": {[]kernels.Output{stdout(strings.Repeat("flood\n", 100) + "flo")}, text("flood\n… the same line 99 times more …\nflo")},
		"only in between":                 {[]kernels.Output{stderr(warning + "b\n" + warning)}, text("[stderr]\n" + told + "\nb\n" + told)},
	} {
		if got := dump(render(tt.outs...)); got != tt.want {
			t.Errorf("%s: it is told as %s", name, got)
		}
	}
}

// A warning between prints is told once, too, and what was printed stands together. What is short is told at each place.
func TestRepeatsBetweenPrintsAreFolded(t *testing.T) {
	warning := "/lib/x.py:7: FutureWarning: " + strings.Repeat("x", 80) + "\n  warn(message)\n"
	told := strings.TrimSpace(warning)
	for name, tt := range map[string]struct {
		often    int
		between  string
		want     string
		finished string
	}{
		"a few":  {3, warning, text("fold 0", "[stderr]\n"+told+"\n… the same 2 lines 2 times more, between what follows …", "fold 1\nfold 2"), ""},
		"many":   {100, warning, "… the same 2 lines 99 times more, between what follows …\n── text\nfold 1\nfold 2\nfold 3\n", "fold 98\nfold 99\n"},
		"twice":  {2, "warning: " + strings.Repeat("x", 99) + "\n", "\n── text\nfold 1\n── text\n[stderr] warning", ""},
		"short":  {100, "failed\n", "fold 0\n[stderr] failed\nfold 1\n[stderr] failed\n", "fold 99\n[stderr] failed\n"},
		"differ": {3, "", "[stderr] " + strings.Repeat("y", 99) + "1\n── text\nfold 2\n", ""},
	} {
		var outs []kernels.Output
		for i := range tt.often {
			between := tt.between
			if between == "" {
				between = fmt.Sprintf("%s%d\n", strings.Repeat("y", 99), i)
			}
			outs = append(outs, stdout(fmt.Sprintf("fold %d\n", i)), stderr(between))
		}
		got := dump(render(append(outs, stdout("end\n"))...))
		want := strings.TrimSuffix(tt.want, "\n")
		if !strings.Contains(got, want) || !strings.Contains(got, tt.finished) || !strings.Contains(got, "end\n") {
			t.Errorf("%s: it is told as %s", name, got)
		}
	}
}

// Where text is left out beside what is folded, the count and the place to read on are those of the whole.
func TestFoldedTextCounts(t *testing.T) {
	a := newArea()
	a.place = place{session: "s", execution: 3}
	line := strings.Repeat("w", 99) + "\n"
	var rest strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&rest, "%099d\n", i)
	}
	a.add(stderr(strings.Repeat(line, 500) + rest.String()))
	got := dump(a.blocks(defaultBudget, bounds{}))
	if !strings.Contains(got, "the same line 499 times more") || !strings.Contains(got, "offset=") {
		t.Fatalf("it is told as %s", got)
	}
	var offset int
	_, after, _ := strings.Cut(got, "offset=")
	fmt.Sscan(strings.SplitN(after, ")", 2)[0], &offset)
	shown := strings.Count(got[:strings.Index(got, "offset=")], "\n0000")
	if want := len("[stderr] ") + (500+shown)*100; offset < want-20 || offset > want+20 {
		t.Errorf("it reads on from %d, and %d is missing: %.800s", offset, want, got)
	}
}

// A place to read on from behind what was folded is the same in the whole text.
func TestFoldedTurnsCount(t *testing.T) {
	a := newArea()
	a.place = place{session: "s", execution: 3}
	whole := transcript{to: 1 << 30}
	whole.screen.Out = whole.take
	for i := range 1000 {
		for _, out := range []kernels.Output{stdout(fmt.Sprintf("%099d\n", i)), stderr(strings.Repeat("w", 99) + "\n")} {
			a.add(out)
			whole.add(sessions.Numbered{Output: out})
		}
	}
	whole.screen.Flush()
	got := dump(a.blocks(defaultBudget, bounds{}))
	before, after, _ := strings.Cut(got, "offset=")
	var offset int
	fmt.Sscan(strings.SplitN(after, ")", 2)[0], &offset)
	lines := strings.Split(before, "\n")
	if last := lines[len(lines)-2]; !strings.HasSuffix(strings.TrimRight(whole.text.String()[:offset], "\n[] stderw"), strings.TrimLeft(last, "0")) {
		t.Errorf("it reads on from %d, behind %q:\n%.300s", offset, last, got)
	}
}

// Where a warning is left out in the middle, its repetitions behind that are not silent.
func TestRepeatsOfWhatIsLeftOut(t *testing.T) {
	for first, want := range map[int]string{0: "left out here", 250: " lines), among them what stderr says again 143 times between what follows, left out here"} {
		var outs []kernels.Output
		for i := range 600 {
			outs = append(outs, stdout(fmt.Sprintf("%0100d\n", i)))
			if i >= first {
				outs = append(outs, stderr(strings.Repeat("w", 100)+"\n"))
			}
		}
		got := dump(render(outs...))
		if told := strings.Contains(got, "times more, between what follows"); !strings.Contains(got, want) || told != (first == 0) || strings.Contains(got, "among them") != (first > 0) {
			t.Errorf("from line %d on: %.200s … %s", first, got, got[strings.Index(got, "left out")-200:][:300])
		}
	}
}

// Of a value that nobody printed less is told than of what was printed, and all of it can be read.
func TestLongValue(t *testing.T) {
	long := strings.Repeat("0123456789", 2000)
	a := newArea()
	a.place = place{session: "s", execution: 3}
	a.add(result(long))
	blocks := a.blocks(defaultBudget, bounds{})
	if n, _ := chars(blocks); len(blocks) != 1 || n < maxValue || n > maxValue+200 {
		t.Errorf("%d blocks with %d characters", len(blocks), n)
	}
	if got := dump(blocks); !strings.Contains(got, "… 12,000 characters left out here") || !strings.Contains(got, "offset=4000)") {
		t.Errorf("it is told as %s", got)
	}
	for name, out := range map[string]kernels.Output{
		"printed": stdout(long), "displayed": display("text/plain", long), "just as long": result(long[:maxValue]),
	} {
		if got := dump(render(out)); strings.Contains(got, "left out") {
			t.Errorf("%s: something is left out", name)
		}
	}
}

// Of bytes that are no text only the ends are told, however they were printed, and all of them can be read. A text with a few such stays.
func TestPrintedBytes(t *testing.T) {
	random := make([]byte, 8000)
	rand.NewChaCha8([32]byte{}).Read(random)
	for name, tt := range map[string]struct {
		out    kernels.Output
		binary bool
	}{
		"as Python writes them": {stdout(strings.ToValidUTF8(string(random), "\uFFFD")), true},
		"as Bash has them":      {stdout(strings.Repeat(`\xff\x80Q`, 2000)), true},
		"as a value's text":     {stdout(fmt.Sprintf("b'%s'", strings.Repeat(`\x00\x01abc`, 2000))), true},
		"on stderr":             {stderr(strings.Repeat(`\xff\x80Q`, 2000)), true},
		"few":                   {stdout(strings.Repeat(`\xff\x80Q`, 100)), false},
		"a text of Latin-1":     {stdout(strings.Repeat("sch\uFFFDne Gr\uFFFD\uFFFDe aus der gro\uFFFDen Stadt, die ich nicht mehr gesehen habe und sehr vermisse ", 100)), false},
		"a text of Latin-2":     {stdout(strings.Repeat("Jeste\uFFFD jak zdrowie; ile ci\uFFFD trzeba ceni\uFFFD, ten tylko si\uFFFD dowie, kto ci\uFFFD straci\uFFFD. ", 100)), false},
		"paths of Windows":      {stdout(strings.Repeat("C:\\xampp\\a.php ", 600)), false},
		"a text":                {stdout(strings.Repeat("0123456789", 1000)), false},
	} {
		blocks := render(tt.out)
		if n, _ := chars(blocks); tt.binary && (n > maxBinary+200 || len(blocks) != 1) || strings.Contains(dump(blocks), "left out here") != tt.binary {
			t.Errorf("%s: it is told as %d characters in %d blocks", name, n, len(blocks))
		}
	}
}

// Empty and blank lines in great number take time that grows with their number, and not with the square of it.
func TestManyLinesAreFoldedOnce(t *testing.T) {
	const many, most = 100_000, 10 * time.Second // it takes a hundredth
	for _, line := range []string{"\n", "  \n"} {
		start := time.Now()
		if foldRepeats(strings.Repeat(line, many), false); time.Since(start) > most {
			t.Errorf("%q: %s", line, time.Since(start))
		}
	}
}
