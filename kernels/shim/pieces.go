//go:build linux

package shim

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"cellblock/kernels/shim/channels"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// pieceSize is how large the messages are that are made of a large one, in bytes.
const pieceSize = 1 << 20

// ending ends the content of each.
const ending = `"}`

// pieces makes many stream messages of one that is too large to be held, as it passes. Their texts are the large one's as it stands
// there: it is neither decoded nor encoded, which would take most of the time of a long text.
type pieces struct {
	l     *link
	parts [][]byte // header, parent header and metadata
	skim  *skim
	next  []byte // content of the next message: its opening, and text that has not been handed on
	open  int    // how long the opening is
	text  []byte // of a piece that is held back, decoded
	size  int64  // of the large message's content so far
	lost  bool   // there was text before the stream's name
}

// Text begins to read a large message.
func (l *link) Text(parts [][]byte) channels.Text {
	p := &pieces{l: l, parts: parts}
	p.skim = newRawSkim(p.add)
	return p
}

// Write takes the content's next bytes.
func (p *pieces) Write(content []byte) (int, error) {
	p.size += int64(len(content))
	return p.skim.Write(content)
}

// add takes text. Whose it is must be known by then: no kernel writes the name last.
func (p *pieces) add(text []byte) {
	if p.next == nil {
		name, ok := p.skim.named()
		p.begin(name)
		p.lost = p.lost || !ok
	}
	if p.lost {
		return
	}
	for len(text) > 0 {
		n := min(len(text), pieceSize-len(p.next))
		p.next = append(p.next, text[:n]...)
		if text = text[n:]; len(p.next) == pieceSize {
			cut := p.open + cutRaw(p.next[p.open:])
			rest := bytes.Clone(p.next[cut:])
			if p.hand(p.next[:cut]) {
				p.begin(string(p.skim.name))
			}
			p.next = append(p.next[:p.open], rest...)
		}
	}
}

// begin begins the content of a message that text will be added to.
func (p *pieces) begin(name string) {
	p.next = append(make([]byte, 0, pieceSize+len(ending)), `{"name": "`+name+`", "text": "`...) // no more: the journal keeps it
	p.open = len(p.next)
}

// hand hands on a message whose content is whole but for its end, and tells whether that is in use from now on.
func (p *pieces) hand(content []byte) (kept bool) {
	return p.l.gate.piece([][]byte{p.parts[0], p.parts[1], p.parts[2], append(content, ending...)}, &p.text)
}

// End hands on what is left, and reports a message that was none.
func (p *pieces) End(reason string) {
	p.rest()
	if _, ok := p.skim.stream(); reason == "" && (!ok || p.lost) {
		reason = channels.ReasonNotJupyter
	}
	if reason != "" {
		header, _ := wire.ParseHeader(p.parts[0])
		parent, _ := wire.ParseHeader(p.parts[1])
		p.l.drops.add(stream.Dropped{
			Channel: stream.IOPub.String(), Reason: reason, Parent: clip(parent.MsgID), MsgType: clip(header.MsgType), Bytes: p.size,
		})
	}
	p.l.trimmer.passed(p.size)
}

// rest hands on what is left: without what is not whole at its end, if the message was cut short.
func (p *pieces) rest() {
	end := len(p.next)
	if !p.skim.ended {
		end = p.open + cutRaw(p.next[p.open:])
	}
	if end > p.open && !p.lost {
		p.hand(append(make([]byte, 0, end+len(ending)), p.next[:end]...)) // the journal keeps no room for more
	}
	p.next, p.text = nil, nil
}

// cutRaw returns where the text of a JSON string, which begins with text, can be cut: behind most of it, and within neither a character,
// nor an escape, nor two that are one character.
func cutRaw(text []byte) int {
	n := whole(text)
	at, end := lastEscape(text[:n])
	if end > n {
		n = at // its rest is still to come
		at, end = lastEscape(text[:n])
	}
	if end == n && isHighSurrogate(text[at:end]) {
		return at
	}
	return n
}

// lastEscape returns where the escape that a JSON string's text ends with begins, and where it should end; both are -1 if there is none.
func lastEscape(text []byte) (at, end int) {
	from := max(0, len(text)-len(`\u0000`)) // none is longer
	at = from + bytes.LastIndexByte(text[from:], '\\')
	if at < from {
		return -1, -1
	}
	if backslashes := len(text[:at+1]) - len(bytes.TrimRight(text[:at+1], `\`)); backslashes%2 == 0 {
		return at - 1, at + 1
	}
	if at+1 < len(text) && text[at+1] == 'u' {
		return at, at + len(`\u0000`)
	}
	return at, at + len(`\n`)
}

// isHighSurrogate tells whether an escape is the first of two that are one character: \uD800 to \uDBFF.
func isHighSurrogate(escape []byte) bool {
	return len(escape) == len(`\u0000`) && escape[2]|0x20 == 'd' && strings.IndexByte("89abAB", escape[3]) >= 0
}

// whole returns how much of text does not end within a character.
func whole(text []byte) int {
	for at := len(text) - 1; at >= 0 && at > len(text)-utf8.UTFMax; at-- {
		if utf8.RuneStart(text[at]) {
			if utf8.FullRune(text[at:]) {
				break
			}
			return at
		}
	}
	return len(text)
}

var _ channels.Texter = (*link)(nil)
