package wire

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"sync"
)

// Scheme is the signature_scheme that connection files name.
const Scheme = "hmac-sha256"

// Signer signs and verifies with one kernel's key. It may be used concurrently.
type Signer struct {
	off  bool
	pool sync.Pool // of *mac
}

type mac struct {
	hash.Hash
	sum [sha256.Size]byte
	hex [2 * sha256.Size]byte
}

// NewSigner returns a signer for the key of a connection file. An empty key turns signing off: signatures are then
// empty, and none is checked.
func NewSigner(key []byte) *Signer {
	s := &Signer{off: len(key) == 0}
	s.pool.New = func() any { return &mac{Hash: hmac.New(sha256.New, key)} }
	return s
}

// sum computes the hexadecimal signature into m.
func (m *mac) compute(parts [][]byte) []byte {
	m.Reset()
	for _, p := range parts[:dicts] {
		m.Write(p)
	}
	hex.Encode(m.hex[:], m.Sum(m.sum[:0]))
	return m.hex[:]
}

// Pack returns the frames for parts (see Message.Parts): delimiter, signature, parts. The parts are not copied.
func (s *Signer) Pack(parts [][]byte) ([][]byte, error) {
	if len(parts) < dicts {
		return nil, fmt.Errorf("%w: %d parts, at least %d", ErrNotJupyter, len(parts), dicts)
	}
	frames := make([][]byte, 2, 2+len(parts))
	frames[0], frames[1] = []byte(Delimiter), []byte{}
	if !s.off {
		m := s.pool.Get().(*mac)
		frames[1] = append(make([]byte, 0, len(m.hex)), m.compute(parts)...)
		s.pool.Put(m)
	}
	return append(frames, parts...), nil
}

// Unpack checks frames as they came from a socket and returns their parts, which alias frames.
func (s *Signer) Unpack(frames [][]byte) ([][]byte, error) {
	at := -1
	for i, f := range frames {
		if i > MaxIdentities {
			break
		}
		if string(f) == Delimiter {
			at = i
			break
		}
	}
	if at < 0 {
		return nil, fmt.Errorf("%w: no delimiter", ErrNotJupyter)
	}
	rest := frames[at+1:]
	if len(rest) < 1+dicts {
		return nil, fmt.Errorf("%w: %d frames after the delimiter, at least %d", ErrNotJupyter, len(rest), 1+dicts)
	}
	signature, parts := rest[0], rest[1:]
	if s.off {
		return parts, nil
	}
	m := s.pool.Get().(*mac)
	defer s.pool.Put(m)
	if !hmac.Equal(m.compute(parts), signature) {
		return nil, ErrSignature
	}
	return parts, nil
}
