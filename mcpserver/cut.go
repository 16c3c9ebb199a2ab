package mcpserver

import "unicode/utf8"

// cutPieces keeps head and tail of the texts when they are more than chars together, and counts what is left out between.
// Images stay, at their place.
func cutPieces(pieces []piece, chars int) []piece {
	total := 0
	for _, p := range pieces {
		total += p.size()
	}
	if total <= chars {
		return pieces
	}
	c := cutter{head: chars / 2, tail: total - chars/2, gap: -1, untold: map[string]bool{}}
	for _, p := range pieces {
		c.add(p)
	}
	return c.kept
}

// cutter keeps of a sequence of pieces what lies before head and behind tail, in characters from the beginning.
type cutter struct {
	head, tail int
	at         int
	kept       []piece
	gap        int             // index in kept of the piece that counts what is left out; -1 while there is none
	untold     map[string]bool // turns of which it is left out that they come again
}

func (c *cutter) add(p piece) {
	end := c.at + utf8.RuneCountInString(p.text)
	switch {
	case !p.missing.none() && c.gap >= 0 && c.at < c.tail:
		c.kept[c.gap].missing = c.kept[c.gap].missing.plus(p.missing)
	case p.folded && c.at >= c.head && c.at < c.tail:
		c.leaveFolded(p)
	case p.folded && c.untold[p.of]:
		c.leave(left{below: 1})
		c.kept = append(c.kept, p)
	case p.text == "" || end <= c.head || c.at >= c.tail:
		c.kept = append(c.kept, p)
	default:
		c.cut(p, c.head-c.at, end-c.tail)
	}
	c.at += p.size()
}

// cut keeps the first head and the last tail characters of a piece, if these are more than none.
func (c *cutter) cut(p piece, head, tail int) {
	if p.folded {
		c.leaveFolded(p)
		return
	}
	front := firstChars(p.text, head)
	back := lastChars(p.text[len(front):], tail)
	c.keep(p, front)
	missing := leftOf(p.text[len(front) : len(p.text)-len(back)])
	if p.oneOfMany && front == "" && back == "" {
		missing = missing.plus(left{chars: 1, lines: 1}) // its line end
	}
	c.leave(missing)
	c.keep(p, back)
}

// leaveFolded leaves out what stands for other text.
func (c *cutter) leaveFolded(p piece) {
	if p.of != "" && p.text != "" { // it is told with this one
		c.untold[p.of] = true
	}
	c.leave(p.again)
}

// leave counts what is left out.
func (c *cutter) leave(missing left) {
	if c.gap < 0 {
		c.gap = len(c.kept)
		c.kept = append(c.kept, piece{readable: true})
	}
	c.kept[c.gap].missing = c.kept[c.gap].missing.plus(missing)
}

// keep keeps a part of a piece's text.
func (c *cutter) keep(p piece, part string) {
	for _, kept := range textPieces(part, p.stderr) {
		kept.stdout, kept.oneOfMany = p.stdout, p.oneOfMany
		c.kept = append(c.kept, kept)
	}
}
