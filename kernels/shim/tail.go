//go:build linux

package shim

import (
	"bytes"
	"unicode/utf8"

	"cellblock/internal/jsontext"
	"cellblock/kernels/stream"
)

// tail keeps the end of a text and counts what came before it.
type tail struct {
	max          int
	buf          []byte
	bytes, lines int64 // left out
}

// add appends text. At times buf holds up to twice the end that is kept, so that moving it costs little.
func (t *tail) add(text []byte) {
	if len(text) > t.max {
		t.trim(0)
		from := cutAt(text, len(text)-t.max)
		t.count(text[:from])
		text = text[from:]
	} else if len(t.buf)+len(text) > 2*t.max {
		t.trim(t.max - len(text))
	}
	t.buf = append(t.buf, text...)
}

// trim leaves at most n bytes in buf.
func (t *tail) trim(n int) {
	if len(t.buf) > n {
		from := cutAt(t.buf, len(t.buf)-n)
		t.count(t.buf[:from])
		t.buf = append(t.buf[:0], t.buf[from:]...)
	}
}

// append appends what another tail kept, after what that left out.
func (t *tail) append(o *tail) {
	if o.bytes > 0 {
		t.trim(0)
		t.bytes += o.bytes
		t.lines += o.lines
	}
	t.add(o.buf)
}

func (t *tail) count(left []byte) {
	t.bytes += int64(len(left))
	t.lines += int64(bytes.Count(left, []byte("\n")))
}

// excerpt keeps both ends of a text, headMax bytes of its beginning at most, and counts what is between them.
type excerpt struct {
	headMax int
	head    []byte
	full    bool // head takes no more
	tail    tail
}

// add appends text.
func (e *excerpt) add(text []byte) {
	if !e.full {
		n := cutAt(text, max(0, min(len(text), e.headMax-len(e.head))))
		e.head = append(e.head, text[:n]...)
		text = text[n:]
		e.full = len(text) > 0
	}
	if len(text) > 0 {
		e.tail.add(text)
	}
}

// cutAt returns the first place from at on that does not split a character.
func cutAt(text []byte, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// heldStream is the end of one stream of an execution.
type heldStream struct {
	tail
	name  string   // "stdout"
	last  [][]byte // header, parent header and metadata of the last message
	order int64    // of the last message among both streams
}

// held is what one execution produced and what has not been let through.
type held struct {
	streams  []*heldStream // stdout and stderr, as they came
	messages int64         // of other types, left out whole
	bytes    int64         // of those
	order    int64
}

// text adds the text of a stream message, whose parts are the first three of parts.
func (h *held) text(name string, text *tail, parts [][]byte) {
	h.order++
	s := h.stream(name, text.max)
	s.last, s.order = parts[:3:3], h.order
	s.append(text)
}

func (h *held) stream(name string, max int) *heldStream {
	for _, s := range h.streams {
		if s.name == name {
			return s
		}
	}
	s := &heldStream{name: name, tail: tail{max: max}}
	h.streams = append(h.streams, s)
	return s
}

// whole counts a message that is left out.
func (h *held) whole(size int64) {
	h.messages++
	h.bytes += size
}

func (h *held) empty() bool { return len(h.streams) == 0 && h.messages == 0 }

// release appends what was left out, as events, and what was kept, as stream messages, and forgets both.
func (h *held) release(parent string, j *journal) {
	if h.messages > 0 {
		elide(j, stream.Elided{Parent: parent, Messages: h.messages, Bytes: h.bytes})
	}
	if len(h.streams) == 2 && h.streams[0].order > h.streams[1].order {
		h.streams[0], h.streams[1] = h.streams[1], h.streams[0]
	}
	for _, s := range h.streams {
		s.trim(s.max)
		if s.bytes > 0 {
			elide(j, stream.Elided{Parent: parent, Stream: s.name, Bytes: s.bytes, Lines: s.lines})
		}
		if len(s.buf) > 0 {
			j.message(stream.IOPub, withText(s.last, s.name, s.buf))
		}
	}
	*h = held{}
}

func elide(j *journal, e stream.Elided) {
	j.report(stream.Event{Kind: stream.EventElided, Elided: &e})
}

// withText returns a stream message like one that came, with other text.
func withText(parts [][]byte, name string, text []byte) [][]byte {
	content := make([]byte, 0, len(text)+len(text)/16+64) // and some escapes
	content = jsontext.Append(append(content, `{"name": `...), []byte(name))
	content = jsontext.Append(append(content, `, "text": `...), text)
	return [][]byte{parts[0], parts[1], parts[2], append(content, '}')}
}
