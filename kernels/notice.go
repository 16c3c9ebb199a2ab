package kernels

import (
	"fmt"

	"cellblock/internal/words"
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
		if d.Reason == stream.DroppedTooLarge {
			return fmt.Sprintf("… %s (%s) dropped here: too large for one message; save it to a file, or show less of it at once …",
				words.Count(max(d.Count, 1), "output"), words.Count(d.Bytes, "byte"))
		}
		return fmt.Sprintf("… %s dropped here: %s …", words.Count(max(d.Count, 1), "broken message"), clip(d.Reason))
	case n.Gap != nil:
		return fmt.Sprintf("… %s of output lost here: nobody fetched them in time …", words.Count(n.Gap.Bytes, "byte"))
	}
	return "… " + n.Incomplete + " …"
}

func elidedText(e stream.Elided) string {
	if e.Stream == "" {
		return fmt.Sprintf("%s (%s)", words.Count(e.Messages, "output"), words.Count(e.Bytes, "byte"))
	}
	lines := ""
	if e.Lines > 0 {
		lines = " (" + words.Count(e.Lines, "line") + ")"
	}
	return words.Count(e.Bytes, "byte") + lines + " of " + clip(e.Stream)
}
