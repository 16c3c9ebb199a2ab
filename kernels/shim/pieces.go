//go:build linux

package shim

import (
	"unicode/utf8"

	"cellblock/kernels/shim/channels"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// pieceSize is how much text of a large message becomes one message, in bytes.
const pieceSize = 1 << 20

// pieces makes many stream messages of one that is too large to be held, as it passes.
type pieces struct {
	l     *link
	parts [][]byte // header, parent header and metadata
	skim  *skim
	buf   []byte // text that has not been handed on
	size  int64  // of the content so far
	lost  bool   // there was text before the stream's name
}

// Text begins to read a large message.
func (l *link) Text(parts [][]byte) channels.Text {
	p := &pieces{l: l, parts: parts}
	p.skim = newSkim(p.add)
	return p
}

// Write takes the content's next bytes.
func (p *pieces) Write(content []byte) (int, error) {
	p.size += int64(len(content))
	return p.skim.Write(content)
}

// add takes text.
func (p *pieces) add(text []byte) {
	if p.buf == nil {
		p.buf = make([]byte, 0, pieceSize+pieceSize/4)
	}
	p.buf = append(p.buf, text...)
	if len(p.buf) >= pieceSize {
		n := whole(p.buf)
		p.hand(n)
		p.buf = append(p.buf[:0], p.buf[n:]...)
	}
}

// hand hands the first n bytes of the text on. Whose they are must be known by then: no kernel writes the name last.
func (p *pieces) hand(n int) {
	name, ok := p.skim.named()
	p.lost = p.lost || !ok
	if n > 0 && !p.lost {
		p.l.gate.text(p.parts, name, p.buf[:n])
	}
}

// End hands on what is left, and reports a message that was none.
func (p *pieces) End(reason string) {
	p.hand(len(p.buf))
	p.buf = nil
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
