package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// SessionKey is the secret that proves an Mcp-Session-Id. An id is
//
//	base64url( form (1 byte) | made at (8, Unix seconds) | random (16) | abilities (1) | protocol revision (10) | HMAC-SHA256 (32) )
//
// where the HMAC is over all before it and the owner. So a server needs the key alone to know an id that it or an
// earlier process made, and what was agreed on with its client; and an id is of no use to any other owner. It grants
// nothing by itself: who calls is decided by the token of each request.
type SessionKey []byte

const (
	keyBytes    = 32
	idForm      = 2
	idRandom    = 16
	idAbilities = 1 + 8 + idRandom // where they are
	idVersion   = len("2025-11-25")
	idPayload   = idAbilities + 1 + idVersion
	idBytes     = idPayload + sha256.Size
	idMACDomain = "cellblock Mcp-Session-Id\x00"
)

// LoadSessionKey reads the key from a file that only this user may read, which it makes if it is missing. Processes that
// start at once with one file get one key.
func LoadSessionKey(path string) (SessionKey, error) {
	key, err := secretfile.Ensure(path, func() ([]byte, error) { return NewSessionKey(), nil })
	if err != nil {
		return nil, fmt.Errorf("session key: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fault.New(fault.Invalid, "session key: %s has %d bytes, not %d", path, len(key), keyBytes).
			WithHint("Remove it; a new one is made.")
	}
	return key, nil
}

// NewSessionKey returns a key that no other process has.
func NewSessionKey() SessionKey {
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	return key
}

// mint returns a new id for an owner's client, with whom initialize agreed on a revision.
func (k SessionKey) mint(owner string, c *client, now time.Time) string {
	b := make([]byte, idPayload, idBytes)
	b[0] = idForm
	binary.BigEndian.PutUint64(b[1:], uint64(now.Unix()))
	rand.Read(b[9:idAbilities])
	b[idAbilities] = byte(abilitiesOf(c.GetClientCapabilities()))
	copy(b[idAbilities+1:], c.ProtocolVersion())
	return base64.RawURLEncoding.EncodeToString(append(b, k.sign(b, owner)...))
}

// verify returns what an id that this key made for that owner tells of its client.
func (k SessionKey) verify(id, owner string) (c *client, ok bool) {
	if len(id) != base64.RawURLEncoding.EncodedLen(idBytes) {
		return nil, false // also with line breaks in it, which decoding skips
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) != idBytes || b[0] != idForm {
		return nil, false
	}
	payload, mac := b[:idPayload], b[idPayload:]
	if !hmac.Equal(mac, k.sign(payload, owner)) {
		return nil, false
	}
	can := abilities(payload[idAbilities]).capabilities()
	return &client{version: string(payload[idAbilities+1:]), capabilities: can}, true
}

func (k SessionKey) sign(payload []byte, owner string) []byte {
	h := hmac.New(sha256.New, k)
	h.Write([]byte(idMACDomain))
	h.Write(payload) // of fixed length, so that where the owner begins is never in doubt
	h.Write([]byte(owner))
	return h.Sum(nil)
}
