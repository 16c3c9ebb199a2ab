package jsontext

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// What is known to be valid need not be looked at byte by byte again: that takes most of the time of a picture or of a long text. The
// functions below find the ends of things by what can only stand there. Of what is not valid they return something or other.

// KnownMembers is Members, for what Valid has found to be JSON.
func KnownMembers(object []byte, f func(name []byte, value json.RawMessage) error) error {
	at := skipSpace(object, 0)
	if bytes.HasPrefix(object[at:], null) {
		return nil
	}
	if at >= len(object) || object[at] != '{' {
		return ErrSyntax
	}
	at = skipSpace(object, at+1)
	for at < len(object) && object[at] != '}' {
		nameEnd := knownTextEnd(object, at)
		value := skipSpace(object, skipSpace(object, nameEnd)+1) // behind the colon
		if object[at] != '"' || nameEnd < at+2 || value >= len(object) {
			return ErrSyntax
		}
		end := knownEnd(object, value)
		if err := f(nameOf(object[at:nameEnd]), object[value:end:end]); err != nil {
			return err
		}
		if at = skipSpace(object, end); at < len(object) && object[at] == ',' {
			at = skipSpace(object, at+1)
		}
	}
	return nil
}

// KnownText is Text, for what Valid has found to be JSON and has no white space around it.
func KnownText(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	inner := value[1 : len(value)-1]
	escape := bytes.IndexByte(inner, '\\')
	switch {
	case !utf8.Valid(inner): // every byte of it becomes a character
		var text string
		err := json.Unmarshal(value, &text)
		return text, err == nil
	case escape < 0:
		return string(inner), true
	}
	return unescape(inner, escape), true
}

// The functions below return the index behind what they skip, len(b) if it has no end.

func knownEnd(b []byte, at int) int {
	switch b[at] {
	case '"':
		return knownTextEnd(b, at)
	case '{', '[':
		return knownNestEnd(b, at)
	}
	for at < len(b) && strings.IndexByte(",]} \t\r\n", b[at]) < 0 {
		at++
	}
	return at
}

// knownNestEnd skips an object or an array.
func knownNestEnd(b []byte, at int) int {
	for depth := 0; at < len(b); {
		switch b[at] {
		case '"':
			at = knownTextEnd(b, at)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		if at++; depth == 0 {
			break
		}
	}
	return at
}

// knownTextEnd skips a string: it ends with the first quote that has no backslash before it, or an even number.
func knownTextEnd(b []byte, at int) int {
	for from := at + 1; from < len(b); {
		n := bytes.IndexByte(b[from:], '"')
		if n < 0 {
			break
		}
		run := b[from : from+n]
		from += n + 1
		if (len(run)-len(bytes.TrimRight(run, `\`)))%2 == 0 {
			return from
		}
	}
	return len(b)
}
