package channels

import "io"

// keepEnds is how much of both ends of a skipped frame is kept, in bytes.
const keepEnds = 64 << 10

// cut says what was left out of a message that was too large.
type cut struct {
	// frame is the first frame that was left out, counted from 0, size its bytes, and total those of the whole message.
	frame       int
	size, total int64
	// head and tail are the ends of that frame. They do not overlap; together they are the frame where it is that small.
	head, tail []byte
	// skim is given all of it; nil if nobody wants that.
	skim io.Writer
}

// keep keeps what belongs to the ends of chunk, which starts at offset at of the frame. Chunks come in order.
func (c *cut) keep(at int64, chunk []byte) {
	if c.skim != nil {
		_, _ = c.skim.Write(chunk)
	}
	if room := keepEnds - len(c.head); room > 0 {
		n := min(room, len(chunk))
		c.head = append(c.head, chunk[:n]...)
		at, chunk = at+int64(n), chunk[n:]
	}
	if before := c.size - keepEnds - at; before > 0 {
		chunk = chunk[min(before, int64(len(chunk))):]
	}
	c.tail = append(c.tail, chunk...)
}
