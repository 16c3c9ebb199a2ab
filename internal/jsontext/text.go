package jsontext

import (
	"bytes"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text that a JSON string stands for, as encoding/json would have it: what is no UTF-8, and half of a
// surrogate pair, become U+FFFD. It is false for what is no JSON string without white space around it.
func Text(value []byte) (string, bool) {
	if skipText(value, 0) != len(value) {
		return "", false
	}
	return KnownText(value)
}

// Quoted returns the JSON string that b begins with, with its quotes, and tells whether a backslash is in it. It is nil where b begins
// with none.
func Quoted(b []byte) (quoted []byte, escapes bool) {
	end := skipText(b, 0)
	if end < 0 {
		return nil, false
	}
	return b[:end], bytes.IndexByte(b[:end], '\\') >= 0
}

// unescape decodes the inside of a valid string of which the first escape is known.
func unescape(b []byte, escape int) string {
	var text strings.Builder
	text.Grow(len(b))
	for escape >= 0 {
		text.Write(b[:escape])
		b = b[escape+1:]
		if len(b) == 0 || b[0] == 'u' && len(b) < 5 { // it is not valid
			break
		}
		if b[0] != 'u' {
			text.WriteByte(escaped(b[0]))
			b = b[1:]
		} else {
			var r rune
			r, b = unescapeRune(b)
			text.WriteRune(r)
		}
		escape = bytes.IndexByte(b, '\\')
	}
	text.Write(b)
	if text.Cap() > 2*text.Len() {
		return strings.Clone(text.String()) // else who keeps it would keep all that room
	}
	return text.String()
}

// unescapeRune decodes a character from its "u" on, and returns what follows it.
func unescapeRune(b []byte) (rune, []byte) {
	r, _ := hexUnit(b[1:])
	b = b[5:]
	if !utf16.IsSurrogate(r) {
		return r, b
	}
	if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
		low, _ := hexUnit(b[2:])
		if pair := utf16.DecodeRune(r, low); pair != utf8.RuneError {
			return pair, b[6:]
		}
	}
	return utf8.RuneError, b
}

// escaped returns what a letter behind a backslash stands for, 0 if it is none.
func escaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'n':
		return '\n'
	case 't':
		return '\t'
	case 'r':
		return '\r'
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	}
	return 0
}

// hexUnit reads the four digits of a UTF-16 unit.
func hexUnit(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}
