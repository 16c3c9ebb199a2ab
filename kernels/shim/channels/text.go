package channels

import (
	"bytes"
	"io"

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

// divert is a parser's: it tells who else reads a large frame. A text's content goes to its reader in the ZMQ library's
// place; any other content is verified as it comes, so that the last of it waits for no look at all of it. Lead are the
// frames of the message that came before, valid until it returns.
func (r *receiver) divert(size int64, lead [][]byte) (to io.Writer, instead bool) {
	const content = 3
	signature, parts, err := wire.Split(append(lead, nil)) // as if this were the last, and empty
	if err != nil || len(parts) != content+1 {
		return nil, false
	}
	parts = parts[:content:content]
	check := r.signer.Check(bytes.Clone(signature), parts)
	if size <= r.maxText || !r.takesText(parts[0]) {
		r.check = check
		return check, false
	}
	for i := range parts {
		parts[i] = bytes.Clone(parts[i])
	}
	r.text = &text{r.handler.(Texter).Text(parts), check}
	return r.text, true
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

// takesText tells whether a message with that header is read in pieces where it is large.
func (r *receiver) takesText(header []byte) bool {
	if _, ok := r.handler.(Texter); !ok {
		return false
	}
	h, err := wire.ParseHeader(header)
	return err == nil && h.MsgType == "stream"
}
