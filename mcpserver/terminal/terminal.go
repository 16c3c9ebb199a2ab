// Package terminal makes of what programs write to one the text that it would show.
package terminal

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// screenRows is how many lines a cursor can go back up, as in a terminal of that height.
const screenRows = 24

// maxErased is how many characters of a line are erased up to a column, each time that it is asked for in three bytes.
const maxErased = 1 << 10

// Plain returns what a terminal would show in the end for s: carriage returns and backspaces have overwritten, lines
// that were erased are gone, colours and other control sequences (ECMA-48) are removed. So a progress bar that was
// redrawn a thousand times is one line. The result is valid UTF-8 and holds no control characters but \n and \t.
func Plain(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "�")
	}
	if !hasControl(s) {
		return s
	}
	t := terminal{rows: []line{nil}}
	t.out.Grow(len(s))
	for len(s) > 0 {
		s = t.consume(s)
	}
	for _, l := range t.rows {
		t.write(l)
	}
	return t.out.String()
}

// IsControl tells whether a character is none that Plain leaves: a control character (C0, DEL, C1) other than \n and \t.
func IsControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f
}

// hasControl is strings.ContainsFunc(s, IsControl), four times as fast: of a text of many megabytes it is what takes the time.
func hasControl(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c <= 0x9f && i > 0 && s[i-1] == 0xc2 {
			return true
		}
	}
	return false
}

type line []rune

// terminal is a screen of unbounded width. Lines that have scrolled off its top cannot be reached any more: they are out.
type terminal struct {
	out      strings.Builder
	begun    bool // out holds a line, perhaps an empty one
	rows     []line
	row, col int
	typed    int // characters put; the blanks that are filled in between are no more than these
}

// consume deals with what s begins with and returns the rest.
func (t *terminal) consume(s string) string {
	if s[0] == 0x1b {
		return t.escape(s[1:])
	}
	r, n := utf8.DecodeRuneInString(s)
	switch {
	case r == 0x9b:
		return t.control(s[n:])
	case r == '\n':
		t.newline()
	case r == '\r':
		t.col = 0
	case r == '\b':
		t.col = max(0, t.col-1)
	case !IsControl(r):
		t.put(r)
	}
	return s[n:]
}

func (t *terminal) put(r rune) {
	l := t.rows[t.row]
	if t.typed++; t.col-len(l) > t.typed {
		t.col = len(l)
	}
	for len(l) < t.col {
		l = append(l, ' ') // the line above may be shorter
		t.typed--
	}
	if t.col < len(l) {
		l[t.col] = r
	} else {
		l = append(l, r)
	}
	t.rows[t.row] = l
	t.col++
}

func (t *terminal) newline() {
	t.col = 0
	t.row++
	if t.row < len(t.rows) {
		return
	}
	t.rows = append(t.rows, nil)
	if len(t.rows) > screenRows {
		t.write(t.rows[0])
		t.rows = t.rows[1:]
		t.row--
	}
}

func (t *terminal) write(l line) {
	if t.begun {
		t.out.WriteByte('\n')
	}
	t.begun = true
	t.out.WriteString(string(l))
}

// escape deals with what follows an ESC and returns the rest.
func (t *terminal) escape(s string) string {
	if s == "" {
		return s
	}
	switch s[0] {
	case '[':
		return t.control(s[1:])
	case ']', 'P', 'X', '^', '_':
		return afterString(s[1:])
	case '(', ')', '*', '+': // a character set, named by one more byte
		return s[min(2, len(s)):]
	case 0x1b, '\n', '\r':
		return s // not a sequence after all
	}
	_, n := utf8.DecodeRuneInString(s)
	return s[n:]
}

// control deals with a control sequence: parameters, intermediates, one final byte. Of those that move or erase, only
// what progress bars and spinners use is obeyed.
func (t *terminal) control(s string) string {
	i := 0
	for i < len(s) && s[i] >= 0x20 && s[i] <= 0x3f {
		i++
	}
	if i == len(s) {
		return ""
	}
	parameters, final := s[:i], s[i]
	if final < 0x40 || final > 0x7e {
		return s[i:] // broken off
	}
	switch final {
	case 'A':
		t.row = max(0, t.row-count(parameters))
	case 'D':
		t.col = max(0, t.col-count(parameters))
	case 'F':
		t.row, t.col = max(0, t.row-count(parameters)), 0
	case 'G':
		t.col = count(parameters) - 1
	case 'J':
		t.eraseBelow(parameters)
	case 'K':
		t.erase(parameters)
	}
	return s[i+1:]
}

// erase is EL: to the end of the line, to its beginning (1), or all of it (2).
func (t *terminal) erase(parameters string) {
	l := t.rows[t.row]
	switch parameters {
	case "", "0":
		t.rows[t.row] = l[:min(t.col, len(l))]
	case "1":
		for i := range min(t.col+1, len(l), maxErased) {
			l[i] = ' '
		}
	case "2":
		t.rows[t.row] = nil // put fills it up to the column, at no more cost than what was typed
	}
}

// eraseBelow is ED to the end of the screen; of its other forms, as programs begin with that have the whole screen, nothing is obeyed.
func (t *terminal) eraseBelow(parameters string) {
	if parameters == "" || parameters == "0" {
		t.erase(parameters)
		t.rows = t.rows[:t.row+1]
	}
}

// count is the number that a sequence's parameters are; at least 1.
func count(parameters string) int {
	n, err := strconv.Atoi(parameters)
	if err != nil || n < 1 {
		return 1
	}
	return n
}

// afterString returns what follows a control string, which ends with BEL, ST or ESC \. One that does not end soon is
// taken for text.
func afterString(s string) string {
	const most = 4096
	for i, r := range s[:min(len(s), most)] {
		switch r {
		case 0x07, 0x9c:
			return s[i+utf8.RuneLen(r):]
		case 0x1b:
			return strings.TrimPrefix(s[i+1:], "\\")
		}
	}
	return s
}
