// Package wire converts Jupyter messages to and from the frames that travel over ZMQ, and signs and verifies them
// (Jupyter messaging 5.x, "The wire protocol"). It is pure: bytes in, message out; no sockets, no goroutines.
//
// On the wire a message is
//
//	identities… | <IDS|MSG> | signature | header | parent_header | metadata | content | buffers…
//
// Between server and shim the last five of these travel alone, as parts; the shim adds and removes the rest.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Delimiter separates the routing identities from the message.
const Delimiter = "<IDS|MSG>"

// ProtocolVersion is the version of the messaging protocol that we write into headers. Kernels that know less ignore
// what is newer; what a kernel really supports is asked of it, never read from this.
const ProtocolVersion = "5.4"

// Bounds of a message. They are far above what any kernel sends and keep a hostile one from costing memory.
const (
	// MaxIdentities bounds the routing identities.
	MaxIdentities = 64
	// MaxHeader bounds header and parent header, in bytes.
	MaxHeader = 64 << 10
	dicts     = 4 // header, parent header, metadata, content
)

var (
	// ErrNotJupyter is returned for frames that are no Jupyter message: no delimiter, too few frames, no JSON.
	ErrNotJupyter = errors.New("wire: not a Jupyter message")
	// ErrSignature is returned when the signature is not that of the message.
	ErrSignature = errors.New("wire: wrong signature")
)

// Header identifies a message (Jupyter messaging, "Message header").
type Header struct {
	MsgID    string `json:"msg_id"`
	Session  string `json:"session"`
	Username string `json:"username"`
	// Date is ISO 8601; kept as text, because kernels write it in many ways.
	Date    string `json:"date"`
	MsgType string `json:"msg_type"`
	Version string `json:"version"`
	// SubshellID addresses a subshell (JEP 91), where the kernel has them.
	SubshellID string `json:"subshell_id,omitempty"`
}

// NewHeader returns a header for a message that we send now.
func NewHeader(msgID, session, msgType string) Header {
	return Header{
		MsgID: msgID, Session: session, Username: "cellblock",
		Date:    time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		MsgType: msgType, Version: ProtocolVersion,
	}
}

// Message is a message without its routing and signature.
type Message struct {
	Header Header
	// Parent is the header of the request that caused this message; zero if there is none.
	Parent   Header
	Metadata json.RawMessage
	Content  json.RawMessage
	Buffers  [][]byte
}

var empty = []byte("{}")

// Parts encodes m as header, parent header, metadata, content and buffers. Nil dictionaries become {}.
func (m Message) Parts() [][]byte {
	parts := make([][]byte, dicts, dicts+len(m.Buffers))
	parts[0] = encodeHeader(m.Header)
	parts[1] = encodeHeader(m.Parent)
	parts[2], parts[3] = m.Metadata, m.Content
	if len(m.Metadata) == 0 {
		parts[2] = empty
	}
	if len(m.Content) == 0 {
		parts[3] = empty
	}
	return append(parts, m.Buffers...)
}

func encodeHeader(h Header) []byte {
	if h == (Header{}) {
		return empty
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic("wire: " + err.Error()) // strings only: cannot fail
	}
	return b
}

// FromParts decodes what Parts encodes. Metadata, Content and Buffers alias parts; metadata and content must be JSON
// texts but are not decoded.
func FromParts(parts [][]byte) (Message, error) {
	if len(parts) < dicts {
		return Message{}, fmt.Errorf("%w: %d parts, at least %d", ErrNotJupyter, len(parts), dicts)
	}
	var m Message
	if err := decodeHeader(parts[0], &m.Header); err != nil {
		return Message{}, fmt.Errorf("%w: header: %v", ErrNotJupyter, err)
	}
	if m.Header.MsgType == "" {
		return Message{}, fmt.Errorf("%w: header without msg_type", ErrNotJupyter)
	}
	if err := decodeHeader(parts[1], &m.Parent); err != nil {
		return Message{}, fmt.Errorf("%w: parent header: %v", ErrNotJupyter, err)
	}
	for i, name := range []string{2: "metadata", 3: "content"} {
		if i >= 2 && !json.Valid(parts[i]) {
			return Message{}, fmt.Errorf("%w: %s is not JSON", ErrNotJupyter, name)
		}
	}
	m.Metadata, m.Content = parts[2], parts[3]
	m.Buffers = parts[dicts:]
	return m, nil
}

func decodeHeader(b []byte, h *Header) error {
	if len(b) > MaxHeader {
		return fmt.Errorf("%d bytes, at most %d", len(b), MaxHeader)
	}
	if len(b) == 0 || bytes.Equal(b, empty) {
		return nil
	}
	return json.Unmarshal(b, h)
}
