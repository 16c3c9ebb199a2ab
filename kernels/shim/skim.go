//go:build linux

package shim

import (
	"bytes"
	"unicode/utf16"
	"unicode/utf8"

	"cellblock/internal/jsontext"
)

// skim reads the content of a stream message as it passes, however large it is: {"name": "stdout", "text": "…"}. It
// hands the text on, in pieces that may split a character. What is written to it need not be whole, and is not kept. It
// is as strict as it must be to find the two values, no stricter.
type skim struct {
	keep   func(text []byte)
	raw    bool // what is handed on is the text as it stands between its quotes, which may not be valid
	odd    bool // of that, what was read so far ends with a backslash that escapes what comes next
	name   []byte
	text   bool // the object has a text
	broken bool
	depth  int
	ended  bool
	value  bool   // after a colon, not before one
	key    []byte // of the outermost object's present member
	state  skimState
	hex    rune // digits of a \u escape
	digits int
	high   rune // first half of a surrogate pair
}

type skimState uint8

const (
	skimBetween skimState = iota
	skimString
	skimEscape
	skimHex
)

// maxName bounds keys and names, in bytes: longer ones are none of ours.
const maxName = 16

// newSkim returns a skim that hands the text on to keep, which must not keep the slice.
func newSkim(keep func(text []byte)) *skim { return &skim{keep: keep} }

// newRawSkim returns a skim that hands the text on as it stands between its quotes.
func newRawSkim(keep func(text []byte)) *skim { return &skim{keep: keep, raw: true} }

// stream returns the stream's name. It is false if what was written is not the content of a stream message.
func (s *skim) stream() (string, bool) {
	name, ok := s.named()
	return name, ok && s.ended && !s.broken && s.text
}

// named returns the stream's name, as soon as it is known.
func (s *skim) named() (string, bool) {
	name := string(s.name)
	return name, name == "stdout" || name == "stderr"
}

// Write takes the next bytes. It never fails.
func (s *skim) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 && !s.broken {
		switch s.state {
		case skimBetween:
			s.between(p[0])
			p = p[1:]
		case skimString:
			if s.raw && s.in("text") {
				p = s.runRaw(p)
			} else {
				p = s.run(p)
			}
		case skimEscape:
			s.escape(p[0])
			p = p[1:]
		case skimHex:
			s.hexDigit(p[0])
			p = p[1:]
		}
	}
	return n, nil
}

// between takes what is not part of a string.
func (s *skim) between(c byte) {
	switch c {
	case '"':
		s.state = skimString
		if s.depth == 1 && !s.value {
			s.key = s.key[:0]
		}
		s.text = s.text || s.in("text")
	case '{', '[':
		s.broken = s.ended
		s.depth++
	case '}', ']':
		s.depth--
		s.broken = s.depth < 0
		s.ended = s.depth == 0
	case ':':
		s.value = s.value || s.depth == 1
	case ',':
		s.value = s.value && s.depth != 1
	}
}

// in tells whether the present string is the value of a member of the outermost object.
func (s *skim) in(key string) bool { return s.depth == 1 && s.value && string(s.key) == key }

// run takes the rest of a string up to where it ends or has an escape.
func (s *skim) run(p []byte) []byte {
	n := jsontext.PlainEnd(p, 0)
	for n < len(p) && p[n] < ' ' { // a control character, which should have been escaped
		n = jsontext.PlainEnd(p, n+1)
	}
	if n == len(p) {
		s.emit(p)
		return nil
	}
	if n > 0 {
		s.emit(p[:n])
	}
	if p[n] == '\\' {
		s.state = skimEscape
	} else {
		s.lone()
		s.state = skimBetween
	}
	return p[n+1:]
}

// runRaw takes the rest of the text up to where it ends, or all.
func (s *skim) runRaw(p []byte) []byte {
	for from := 0; ; {
		n := bytes.IndexByte(p[from:], '"')
		if n < 0 {
			s.odd = s.escapes(p)
			s.keep(p)
			return nil
		}
		from += n
		if !s.escapes(p[:from]) {
			s.keep(p[:from])
			s.odd, s.state = false, skimBetween
			return p[from+1:]
		}
		from++
	}
}

// escapes tells whether what follows p, the text's next bytes, is escaped: behind an odd number of backslashes.
func (s *skim) escapes(p []byte) bool {
	backslashes := len(p) - len(bytes.TrimRight(p, `\`))
	odd := backslashes%2 == 1
	return odd != (s.odd && backslashes == len(p))
}

var escapes = map[byte][]byte{
	'n': []byte("\n"), 't': []byte("\t"), 'r': []byte("\r"), 'b': []byte("\b"), 'f': []byte("\f"),
	'"': []byte(`"`), '\\': []byte(`\`), '/': []byte("/"),
}

func (s *skim) escape(c byte) {
	if c == 'u' {
		s.state, s.hex, s.digits = skimHex, 0, 0
		return
	}
	s.state = skimString
	if text := escapes[c]; text != nil {
		s.emit(text)
	} else {
		s.broken = true
	}
}

func (s *skim) hexDigit(c byte) {
	switch {
	case '0' <= c && c <= '9':
		s.hex = s.hex<<4 | rune(c-'0')
	case 'a' <= c|0x20 && c|0x20 <= 'f':
		s.hex = s.hex<<4 | rune(c|0x20-'a'+10)
	default:
		s.broken = true
	}
	if s.digits++; s.digits == 4 {
		s.state = skimString
		s.unit(s.hex)
	}
}

// unit takes a UTF-16 code unit. Half a pair becomes U+FFFD, as encoding/json has it.
func (s *skim) unit(r rune) {
	if s.high != 0 {
		if pair := utf16.DecodeRune(s.high, r); pair != utf8.RuneError {
			s.high = 0
			s.rune(pair)
			return
		}
		s.lone()
	}
	if 0xd800 <= r && r < 0xdc00 {
		s.high = r
		return
	}
	s.rune(r) // the second half alone is U+FFFD too
}

// lone ends a pair that has no second half.
func (s *skim) lone() {
	if s.high != 0 {
		s.high = 0
		s.rune(utf8.RuneError)
	}
}

func (s *skim) rune(r rune) {
	var b [utf8.UTFMax]byte
	s.emit(b[:utf8.EncodeRune(b[:], r)])
}

// emit takes decoded text of the present string.
func (s *skim) emit(text []byte) {
	s.lone()
	switch {
	case s.depth == 1 && !s.value:
		s.key = append(s.key, text[:min(len(text), maxName-len(s.key))]...)
	case s.in("name"):
		s.name = append(s.name, text[:min(len(text), maxName-len(s.name))]...)
	case s.in("text"):
		s.keep(text)
	}
}
