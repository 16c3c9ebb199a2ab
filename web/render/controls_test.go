package render

import (
	"strings"
	"testing"
)

// What turns a line around is named, in code too, where it would hide what runs; what would be drawn though no terminal shows it is
// left out.
func TestControlsAreNotDrawn(t *testing.T) {
	const turned = "a = '\u202egnp.exe\u2066'"
	const want = `\u202egnp.exe\u2066`
	made := all(turned)
	for _, name := range []string{"python", "bash", "unknown", "terminal", "error", "a bundle of text/plain"} {
		if !strings.Contains(untagged(made[name]), want) {
			t.Errorf("%s: %s", name, made[name])
		}
	}
	for text, want := range map[string]string{
		"ding\a!": "ding!", "a\x00b\x7fc\u0085d": "abcd", "a\vb\fc": "a\nb\nc", "10%\r20%": "20%", "ab\bc": "ac", "\x1b]0;title\adone": "done", "x\a\u202ey": `x\u202ey`,
	} {
		if made := string(joined(Terminal(text))); made != want {
			t.Errorf("%q is drawn as %q, want %q", text, made, want)
		}
	}
}
