package mcpserver

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"cellblock/internal/words"
	"cellblock/kernels"
)

func TestPlain(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "a\tb\nc", "a\tb\nc"},
		{"CRLF", "a\r\nb\r\n", "a\nb\n"},
		{"overwritten", "12345\rab", "ab345"},
		{"progress", " 10%\r 20%\r100%\ndone", "100%\ndone"},
		{"erased", "long line\r\x1b[Kshort", "short"},
		{"erased whole", "long\x1b[2Kx", "    x"},
		{"erased to the cursor", "long\b\b\x1b[1Kx", "  xg"},
		{"backspace", "ab\bc", "ac"},
		{"backspace at the start", "\b\bx", "x"},
		{"bars on two lines", "a 0%\nb 0%\x1b[A\ra 9%\n\rb 9%", "a 9%\nb 9%"},
		{"a spinner", "⠙\x1b[1G\x1b[0K⠹\x1b[1G\x1b[0Kdone", "done"},
		{"to a column", "abcdef\x1b[3Gx\x1b[Gy", "ybxdef"},
		{"to a column far away", "ab\x1b[999999999Gc", "abc"},
		{"back", " 10%\x1b[4D 20%\x1b[999D100%", "100%"},
		{"up to a line's begin", "a 0%\nb 0%\x1b[Fa 9%\n", "a 9%\nb 0%"},
		{"erased below", "a\nb\nc\x1b[2F\x1b[Jd\ne", "d\ne"},
		{"a cleared screen", "a\x1b[2Jb", "ab"},
		{"up beyond the top", "a\n\x1b[99Ax", "x\n"},
		{"up beside a shorter line", "a\nlong line\x1b[Ab", "a        b\nlong line"},
		{"up beside many shorter lines", strings.Repeat("\n", 3) + "123456" + strings.Repeat("\x1b[A|", 3), " |\n|\n      |\n123456"},
		{"colours", "\x1b[1;31mred\x1b[0m", "red"},
		{"8-bit CSI", "\u009b31mred", "red"},
		{"title", "\x1b]0;title\x07text", "text"},
		{"link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"character set", "\x1b(Btext", "text"},
		{"unknown escape", "\x1b=text", "text"},
		{"broken off", "text\x1b[3", "text"},
		{"broken off too", "text\x1b", "text"},
		{"sequence in a sequence", "\x1b[3\x1b[1mx", "x"},
		{"a string without end", "\x1b]0;" + strings.Repeat("x", 5000), "0;" + strings.Repeat("x", 5000)},
		{"control characters", "a\x00\x07\x7fb", "ab"},
		{"invalid UTF-8", "a\xff\xfeb", "a�b"},
		{"wide", "漢字\r国", "国字"},
		{"many lines", strings.Repeat("x\r\n", 100), strings.Repeat("x\n", 100)},
		{"huge count", "a\n\x1b[99999999999999999999Ab", "b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := plain(tt.in); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func FuzzPlain(f *testing.F) {
	for _, s := range []string{"a\rb", "\x1b[31mx\x1b[0m", "\x1b[2K\x1b[A", "a\nb\x1b[9Gc\x1b[F\x1b[Jd\x1b[2De", "\x1b]0;t\x07", "\u009b1A", "\x1b[", "a\xffb\b", "\xe0\u0085", "\xc2",
		strings.Repeat("\n", screenRows) + strings.Repeat("x", 1000) + strings.Repeat("\x1b[Ay", screenRows)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if got := hasControl(s); got != strings.ContainsFunc(s, isControl) {
			t.Errorf("a control character in it: %t", got)
		}
		got := plain(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, isControl) {
			t.Errorf("%q", got)
		}
		if again := plain(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
		if len(got) > 4*len(s) {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
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

func FuzzErrorText(f *testing.F) {
	f.Add("E", "v", "Cell In[1], line 2\n----> 2 x\n", "E: v")
	f.Add("SyntaxError", "v", "  Cell In[1], line 2\n    x = = 1\n        ^\nSyntaxError: v", "")
	f.Add("E", "", "File /usr/lib/python3/x.py:3, in f()\n", "    [... skipping similar frames: r at line 2 (2971 times)]")
	f.Fuzz(func(t *testing.T, name, value, a, b string) {
		got := errorText(kernels.ExecError{Name: name, Value: value, Traceback: []string{a, b, a, a, b}}, 3)
		if !utf8.ValidString(got) || utf8.RuneCountInString(got) > 4*maxMessage+200 {
			t.Errorf("%d bytes", len(got))
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add("<p>a<b>b</b><table><tr><td>1<td>2")
	f.Add("<script>x</script></script></pre><pre> a\n b")
	f.Fuzz(func(t *testing.T, s string) {
		if got := htmlText(s); len(got) > 8*len(s)+16 {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}

func FuzzArea(f *testing.F) {
	f.Add("a\r", "text/html", "<p>x", "d", true)
	f.Fuzz(func(t *testing.T, s, mime, value, id string, wait bool) {
		outs := []kernels.Output{
			stdout(s), stderr(s), withID(id, kernels.OutputDisplay, display(mime, value, "text/plain", s)), {Kind: kernels.OutputClear, Wait: wait},
			withID(id, kernels.OutputUpdate, display(mime, value)), display("image/png", value, "image/gif", s), stdout(s),
		}
		for _, b := range render(outs...) {
			if s := fmt.Sprint(b); !utf8.ValidString(s) {
				t.Errorf("%q", s)
			}
		}
	})
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1000: "-1,000"} {
		if got := words.Thousands(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
	for n, want := range map[int64]string{512: "512 bytes", 2 << 30: "2 GiB", 1536 << 20: "1.5 GiB"} {
		if got := words.Bytes(n); got != want {
			t.Errorf("%d: %s", n, got)
		}
	}
}

// What a kernel shows can be made to be of the same in great number: the time that it takes to read grows with its length, and not with
// the square of it.
func TestLongTextsAreReadOnce(t *testing.T) {
	const many, most = 100_000, 10 * time.Second // it takes a hundredth
	for name, read := range map[string]func(){
		"empty lines":  func() { foldRepeats(strings.Repeat("\n", many), false) },
		"blank lines":  func() { foldRepeats(strings.Repeat("  \n", many), false) },
		"erased lines": func() { plain(strings.Repeat("x\x1b[2K", many)) },
		"erased beginnings": func() {
			plain(strings.Repeat("x", 4*many) + strings.Repeat("\x1b[1K", many))
		},
		"cells and rows": func() { htmlText("<table><tr>" + strings.Repeat("<td>", many) + strings.Repeat("<tr>", many)) },
		"tables in each other": func() {
			htmlText(strings.Repeat("<table><td>", many) + strings.Repeat("text ", many))
		},
	} {
		start := time.Now()
		if read(); time.Since(start) > most {
			t.Errorf("%s take %s", name, time.Since(start))
		}
	}
}

// Tables that are too deep are parts of the one around them, and what follows them is where it was.
func TestHTMLTablesInEachOther(t *testing.T) {
	within := strings.Repeat("<table><tr><td>", 100) + "deep" + strings.Repeat("</td></tr></table>", 100)
	if got, want := htmlText("<table><tr><td>a</td><td>"+within+"</td><td>b</td></tr><tr><td>c</td></tr></table>d"), "a | deep | b\nc\nd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A cell that reaches down stands in each row of a table that it reaches into, and not behind one that ends before it.
func TestHTMLCellsOfSeveralRows(t *testing.T) {
	for source, want := range map[string]string{
		"<tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e":                              "a | b\n | c\nd | e",
		"<tr><td>a<td rowspan=3>b<tr><td>c<tr><td>d<tr><td>e<td>f":                     "a | b\nc | \nd | \ne | f",
		"<tr><td>a<td>b<td rowspan=3>c<tr><td>d<tr><td>e<td>f<td>g<tr><td>h<td>i<td>j": "a | b | c\nd\ne | f |  | g\nh | i | j",
	} {
		if got := htmlText("<table>" + source); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}
