package mcpserver

import (
	"strings"

	"cellblock/mcpserver/terminal"
)

// longText is text that may be very long, of one stream or of two that take turns: of much more than any result shows, the
// middle is only counted.
type longText struct {
	head     []chunk
	headSize int
	tail     []chunk
	tailSize int
	missing  left
	stderr   bool // of the last chunk
}

// chunk is text as it came.
type chunk struct {
	text   string
	stderr bool
	size   int // what it counts for
}

const (
	// longTextHalf is how many bytes are kept of each end. Progress bars may make a few lines of it, so it is plenty.
	longTextHalf = 1 << 20
	// turnSize is what a turn counts for beside its bytes; it bounds their number.
	turnSize = 64
)

// add adds text where there is one stream only.
func (t *longText) add(s string) { t.addOf(s, false) }

func (t *longText) addOf(s string, stderr bool) {
	c := chunk{text: s, stderr: stderr, size: len(s)}
	if stderr != t.stderr {
		c.size += turnSize
		t.stderr = stderr
	}
	if t.headSize < longTextHalf {
		t.head = append(t.head, c)
		t.headSize += c.size
		return
	}
	t.tail = append(t.tail, c)
	t.tailSize += c.size
	for len(t.tail) > 1 && t.tailSize-t.tail[0].size >= longTextHalf {
		t.missing = t.missing.plus(leftOf(t.tail[0].text))
		t.tailSize -= t.tail[0].size
		t.tail[0] = chunk{}
		t.tail = t.tail[1:]
	}
}

// ends returns the two ends. The second is empty when nothing is missing between them.
func (t *longText) ends() (head, tail []chunk) {
	if t.missing.none() {
		return append(t.head[:len(t.head):len(t.head)], t.tail...), nil
	}
	return t.head, t.tail
}

// texts returns the two ends of one stream as a terminal shows them.
func (t *longText) texts() (head, tail string) {
	front, back := t.ends()
	return terminal.Plain(joinChunks(front)), terminal.Plain(joinChunks(back))
}

func joinChunks(chunks []chunk) string {
	var b strings.Builder
	for _, c := range chunks {
		b.WriteString(c.text)
	}
	return b.String()
}
