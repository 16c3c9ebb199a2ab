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

	"cellblock/internal/jsontext"
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
	// MaxHeader bounds header and parent header, in bytes each.
	MaxHeader = 64 << 10
)

// Places of the four dictionaries within a message's parts; the buffers follow them.
const (
	headerPart = iota
	parentPart
	metadataPart
	contentPart
	dicts
)

var (
	// ErrNotJupyter is returned for frames that are no Jupyter message: no delimiter, too few frames, no JSON.
	ErrNotJupyter = errors.New("wire: not a Jupyter message")
	// ErrSignature is returned when the signature is not that of the message.
	ErrSignature = errors.New("wire: wrong signature")
)

// Message is a message without its routing and signature.
type Message struct {
	Header Header
	// Parent is the header of the request that caused this message; zero if there is none.
	Parent Header
	// Metadata and Content are JSON objects.
	Metadata json.RawMessage
	Content  json.RawMessage
	// Buffers are raw bytes that some messages carry beside their JSON; they are not signed.
	Buffers [][]byte
}

// Parts encodes m as header, parent header, metadata, content and buffers. Nil dictionaries become {}. What is returned
// aliases m and must not be changed.
func (m Message) Parts() [][]byte {
	parts := make([][]byte, dicts, dicts+len(m.Buffers))
	parts[headerPart] = m.Header.encode()
	parts[parentPart] = m.Parent.encode()
	parts[metadataPart] = orEmpty(m.Metadata)
	parts[contentPart] = orEmpty(m.Content)
	return append(parts, m.Buffers...)
}

// FromParts decodes what Parts encodes. Metadata, Content and Buffers alias parts. Metadata and content are checked to
// be JSON objects (null counts as an empty one) but are not decoded. Every error is an ErrNotJupyter.
func FromParts(parts [][]byte) (Message, error) {
	if len(parts) < dicts {
		return Message{}, fmt.Errorf("%w: %d parts, at least %d", ErrNotJupyter, len(parts), dicts)
	}
	var m Message
	var err error
	if m.Header, err = ParseHeader(parts[headerPart]); err != nil {
		return Message{}, err
	}
	if m.Header.MsgType == "" {
		return Message{}, fmt.Errorf("%w: header without msg_type", ErrNotJupyter)
	}
	if m.Parent, err = ParseHeader(parts[parentPart]); err != nil {
		return Message{}, fmt.Errorf("parent: %w", err)
	}
	if m.Metadata, err = dictionary(parts[metadataPart]); err != nil {
		return Message{}, fmt.Errorf("metadata: %w", err)
	}
	if m.Content, err = dictionary(parts[contentPart]); err != nil {
		return Message{}, fmt.Errorf("content: %w", err)
	}
	m.Buffers = parts[dicts:]
	return m, nil
}

var empty = []byte("{}")

func orEmpty(dict []byte) []byte {
	if len(dict) == 0 {
		return empty
	}
	return dict
}

// dictionary checks that b is a JSON object.
func dictionary(b []byte) (json.RawMessage, error) {
	start := bytes.TrimLeft(b, " \t\r\n")
	switch {
	case !jsontext.Valid(b):
		return nil, fmt.Errorf("%w: no JSON", ErrNotJupyter)
	case start[0] == '{':
		return b, nil
	case start[0] == 'n': // what is valid and starts so is null
		return empty, nil
	}
	return nil, fmt.Errorf("%w: no JSON object", ErrNotJupyter)
}
