package mcpserver

import (
	"strings"
	"unicode/utf8"

	"cellblock/internal/words"
)

// left counts what is left out at one place.
type left struct {
	chars, lines int64
	outputs      int64 // whole outputs that are no text
	lost         int64 // of the chars, how many are kept nowhere
	below        int64 // how often it comes again, untold, in what is told below
}

func (l left) plus(m left) left {
	return left{l.chars + m.chars, l.lines + m.lines, l.outputs + m.outputs, l.lost + m.lost, l.below + m.below}
}

func (l left) none() bool { return l == left{} }

// String is the line that stands where something is left out.
func (l left) String() string { return l.text("") }

// text is String, and how to read on.
func (l left) text(readOn string) string {
	var parts []string
	if l.chars > 0 || l.outputs == 0 {
		part := words.Count(l.chars, "character")
		if l.lines > 0 {
			part += " (" + words.Count(l.lines, "line") + ")"
		}
		parts = append(parts, part)
	}
	if l.outputs > 0 {
		parts = append(parts, words.Count(l.outputs, "output"))
	}
	again := ""
	if l.below > 0 {
		again = ", among them what stderr says again " + words.Count(l.below, "time") + " between what follows,"
	}
	return "… " + strings.Join(parts, " and ") + again + " left out here" + l.keptText() + readOn + " …"
}

// keptText says how much of the characters is kept, where that is not all.
func (l left) keptText() string {
	switch {
	case l.lost == 0:
		return ""
	case l.lost >= l.chars:
		return ": they are not kept"
	}
	return ", of which " + words.Thousands(l.chars-l.lost) + " are kept and the others lost"
}

// leftOf counts text.
func leftOf(s string) left {
	return left{chars: int64(utf8.RuneCountInString(s)), lines: int64(strings.Count(s, "\n"))}
}

// firstChars returns the first n characters of s, without its last line where that is cut off, unless too little would be
// left.
func firstChars(s string, n int) string {
	end := runeOffset(s, n)
	if end == len(s) {
		return s
	}
	if i := strings.LastIndexByte(s[:end], '\n') + 1; i > end/2 {
		end = i
	}
	return s[:end]
}

// lastChars returns the last n characters of s, without its first line where that is cut off, unless too little would be
// left.
func lastChars(s string, n int) string {
	start := len(s)
	for i := 0; i < n && start > 0; i++ {
		_, size := utf8.DecodeLastRuneInString(s[:start])
		start -= size
	}
	if start == 0 || s[start-1] == '\n' {
		return s[start:]
	}
	if i := strings.IndexByte(s[start:], '\n') + 1; i > 0 && i < (len(s)-start)/2 {
		start += i
	}
	return s[start:]
}

// runeOffset is where the n-th character of s begins, or len(s).
func runeOffset(s string, n int) int {
	if n <= 0 {
		return 0
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// minLeftOut is how many characters are not worth the line that says that they are missing.
const minLeftOut = 60

// cutMiddle returns s if it has at most n characters, or hardly more, else its head and tail with what is left out counted between.
func cutMiddle(s string, n int) string {
	if len(s) <= n || utf8.RuneCountInString(s) <= n+minLeftOut {
		return s
	}
	head, tail := firstChars(s, n/2), lastChars(s, n-n/2)
	missing := leftOf(s[len(head) : len(s)-len(tail)])
	return joinLines(head, missing.String(), tail)
}

// maxInLine is how many characters a foreign text has that is a part of a line.
const maxInLine = 80

// shorten returns s if it has at most n characters, else a beginning of it that says that it is one.
func shorten(s string, n int) string {
	if end := runeOffset(s, n); end < len(s) {
		return strings.TrimRight(s[:end], " ") + " …"
	}
	return s
}

// joinLines joins texts so that each begins on a line of its own.
func joinLines(texts ...string) string {
	var b strings.Builder
	for _, t := range texts {
		if t == "" {
			continue
		}
		if s := b.String(); s != "" && !strings.HasSuffix(s, "\n") {
			b.WriteByte('\n')
		}
		b.WriteString(t)
	}
	return b.String()
}
