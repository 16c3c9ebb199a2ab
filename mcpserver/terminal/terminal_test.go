package terminal

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"
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
			if got := Plain(tt.in); got != tt.want {
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
		if got := hasControl(s); got != strings.ContainsFunc(s, IsControl) {
			t.Errorf("a control character in it: %t", got)
		}
		got := Plain(s)
		if !utf8.ValidString(got) || strings.ContainsFunc(got, IsControl) {
			t.Errorf("%q", got)
		}
		if again := Plain(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
		if len(got) > 4*len(s) {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}

// What a program writes can be made to erase in great number: the time that it takes to read grows with its length, and not with the
// square of it.
func TestLongTextsAreReadOnce(t *testing.T) {
	const many, most = 100_000, 10 * time.Second // it takes a hundredth
	for name, text := range map[string]string{
		"erased lines":      strings.Repeat("x\x1b[2K", many),
		"erased beginnings": strings.Repeat("x", 4*many) + strings.Repeat("\x1b[1K", many),
	} {
		start := time.Now()
		if Plain(text); time.Since(start) > most {
			t.Errorf("%s take %s", name, time.Since(start))
		}
	}
}
