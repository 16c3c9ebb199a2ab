package kernels

import (
	"fmt"
	"strconv"
	"strings"

	"cellblock/kernels/stream"
)

// Notice tells, at its place among the outputs, that something is missing there. Exactly one field is set.
type Notice struct {
	// Elided: the shim left output out, because there was too much.
	Elided *stream.Elided
	// Dropped: messages of the kernel were broken and thrown away.
	Dropped *stream.Dropped
	// Gap: output was given up because no server fetched it in time.
	Gap *stream.Gap
	// Incomplete says, in a sentence, what of the execution's end was never seen.
	Incomplete string
}

// String returns the notice as one line for people and models.
func (n Notice) String() string {
	switch {
	case n.Elided != nil:
		return "… " + elidedText(*n.Elided) + " left out here …"
	case n.Dropped != nil:
		d := n.Dropped
		return fmt.Sprintf("… %s dropped here: %s …", plural(max(d.Count, 1), "broken message"), clip(d.Reason))
	case n.Gap != nil:
		return fmt.Sprintf("… %s of output lost here: nobody fetched them in time …", plural(n.Gap.Bytes, "byte"))
	}
	return "… " + n.Incomplete + " …"
}

func elidedText(e stream.Elided) string {
	if e.Stream == "" {
		return fmt.Sprintf("%s (%s)", plural(e.Messages, "output"), plural(e.Bytes, "byte"))
	}
	return fmt.Sprintf("%s (%s) of %s", plural(e.Bytes, "byte"), plural(e.Lines, "line"), clip(e.Stream))
}

// plural returns "1 line", "20,000 lines".
func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return thousands(n) + " " + noun + "s"
}

func thousands(n int64) string {
	digits := strconv.FormatInt(n, 10)
	var b strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}
