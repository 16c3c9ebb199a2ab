package wire

import (
	"bytes"
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

// NewSigner returns a signer for the key of a connection file. An empty key turns signing off: signatures are then
// empty, and none is checked.
func NewSigner(key []byte) *Signer {
	s := &Signer{off: len(key) == 0}
	s.pool.New = func() any { return &mac{Hash: hmac.New(sha256.New, key)} }
	return s
}

// Pack returns the frames for parts (see Message.Parts): delimiter, signature, parts. The parts are not copied, and
// frames must not be changed.
func (s *Signer) Pack(parts [][]byte) ([][]byte, error) {
	if len(parts) < dicts {
		return nil, fmt.Errorf("%w: %d parts, at least %d", ErrNotJupyter, len(parts), dicts)
	}
	p := new(packed)
	frames := append(p.frames[:0], delimiter, nil)
	if !s.off {
		m := s.pool.Get().(*mac)
		frames[1] = append(p.signature[:0], m.compute(parts)...)
		s.pool.Put(m)
	}
	return append(frames, parts...), nil
}

// Unpack checks frames as they came from a socket and returns their parts, which alias frames. The error is an
// ErrNotJupyter or an ErrSignature.
func (s *Signer) Unpack(frames [][]byte) ([][]byte, error) {
	signature, parts, err := Split(frames)
	if err != nil || s.off {
		return parts, err
	}
	m := s.pool.Get().(*mac)
	defer s.pool.Put(m)
	if !hmac.Equal(m.compute(parts), signature) {
		return nil, ErrSignature
	}
	return parts, nil
}

// Check verifies a message whose content comes in pieces.
type Check struct {
	signer    *Signer
	mac       *mac // nil if signing is off
	signature []byte
}

// Check begins to verify a message of which signature, header, parent header and metadata are there. The signature is
// kept until Verify.
func (s *Signer) Check(signature []byte, dicts [][]byte) *Check {
	c := &Check{signer: s, signature: signature}
	if !s.off {
		c.mac = s.pool.Get().(*mac)
		c.mac.Reset()
		for _, d := range dicts {
			c.mac.Write(d)
		}
	}
	return c
}

// Write takes the content's next bytes. It never fails.
func (c *Check) Write(content []byte) (int, error) {
	if c.mac != nil {
		c.mac.Write(content)
	}
	return len(content), nil
}

// Verify returns ErrSignature if the signature is not that of what was written. It is the last call.
func (c *Check) Verify() error {
	if c.mac == nil {
		return nil
	}
	defer c.signer.pool.Put(c.mac)
	if !hmac.Equal(c.mac.hexSum(), c.signature) {
		return ErrSignature
	}
	return nil
}

// Split finds signature and parts in frames as they came from a socket, and checks nothing else. Both alias frames.
func Split(frames [][]byte) (signature []byte, parts [][]byte, err error) {
	for i, frame := range frames[:min(len(frames), MaxIdentities+1)] {
		if !bytes.Equal(frame, delimiter) {
			continue
		}
		rest := frames[i+1:]
		if len(rest) < 1+dicts {
			return nil, nil, fmt.Errorf("%w: %d frames after the delimiter, at least %d", ErrNotJupyter, len(rest), 1+dicts)
		}
		return rest[0], rest[1:], nil
	}
	return nil, nil, fmt.Errorf("%w: no delimiter", ErrNotJupyter)
}

var delimiter = []byte(Delimiter)

// packed holds frames and signature of a message with few buffers, so that packing it allocates once.
type packed struct {
	frames    [2 + dicts + 2][]byte
	signature [2 * sha256.Size]byte
}

// mac computes signatures, again and again, without allocating.
type mac struct {
	hash.Hash
	sum [sha256.Size]byte
	hex [2 * sha256.Size]byte
}

// compute returns the signature of the four dictionaries in parts, valid until the next call.
func (m *mac) compute(parts [][]byte) []byte {
	m.Reset()
	for _, p := range parts[:dicts] {
		m.Write(p)
	}
	return m.hexSum()
}

func (m *mac) hexSum() []byte {
	hex.Encode(m.hex[:], m.Sum(m.sum[:0]))
	return m.hex[:]
}
