package terminal

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What goes out line by line is what a terminal shows of the whole.
func FuzzScreen(f *testing.F) {
	f.Add("a\rb\nc", "\x1b[2K\n\n\x1b[A", 3)
	f.Fuzz(func(t *testing.T, a, b string, cut int) {
		text := strings.ToValidUTF8("\r"+a+b, "?")
		if cut < 0 || cut > len(text) || !utf8.ValidString(text[:cut]) {
			return
		}
		var got strings.Builder
		s := Screen{Out: func(text string) { got.WriteString(text) }}
		s.Write(text[:cut])
		s.Write(text[cut:])
		s.Flush()
		// A control string may not end with its line; then the two differ in where it ends.
		if want := Plain(text); got.String() != want && !strings.ContainsAny(text, "\x1b\u0090\u0098\u009b\u009d\u009e\u009f") {
			t.Errorf("%q: got %q, want %q", text, got.String(), want)
		}
	})
}
