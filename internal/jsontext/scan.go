package jsontext

import (
	"bytes"
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// ErrSyntax is returned for what is not the JSON that was asked for.
var ErrSyntax = errors.New("no such JSON")

// maxDepth bounds nesting, as encoding/json does.
const maxDepth = 10_000

// Valid tells whether b is one JSON value with white space around it, as json.Valid does: in a tenth of its time where most of
// b are long texts.
func Valid(b []byte) bool {
	end := skipValue(b, skipSpace(b, 0), 0)
	return end >= 0 && skipSpace(b, end) == len(b)
}

// Members calls f for each member of a JSON object, in order. Names are what they stand for, values are as they stand there, without
// the white space around them, and both may share the memory of object. It returns what f returns if that is no nil, and ErrSyntax, perhaps after some calls,
// for what is no object. A null has no members.
func Members(object []byte, f func(name []byte, value json.RawMessage) error) error {
	at := skipSpace(object, 0)
	if rest := object[at:]; bytes.HasPrefix(rest, null) && skipSpace(rest, len(null)) == len(rest) {
		return nil
	}
	end, err := eachMember(object, at, 0, f)
	if err == nil && (end < 0 || skipSpace(object, end) != len(object)) {
		return ErrSyntax
	}
	return err
}

var null = []byte("null")

// IsNull tells whether a value, without white space around it, is null: a member that is as good as absent.
func IsNull(value []byte) bool { return bytes.Equal(value, null) }

// The functions below return the index behind what they skip, -1 if it is not there.

func skipSpace(b []byte, at int) int {
	for at < len(b) && (b[at] == ' ' || b[at] == '\t' || b[at] == '\r' || b[at] == '\n') {
		at++
	}
	return at
}

func skipValue(b []byte, at, depth int) int {
	if at >= len(b) {
		return -1
	}
	switch c := b[at]; {
	case c == '"':
		return skipText(b, at)
	case c == '{':
		end, _ := eachMember(b, at, depth, nil)
		return end
	case c == '[':
		return skipArray(b, at, depth)
	case c == '-' || '0' <= c && c <= '9':
		return skipNumber(b, at)
	}
	for _, word := range []string{"null", "true", "false"} {
		if bytes.HasPrefix(b[at:], []byte(word)) {
			return at + len(word)
		}
	}
	return -1
}

func skipArray(b []byte, at, depth int) int {
	if depth >= maxDepth {
		return -1
	}
	if at = skipSpace(b, at+1); at < len(b) && b[at] == ']' {
		return at + 1
	}
	for {
		if at = skipValue(b, at, depth+1); at < 0 {
			return -1
		}
		if at = skipSpace(b, at); at >= len(b) {
			return -1
		}
		switch b[at] {
		case ']':
			return at + 1
		case ',':
			at = skipSpace(b, at+1)
		default:
			return -1
		}
	}
}

// eachMember skips an object and calls f, if it is not nil, for its members.
func eachMember(b []byte, at, depth int, f func([]byte, json.RawMessage) error) (end int, err error) {
	if at >= len(b) || b[at] != '{' || depth >= maxDepth {
		return -1, nil
	}
	if at = skipSpace(b, at+1); at < len(b) && b[at] == '}' {
		return at + 1, nil
	}
	for {
		name, nameEnd := at, skipText(b, at)
		colon := skipSpace(b, max(nameEnd, 0))
		if colon <= name || colon >= len(b) || b[colon] != ':' {
			return -1, nil
		}
		value := skipSpace(b, colon+1)
		if at = skipValue(b, value, depth+1); at < 0 {
			return -1, nil
		}
		if f != nil {
			if err := f(nameOf(b[name:nameEnd]), b[value:at:at]); err != nil {
				return at, err
			}
		}
		if at = skipSpace(b, at); at >= len(b) {
			return -1, nil
		}
		switch b[at] {
		case '}':
			return at + 1, nil
		case ',':
			at = skipSpace(b, at+1)
		default:
			return -1, nil
		}
	}
}

// nameOf decodes the name of a member. Nearly every one stands for itself.
func nameOf(text []byte) []byte {
	if inner := text[1 : len(text)-1]; bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner
	}
	name, _ := Text(text)
	return []byte(name)
}

func skipText(b []byte, at int) int {
	if at >= len(b) || b[at] != '"' {
		return -1
	}
	for at = PlainEnd(b, at+1); at < len(b); at = PlainEnd(b, at) {
		switch b[at] {
		case '"':
			return at + 1
		case '\\':
			if at = skipEscape(b, at+1); at < 0 {
				return -1
			}
		default: // a control character
			return -1
		}
	}
	return -1
}

// skipEscape skips what follows a backslash.
func skipEscape(b []byte, at int) int {
	switch {
	case at >= len(b):
		return -1
	case b[at] == 'u':
		if _, ok := hexUnit(b[at+1:]); ok {
			return at + 5
		}
		return -1
	case escaped(b[at]) == 0:
		return -1
	}
	return at + 1
}

func skipNumber(b []byte, at int) int {
	if b[at] == '-' {
		at++
	}
	switch {
	case at < len(b) && b[at] == '0':
		at++
	default:
		if at = skipDigits(b, at); at < 0 {
			return -1
		}
	}
	if at < len(b) && b[at] == '.' {
		if at = skipDigits(b, at+1); at < 0 {
			return -1
		}
	}
	if at < len(b) && b[at]|0x20 == 'e' {
		at++
		if at < len(b) && (b[at] == '+' || b[at] == '-') {
			at++
		}
		return skipDigits(b, at)
	}
	return at
}

// skipDigits skips one digit or more.
func skipDigits(b []byte, at int) int {
	first := at
	for at < len(b) && '0' <= b[at] && b[at] <= '9' {
		at++
	}
	if at == first {
		return -1
	}
	return at
}
