package transport

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"cellblock/internal/jsontext"
)

const (
	// maxDepth bounds how deep objects and arrays may nest.
	maxDepth = 64
	// maxMembers bounds the members of one object, and with them the memory that looking for duplicates takes.
	maxMembers = 10_000
)

// scanner walks one JSON text that is known to be valid and looks for what encoding/json would silently repair or
// choose between: duplicate keys, invalid UTF-8, halves of surrogate pairs; and for depth.
//
// Duplicates matter for safety too. encoding/json takes the last of several keys, and ignores their case where it fills
// a struct; with none, everybody who reads the message reads the same method, tool and version.
type scanner struct {
	raw  []byte
	pos  int
	path []step
}

// step is one step from the root to the value at hand, kept to name the value in an error.
type step struct {
	key   string
	index int // where key is empty
}

// scan reports the first thing in raw that breaks a rule. raw must be valid JSON.
func scan(raw []byte) error {
	s := &scanner{raw: raw}
	return s.value()
}

func (s *scanner) value() error {
	s.space()
	switch s.raw[s.pos] {
	case '{':
		return s.object()
	case '[':
		return s.array()
	case '"':
		_, err := s.text()
		return err
	}
	for s.pos < len(s.raw) && strings.IndexByte(",]} \t\r\n", s.raw[s.pos]) < 0 {
		s.pos++
	}
	return nil
}

func (s *scanner) object() error {
	if len(s.path) >= maxDepth {
		return s.errorf("nests deeper than %d levels", maxDepth)
	}
	seen := keys{fold: s.foldsKeys()}
	for n := 0; s.next('}'); n++ {
		key, err := s.key()
		if err != nil {
			return err
		}
		if !seen.add(key) {
			return s.errorf("has the key %s twice", strconv.Quote(key))
		}
		if n >= maxMembers {
			return s.errorf("has more than %d keys", maxMembers)
		}
		s.space()
		s.pos++ // the colon
		if err := s.child(step{key: key}); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) array() error {
	if len(s.path) >= maxDepth {
		return s.errorf("nests deeper than %d levels", maxDepth)
	}
	for i := 0; s.next(']'); i++ {
		if err := s.child(step{index: i}); err != nil {
			return err
		}
	}
	return nil
}

// child walks the value of one member.
func (s *scanner) child(at step) error {
	s.path = append(s.path, at)
	if err := s.value(); err != nil {
		return err
	}
	s.path = s.path[:len(s.path)-1]
	return nil
}

// next moves from an opening bracket or a member to the next member, and past the closing bracket where there is none.
func (s *scanner) next(end byte) bool {
	s.space()
	if s.raw[s.pos] != end {
		s.pos++ // the opening bracket, or the comma
		s.space()
	}
	if s.raw[s.pos] == end {
		s.pos++
		return false
	}
	return true
}

func (s *scanner) space() {
	for s.pos < len(s.raw) && strings.IndexByte(" \t\r\n", s.raw[s.pos]) >= 0 {
		s.pos++
	}
}

// text reads the string at hand and returns it as it is written, quotes and all.
func (s *scanner) text() (quoted []byte, err error) {
	quoted, escaped := jsontext.Quoted(s.raw[s.pos:])
	s.pos += len(quoted)
	if !utf8.Valid(quoted) {
		return nil, s.errorf("is not valid UTF-8")
	}
	if escaped && loneSurrogate(quoted) {
		return nil, s.errorf(`has a \u escape that is half of a surrogate pair`)
	}
	return quoted, nil
}

// key reads the key at hand and returns what it means.
func (s *scanner) key() (string, error) {
	quoted, err := s.text()
	if err != nil || bytes.IndexByte(quoted, '\\') < 0 {
		return strings.Trim(string(quoted), `"`), err
	}
	var key string
	err = json.Unmarshal(quoted, &key)
	return key, err
}

// loneSurrogate reports whether a quoted string escapes half of a UTF-16 pair, which decoding would replace.
func loneSurrogate(quoted []byte) bool {
	for i := 0; i < len(quoted); i++ {
		if quoted[i] != '\\' {
			continue
		}
		i++
		if quoted[i] != 'u' {
			continue
		}
		r := hexRune(quoted[i+1:])
		i += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		rest := quoted[i+1:]
		if len(rest) < 6 || rest[0] != '\\' || rest[1] != 'u' || utf16.DecodeRune(r, hexRune(rest[2:])) == unicode.ReplacementChar {
			return true
		}
		i += 6
	}
	return false
}

func hexRune(digits []byte) rune {
	v, _ := strconv.ParseUint(string(digits[:4]), 16, 32)
	return rune(v)
}

// foldsKeys reports whether the object at hand is one that this package and mcp-go decode into a struct: there
// encoding/json ignores the case of keys.
func (s *scanner) foldsKeys() bool {
	for i, want := range []string{"params", "_meta"} {
		if i == len(s.path) {
			return true
		}
		if !strings.EqualFold(s.path[i].key, want) {
			return false
		}
	}
	return len(s.path) == 2
}

// keys are those of one object. Few are compared one by one, which needs no map.
type keys struct {
	fold bool // keys that differ only in case are the same
	few  []string
	many map[string]struct{} // all of them, once they are many
}

// fewKeys is how many keys are few.
const fewKeys = 16

// add adds a key, and reports whether it is a new one.
func (k *keys) add(key string) (fresh bool) {
	if k.many == nil && len(k.few) < fewKeys {
		for _, other := range k.few {
			if key == other || k.fold && strings.EqualFold(key, other) {
				return false
			}
		}
		k.few = append(k.few, key)
		return true
	}
	if k.many == nil {
		k.many = map[string]struct{}{}
		for _, other := range k.few {
			k.many[k.name(other)] = struct{}{}
		}
	}
	name := k.name(key)
	_, twice := k.many[name]
	k.many[name] = struct{}{}
	return !twice
}

func (k *keys) name(key string) string {
	if k.fold {
		return foldKey(key)
	}
	return key
}

// foldKey returns what keys that encoding/json takes for the same have in common.
func foldKey(key string) string {
	return strings.Map(func(r rune) rune {
		for {
			folded := unicode.SimpleFold(r)
			if folded <= r {
				return folded
			}
			r = folded
		}
	}, key)
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("%s "+format, append([]any{s.where()}, args...)...)
}

// where names the value at hand, as in params.arguments.code.
func (s *scanner) where() string {
	if len(s.path) == 0 {
		return "the message"
	}
	var b strings.Builder
	for i, at := range s.path {
		switch {
		case at.key == "":
			fmt.Fprintf(&b, "[%d]", at.index)
			continue
		case i > 0:
			b.WriteByte('.')
		}
		b.WriteString(clip(at.key, 64))
	}
	return clip(b.String(), 200)
}

// clip shortens what a client sent, for messages and logs.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}
