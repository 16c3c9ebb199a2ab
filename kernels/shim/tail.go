//go:build linux

package shim

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"cellblock/kernels/stream"
)

// tail keeps the end of one stream's text and counts what came before it.
type tail struct {
	name         string // "stdout"
	max          int
	buf          []byte
	bytes, lines int64    // left out
	last         [][]byte // header, parent header and metadata of the last message
	order        int64    // of the last message among all streams
}

// add appends text. At times buf holds up to twice the end that is kept, so that moving it costs little.
func (t *tail) add(text string) {
	if len(text) > t.max {
		t.trim(0)
		text = t.skip(text, t.cut(text, len(text)-t.max))
	} else if len(t.buf)+len(text) > 2*t.max {
		t.trim(t.max - len(text))
	}
	t.buf = append(t.buf, text...)
}

// trim leaves at most n bytes in buf.
func (t *tail) trim(n int) {
	if len(t.buf) <= n {
		return
	}
	from := t.cut(string(t.buf), len(t.buf)-n)
	t.count(t.buf[:from])
	t.buf = append(t.buf[:0], t.buf[from:]...)
}

func (t *tail) skip(text string, n int) string {
	t.count([]byte(text[:n]))
	return text[n:]
}

func (t *tail) count(left []byte) {
	t.bytes += int64(len(left))
	t.lines += int64(bytes.Count(left, []byte("\n")))
}

// cut returns the first place from at on that does not split a character.
func (t *tail) cut(text string, at int) int {
	for at < len(text) && !utf8.RuneStart(text[at]) {
		at++
	}
	return at
}

// streamContent is the content of a message of type stream.
type streamContent struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// decodeStream returns a stream message's content. It is false for anything that is not one.
func decodeStream(parts [][]byte) (streamContent, bool) {
	var c streamContent
	err := json.Unmarshal(parts[3], &c)
	return c, err == nil && (c.Name == "stdout" || c.Name == "stderr")
}

// withText returns a stream message like one that came, with other text.
func withText(parts [][]byte, name, text string) [][]byte {
	return [][]byte{parts[0], parts[1], parts[2], encode(streamContent{Name: name, Text: text})}
}

// held is what one execution produced and what has not been let through.
type held struct {
	streams  []*tail // stdout and stderr, as they came
	messages int64   // of other types, left out whole
	bytes    int64   // of those
	order    int64
}

// text adds to a stream.
func (h *held) text(name, text string, parts [][]byte, max int) {
	h.order++
	t := h.stream(name, max)
	t.last, t.order = parts[:3], h.order
	t.add(text)
}

func (h *held) stream(name string, max int) *tail {
	for _, t := range h.streams {
		if t.name == name {
			return t
		}
	}
	t := &tail{name: name, max: max}
	h.streams = append(h.streams, t)
	return t
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
		j.report(stream.Event{Kind: stream.EventElided, Elided: &stream.Elided{Parent: parent, Messages: h.messages, Bytes: h.bytes}})
	}
	if len(h.streams) == 2 && h.streams[0].order > h.streams[1].order {
		h.streams[0], h.streams[1] = h.streams[1], h.streams[0]
	}
	for _, t := range h.streams {
		t.trim(t.max)
		if t.bytes > 0 {
			j.report(stream.Event{Kind: stream.EventElided, Elided: &stream.Elided{Parent: parent, Stream: t.name, Bytes: t.bytes, Lines: t.lines}})
		}
		if len(t.buf) > 0 {
			j.message(stream.IOPub, withText(t.last, t.name, string(t.buf)))
		}
	}
	*h = held{}
}
