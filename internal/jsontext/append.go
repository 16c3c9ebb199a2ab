package jsontext

import (
	"bytes"
	"unicode/utf8"
)

// Append appends a text as a JSON string, as encoding/json would without escaping HTML: in a fraction of its time where most of
// text stands for itself. What is no UTF-8 becomes U+FFFD.
func Append(b, text []byte) []byte {
	b = append(b, '"')
	b = appendInner(b, text)
	return append(b, '"')
}

// appendInner appends what stands between the quotes.
func appendInner(b, text []byte) []byte {
	if !utf8.Valid(text) {
		text = []byte(string(bytes.Runes(text))) // each byte that is none becomes a character
	}
	for {
		end := PlainEnd(text, 0)
		b = appendPlain(b, text[:end])
		if end == len(text) {
			return b
		}
		b = appendEscaped(b, text[end])
		text = text[end+1:]
	}
}

// appendPlain appends what stands for itself, but for U+2028 and U+2029: to JavaScript, of old, they ended a line.
func appendPlain(b, text []byte) []byte {
	for {
		at := bytes.Index(text, separator)
		if at < 0 {
			return append(b, text...)
		}
		next := at + len(separator)
		b = append(b, text[:at]...)
		if last := text[next] &^ 1; last == 0xa8 {
			b = append(b, '\\', 'u', '2', '0', '2', '8'+text[next]&1)
		} else {
			b = append(b, text[at:next+1]...)
		}
		text = text[next+1:]
	}
}

// separator is what both begin with; one byte follows.
var separator = []byte("\xe2\x80")

func appendEscaped(b []byte, c byte) []byte {
	switch c {
	case '"', '\\':
		return append(b, '\\', c)
	case '\n':
		return append(b, `\n`...)
	case '\t':
		return append(b, `\t`...)
	case '\r':
		return append(b, `\r`...)
	case '\b':
		return append(b, `\b`...)
	case '\f':
		return append(b, `\f`...)
	}
	const digits = "0123456789abcdef"
	return append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&0xf])
}
