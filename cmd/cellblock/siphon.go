package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"cellblock/internal/fault"
)

// A notebook is one text of a resource, and may be large. The MCP client would hold it in memory, several times over. So its
// text is taken out of the answer while that comes, and the client gets the rest.

// maxRest bounds what an answer may have beside the text that is taken out.
const maxRest = 16 << 20

// siphonKey is what a context has a *siphoned under.
type siphonKey struct{}

// siphoned is where an answer's text goes, and whether there was one.
type siphoned struct {
	to   io.Writer
	took bool
	err  error // why it could not be written
}

// withSiphon has the text of the answer to the next request written to a writer.
func withSiphon(ctx context.Context, to io.Writer) (context.Context, *siphoned) {
	s := &siphoned{to: to}
	return context.WithValue(ctx, siphonKey{}, s), s
}

// siphons takes texts out of answers to whom that is wanted.
type siphons struct{ http.RoundTripper }

// RoundTrip sends a request.
func (r siphons) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.RoundTripper.RoundTrip(request)
	s, wanted := request.Context().Value(siphonKey{}).(*siphoned)
	if err != nil || !wanted || request.Method != http.MethodPost || response.StatusCode != http.StatusOK {
		return response, err
	}
	rest, err := s.take(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return nil, err
	}
	response.Body, response.ContentLength = io.NopCloser(bytes.NewReader(rest)), int64(len(rest))
	response.Header.Set("Content-Length", strconv.Itoa(len(rest)))
	return response, nil
}

// take reads JSON and writes out the first text that is the value of a key "text". What is left has an empty one in its
// place.
func (s *siphoned) take(from io.Reader) (rest []byte, err error) {
	in, out := bufio.NewReaderSize(from, 64<<10), bufio.NewWriterSize(s.to, 64<<10)
	l := lexer{in: in}
	for err == nil {
		var value bool
		switch value, err = l.next(); {
		case value && s.took:
			err = l.string()
		case value:
			s.took = true
			err = errors.Join(s.text(in, out), l.keep('"'))
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	if s.err == nil {
		s.err = out.Flush()
	}
	return l.rest, errors.Join(err, s.err)
}

// text writes out a JSON string from behind its first quote to behind its last.
func (s *siphoned) text(in *bufio.Reader, out *bufio.Writer) error {
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return unexpected(err)
		case b == '"':
			return nil
		case b == '\\':
			if err := unescape(in, out); err != nil {
				return err
			}
		default:
			s.err = out.WriteByte(b)
		}
		if s.err != nil {
			return s.err
		}
	}
}

// escapes are JSON's escapes of one character.
var escapes = map[byte]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape writes what stands behind a backslash. A half of a pair that has no other is replaced, as encoding/json does.
func unescape(in *bufio.Reader, out *bufio.Writer) error {
	b, err := in.ReadByte()
	if err != nil {
		return unexpected(err)
	}
	if plain, ok := escapes[b]; ok {
		return out.WriteByte(plain)
	}
	if b != 'u' {
		return fault.New(fault.Internal, `the server sent \%c in a text`, b)
	}
	r, err := unit(in)
	if err != nil {
		return err
	}
	if utf16.IsSurrogate(r) {
		if ahead, _ := in.Peek(2); string(ahead) != `\u` {
			r = utf8.RuneError
		} else {
			_, _ = in.Discard(2)
			second, err := unit(in)
			if err != nil {
				return err
			}
			r = utf16.DecodeRune(r, second)
		}
	}
	_, err = out.WriteRune(r)
	return err
}

// unit reads the four digits of a \u.
func unit(in *bufio.Reader) (rune, error) {
	var digits [4]byte
	if _, err := io.ReadFull(in, digits[:]); err != nil {
		return 0, unexpected(err)
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 16)
	return rune(n), err
}

func unexpected(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// lexer reads JSON, as far as is needed to know the values of keys, and keeps it.
type lexer struct {
	in   *bufio.Reader
	rest []byte
	key  []byte // the last string; empty when it was long
	is   bool   // that is a key, and its value comes next
}

// next reads to behind the next quote that begins a string, or the end, and tells whether that is the value of a key "text".
// Any other string it reads whole.
func (l *lexer) next() (text bool, err error) {
	for {
		b, err := l.in.ReadByte()
		if err != nil {
			return false, err
		}
		if err := l.keep(b); err != nil {
			return false, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
		case ':':
			l.is = true
		case '"':
			if l.is && string(l.key) == "text" {
				l.is, l.key = false, nil
				return true, nil
			}
			return false, l.string()
		default:
			l.is, l.key = false, nil
		}
	}
}

// string reads the rest of a string.
func (l *lexer) string() error {
	const long = 8
	l.is, l.key = false, nil
	for escaped := false; ; {
		b, err := l.in.ReadByte()
		if err != nil {
			return unexpected(err)
		}
		if err := l.keep(b); err != nil {
			return err
		}
		switch {
		case escaped:
			escaped = false
		case b == '\\':
			escaped = true
		case b == '"':
			return nil
		}
		if len(l.key) < long {
			l.key = append(l.key, b)
		}
	}
}

func (l *lexer) keep(b byte) error {
	if len(l.rest) >= maxRest {
		return fault.New(fault.Internal, "the server's answer is too long")
	}
	l.rest = append(l.rest, b)
	return nil
}
