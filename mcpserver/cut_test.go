package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// chars counts what a model reads.
func chars(blocks []mcp.Content) (text, images int) {
	for _, b := range blocks {
		switch c := b.(type) {
		case mcp.TextContent:
			text += utf8.RuneCountInString(c.Text)
		case mcp.ImageContent:
			images += len(c.Data)
		}
	}
	return text, images
}

func TestBudget(t *testing.T) {
	lines := func(n int) string { // of which none comes again at once
		return strings.Repeat(strings.Repeat("x", 99)+"\n"+strings.Repeat("y", 99)+"\n", n/2)
	}
	longError := kernels.Output{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "ValueError", Value: "the end",
		Traceback: []string{"Cell In[1], line 7\n----> 7 boom()", "ValueError: the end"}}}
	for _, tt := range []struct {
		name  string
		outs  []kernels.Output
		words []string
	}{
		{"one long text", []kernels.Output{stdout("first\n"), stdout(lines(10_000)), stdout("last\n")},
			[]string{"first\n", "characters (9,6", "left out here", "\nlast"}},
		{"a flood of small texts", slices.Repeat([]kernels.Output{stdout("tick\n"), stdout("tock\n")}, 150_000), []string{"left out here"}},
		{"a flood in two streams", slices.Repeat([]kernels.Output{stdout("o\n"), stderr("e\n")}, 50_000), []string{"o\n[stderr] e\no\n", "left out here"}},
		{"a flood of displays", slices.Repeat([]kernels.Output{display("text/plain", "shown")}, 5000), []string{"left out here"}},
		{"an error after a flood", []kernels.Output{stdout(lines(50_000)), longError}, []string{"Cell In[1], line 7", "ValueError: the end"}},
		{"wide characters", []kernels.Output{stdout(strings.Repeat("漢字", 100_000))}, []string{"left out here"}},
		{"already elided", []kernels.Output{stdout(lines(1000)), elided(stream.Elided{Stream: "stdout", Bytes: 1_000_000_000, Lines: 5}), stdout(lines(1000))},
			[]string{"… 1,000,160", "left out here, of which 160,", " are kept and the others lost …"}},
		{"one line", []kernels.Output{stdout(strings.Repeat("0123456789", 1_000_000))}, []string{"characters left out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			blocks := render(tt.outs...)
			n, _ := chars(blocks)
			if n > defaultBudget.chars+200 || n < defaultBudget.chars/10 || len(blocks) > maxBlocks {
				t.Errorf("%d characters in %d blocks", n, len(blocks))
			}
			got := dump(blocks)
			for _, w := range tt.words {
				if !strings.Contains(got, w) {
					t.Errorf("it does not say %q: %.300s … %s", w, got, got[max(0, len(got)-300):])
				}
			}
			if strings.Count(got, "left out here") != 1 {
				t.Errorf("it says %d times that something is left out", strings.Count(got, "left out here"))
			}
		})
	}
}

// Nothing is lost between what is shown and what is said to be left out.
func TestCutCountsExactly(t *testing.T) {
	line := strings.Repeat("y", 63) + "\n"
	for _, n := range []int{624, 625, 626, 700, 5000, 40_000} {
		lines := strings.Repeat(line+strings.ToUpper(line), n/2) + strings.Repeat(line, n%2) // of which none comes again at once
		blocks := render(stdout(lines), display("image/png", drawing(2, 2, false)), stdout(lines))
		shown, images := 0, 0
		var missing int
		for _, b := range blocks {
			switch c := b.(type) {
			case mcp.TextContent:
				shown += strings.Count(strings.ToLower(c.Text), "y")
				if i := strings.Index(c.Text, "… "); i >= 0 {
					fmt.Sscanf(strings.ReplaceAll(c.Text[i:], ",", ""), "… %d", &missing)
				}
			case mcp.ImageContent:
				images++
			}
		}
		if got := shown + missing*63/64; images != 1 || got < 2*n*63-1 || got > 2*n*63+1 {
			t.Errorf("%d lines: %d shown, %d left out (%d characters), %d images", n, shown, missing*63/64, missing, images)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add("line\nline\n", 5, "tail")
	f.Add("漢字", 1, "")
	f.Fuzz(func(t *testing.T, a string, n int, b string) {
		if n < 0 || n > 1<<20 {
			return
		}
		a, b = strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, "")
		head, tail := firstChars(a, n), lastChars(a, n)
		if !strings.HasPrefix(a, head) || !strings.HasSuffix(a, tail) || utf8.RuneCountInString(head) > n || utf8.RuneCountInString(tail) > n {
			t.Errorf("%q %d: %q and %q", a, n, head, tail)
		}
		pieces := append(append(textPieces(a, false), textPieces(b, true)...), textPieces(a+b, false)...)
		total, shown := left{}, left{}
		for _, p := range pieces {
			total = total.plus(leftOf(p.text))
		}
		for _, p := range cutPieces(pieces, n) {
			shown = shown.plus(leftOf(p.text)).plus(p.missing)
		}
		if shown.chars > total.chars || total.chars-shown.chars > int64(len(a)+len(b))*3 {
			t.Errorf("%d characters became %d", total.chars, shown.chars)
		}
	})
}
