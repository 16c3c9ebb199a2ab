package tex

import (
	"unicode"
	"unicode/utf8"
)

// tokens is a formula on its way through the parser. A token is a command ("\frac", "\,"), a number, or one character.
type tokens struct {
	source string
	at     int
}

func scan(source string) *tokens { return &tokens{source: source} }

// next returns the next token and moves behind it, "" at the end. Space between tokens has no meaning.
func (t *tokens) next() string {
	t.skipSpace()
	rest := t.source[t.at:]
	n := 0
	switch {
	case rest == "":
		return ""
	case rest[0] == '\\':
		n = command(rest)
	case isDigit(rest[0]):
		for n < len(rest) && (isDigit(rest[n]) || rest[n] == '.' && n+1 < len(rest) && isDigit(rest[n+1])) {
			n++
		}
	default:
		_, n = utf8.DecodeRuneInString(rest)
	}
	t.at += n
	return rest[:n]
}

// peek returns the next token and stays before it.
func (t *tokens) peek() string {
	at := t.at
	token := t.next()
	t.at = at
	return token
}

// raw returns the text up to the brace that closes the group that begins here, or the next token, as it stands.
func (t *tokens) raw() string {
	t.skipSpace()
	if t.at >= len(t.source) || t.source[t.at] != '{' {
		return t.next()
	}
	begin, depth := t.at+1, 0
	for ; t.at < len(t.source); t.at++ {
		switch t.source[t.at] {
		case '\\':
			t.at++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				t.at++
				return t.source[begin : t.at-1]
			}
		}
	}
	t.at = len(t.source)
	return t.source[min(begin, t.at):]
}

// option returns what stands in brackets here, "" if nothing does.
func (t *tokens) option() string {
	t.skipSpace()
	if t.at >= len(t.source) || t.source[t.at] != '[' {
		return ""
	}
	begin := t.at + 1
	for t.at < len(t.source) && t.source[t.at] != ']' {
		t.at++
	}
	text := t.source[begin:max(begin, t.at)]
	t.at = min(t.at+1, len(t.source))
	return text
}

func (t *tokens) skipSpace() {
	for t.at < len(t.source) {
		if r, n := utf8.DecodeRuneInString(t.source[t.at:]); unicode.IsSpace(r) {
			t.at += n
			continue
		}
		if t.source[t.at] != '%' {
			return
		}
		for t.at < len(t.source) && t.source[t.at] != '\n' { // a comment
			t.at++
		}
	}
}

// command is the length of the command that a text begins with.
func command(rest string) int {
	n := 1
	for n < len(rest) && isLetter(rest[n]) {
		n++
	}
	switch {
	case n > 1 && n < len(rest) && rest[n] == '*':
		return n + 1
	case n > 1 || len(rest) == 1:
		return n
	}
	_, size := utf8.DecodeRuneInString(rest[1:])
	return 1 + size
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
