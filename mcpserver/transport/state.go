package transport

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// ErrState is returned by [SessionKey.Open] for a state that this key did not seal for that owner, or that has expired.
var ErrState = errors.New("the requestState is not known here, or has expired: call again without it")

const (
	stateForm      = 1
	stateHead      = 1 + 8
	stateMACDomain = "cellblock requestState\x00"
)

// Seal returns what a result that asks for input hands to the client, to be brought back with the answers (requestState
// of 2026-07-28). Open with the same key and owner returns the state, until a time, so that nobody can make one up,
// change one, or use another's. The client can read it. It can also bring it back more than once: what may happen only
// once is the caller's to remember. The form is
//
//	base64url( form (1 byte) | until (8, Unix milliseconds) | state | HMAC-SHA256 (32) )
func (k SessionKey) Seal(owner string, state []byte, until time.Time) string {
	b := make([]byte, stateHead, stateHead+len(state)+sha256.Size)
	b[0] = stateForm
	binary.BigEndian.PutUint64(b[1:], uint64(until.UnixMilli()))
	b = append(b, state...)
	return base64.RawURLEncoding.EncodeToString(append(b, k.signState(b, owner)...))
}

// Open returns the state of a sealed text that is still good at a time. The error is ErrState.
func (k SessionKey) Open(owner, sealed string, now time.Time) ([]byte, error) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	whole := len(sealed) == base64.RawURLEncoding.EncodedLen(len(b)) // without line breaks, which decoding skips
	if err != nil || !whole || len(b) < stateHead+sha256.Size || b[0] != stateForm {
		return nil, ErrState
	}
	signed, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	until := time.UnixMilli(int64(binary.BigEndian.Uint64(signed[1:])))
	if !hmac.Equal(mac, k.signState(signed, owner)) || !now.Before(until) {
		return nil, ErrState
	}
	return signed[stateHead:], nil
}

// signState signs a state for an owner. The owner's length comes first, so that where it ends is never in doubt.
func (k SessionKey) signState(b []byte, owner string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(stateMACDomain))
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(owner))))
	h.Write([]byte(owner))
	h.Write(b)
	return h.Sum(nil)
}
