package channels

import (
	"bytes"
	"io"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// Texter is a Handler that takes what a kernel prints in pieces where it is large, so that nobody holds all of it at once.
type Texter interface {
	// Text is called when the content of a message of type "stream" begins, on IOPub, that is larger than
	// Options.MaxText. Parts are header, parent header and metadata. What it returns is given the content, in order and as
	// it passes; no Message or Dropped follows.
	Text(parts [][]byte) Text
}

// Text reads the content of one message. Whether the signature is right is known only at its end.
type Text interface {
	// Write takes the next bytes, which belong to the caller again when it returns. It must not fail.
	io.Writer
	// End is the last call. Reason is empty for a message that was whole and had the right signature, else one of the
	// Reasons.
	End(reason string)
}

// text is the message that a receiver's Text reads.
type text struct {
	Text
	check *wire.Check
}

// Write reads and verifies.
func (t *text) Write(b []byte) (int, error) {
	_, _ = t.check.Write(b)
	return t.Text.Write(b)
}

// divert is a parser's: it tells who reads a large frame in the ZMQ library's place, nil for nobody. Lead are the frames
// of the message that came before, valid until it returns.
func (r *receiver) divert(lead [][]byte) io.Writer {
	const content = 3
	signature, parts, err := wire.Split(append(lead, nil)) // as if this were the last, and empty
	if err != nil || len(parts) != content+1 {
		return nil
	}
	if header, err := wire.ParseHeader(parts[0]); err != nil || header.MsgType != "stream" {
		return nil
	}
	for i := range parts {
		parts[i] = bytes.Clone(parts[i])
	}
	parts = parts[:content:content]
	r.text = &text{r.handler.(Texter).Text(parts), r.signer.Check(bytes.Clone(signature), parts)}
	return r.text
}

// endText ends the text that was read, if there is one.
func (r *receiver) endText(whole bool) {
	t := r.text
	if t == nil {
		return
	}
	r.text = nil
	switch err := t.check.Verify(); {
	case !whole:
		t.End(ReasonCutShort)
	case err != nil:
		t.End(ReasonSignature)
	default:
		t.End("")
	}
}

// takesText tells whether a channel's large texts are read in pieces.
func (r *receiver) takesText() bool {
	_, ok := r.handler.(Texter)
	return ok && r.id == stream.IOPub
}
