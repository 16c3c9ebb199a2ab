package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
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

// ParseHeader decodes a header or a parent header. An empty one, {} and null give a zero Header; more than MaxHeader
// bytes, no JSON object, or a field that is not text give an ErrNotJupyter.
func ParseHeader(b []byte) (Header, error) {
	if len(b) > MaxHeader {
		return Header{}, fmt.Errorf("%w: header of %d bytes, at most %d", ErrNotJupyter, len(b), MaxHeader)
	}
	if len(b) == 0 {
		return Header{}, nil
	}
	if h, ok := scanHeader(string(b)); ok {
		return h, nil
	}
	var h Header
	if err := json.Unmarshal(b, &h); err != nil {
		return Header{}, fmt.Errorf("%w: header: %w", ErrNotJupyter, err)
	}
	return h, nil
}

func (h Header) encode() []byte {
	if h == (Header{}) {
		return empty
	}
	b, err := json.Marshal(h)
	if err != nil {
		panic("wire: " + err.Error()) // texts only: cannot fail
	}
	return b
}

// scanHeader decodes what nearly every header is, an object of plain texts under the names that we know, with a fifth
// of what encoding/json needs; two headers come with every message. It reports false for anything else, which
// encoding/json then decides about.
func scanHeader(s string) (h Header, ok bool) {
	if s, ok = cutToken(s, '{'); !ok {
		return h, false
	}
	if rest, done := cutToken(s, '}'); done {
		return h, rest == ""
	}
	for {
		var name, value string
		if name, s, ok = cutText(s); !ok {
			return h, false
		}
		if s, ok = cutToken(s, ':'); !ok {
			return h, false
		}
		if value, s, ok = cutText(s); !ok {
			return h, false
		}
		field := h.field(name)
		if field == nil {
			return h, false
		}
		*field = value
		if rest, more := cutToken(s, ','); more {
			s = rest
			continue
		}
		s, ok = cutToken(s, '}')
		return h, ok && s == ""
	}
}

// field returns where the value of a name goes, nil for an unknown name.
func (h *Header) field(name string) *string {
	switch name {
	case "msg_id":
		return &h.MsgID
	case "session":
		return &h.Session
	case "username":
		return &h.Username
	case "date":
		return &h.Date
	case "msg_type":
		return &h.MsgType
	case "version":
		return &h.Version
	case "subshell_id":
		return &h.SubshellID
	}
	return nil
}

// cutToken removes white space, one byte and white space from the front of s.
func cutToken(s string, token byte) (string, bool) {
	s = strings.TrimLeft(s, " \t\r\n")
	if s == "" || s[0] != token {
		return s, false
	}
	return strings.TrimLeft(s[1:], " \t\r\n"), true
}

// cutText removes a JSON string of printable ASCII without escapes from the front of s.
func cutText(s string) (text, rest string, ok bool) {
	if s == "" || s[0] != '"' {
		return "", s, false
	}
	for i := 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			return s[1:i], s[i+1:], true
		case c == '\\' || c < ' ' || c >= 0x7f:
			return "", s, false
		}
	}
	return "", s, false
}
