package audit

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// seal is a line's HMAC, or the head's.
type seal [sha256.Size]byte

// MarshalText writes it in hexadecimal digits.
func (s seal) MarshalText() ([]byte, error) { return []byte(hex.EncodeToString(s[:])), nil }

// UnmarshalText reads what MarshalText writes.
func (s *seal) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("a seal has another length")
	}
	_, err := hex.Decode(s[:], text)
	return err
}

// place is a line's place in the chain.
type place struct {
	Seq uint64 `json:"seq"`
	// Before is the seal of the line before, zeros for the first.
	Before seal `json:"before"`
}

const sealMember = `,"seal":"`

// sealed returns a JSON object with a seal as its last member.
func sealed(key []byte, value any) (text []byte, s seal, err error) {
	body, err := json.Marshal(value)
	if err != nil {
		return nil, s, fmt.Errorf("audit: %w", err)
	}
	s = sealOf(key, body)
	body = append(body[:len(body)-1], sealMember...)
	body = hex.AppendEncode(body, s[:])
	return append(body, `"}`...), s, nil
}

func sealOf(key, body []byte) (s seal) {
	mac := hmac.New(sha256.New, key)
	mac.Write(body)
	mac.Sum(s[:0])
	return s
}

// errSeal is why a text is not what was sealed.
var errSeal = errors.New("its seal does not hold")

// unsealed checks a text that sealed has made, and reads it into value as far as it can be read: with errSeal, value holds
// what the text claims.
func unsealed(key, text []byte, value any) (s seal, err error) {
	const tail = 2*len(s) + len(`"}`)
	at := len(text) - tail - len(sealMember)
	if at < 1 || !bytes.Equal(text[at:at+len(sealMember)], []byte(sealMember)) || !bytes.HasSuffix(text, []byte(`"}`)) {
		return s, errors.New("it has no seal")
	}
	if err := s.UnmarshalText(text[at+len(sealMember) : len(text)-len(`"}`)]); err != nil {
		return s, err
	}
	body := append(append(make([]byte, 0, at+1), text[:at]...), '}')
	if err := json.Unmarshal(body, value); err != nil {
		return s, err
	}
	if want := sealOf(key, body); !hmac.Equal(s[:], want[:]) {
		return s, errSeal
	}
	return s, nil
}

// line is one line as it is written.
type line struct {
	place
	Entry
}

// appendLine appends a line for an entry and returns the place of the next.
func appendLine(key, to []byte, at place, e Entry) ([]byte, place, error) {
	text, s, err := sealed(key, line{at, e})
	if err != nil {
		return to, at, err
	}
	return append(append(to, text...), '\n'), place{Seq: at.Seq + 1, Before: s}, nil
}
