package stream

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// A pair of pipes that outlives its users (a container's stdio, which servers attach to one after the other) has no
// beginning and end of a connection, and may hold a half-written frame of an earlier one. So both ends mark them:
//
//	key (16 bytes) | nonce (8 bytes) | chunk… | end
//	chunk: uint16 length, big-endian | data | nonce        end: a chunk of length 0
//
// The client opens a connection by writing this with a nonce of its own; the server, which watches for the key in
// everything it reads, drops the connection that it had and answers with the same opening. The client discards what it
// reads until there. Key and nonces are unknown to everybody else, so what travels inside can forge neither, and a chunk
// that something was lost from or mixed into does not end with the nonce: no frame is ever read from such bytes.
const (
	attachKeySize = 16
	nonceSize     = 8
	maxChunk      = 32 << 10
	chunkOverhead = 2 + nonceSize
	// openingByte is the first of every key. No chunk is so long, so an opening between chunks is seen at once by the
	// client that it takes the pipes from.
	openingByte = 0xff
	// attachReady is how much one connection may hold that was read and not yet asked for, before reading pauses.
	attachReady = 256 << 10
	// endTimeout bounds the attempt to tell the other end of a Close.
	endTimeout = 100 * time.Millisecond
)

// ErrReplaced is what a connection over attached pipes returns once another has taken its place.
var ErrReplaced = errors.New("stream: another connection took over the pipes")

type nonce [nonceSize]byte

// NewAttachKey returns a new key for Config.AttachKey. Whoever knows it can take over the stream.
func NewAttachKey() string {
	key := make([]byte, attachKeySize)
	_, _ = rand.Read(key) // never fails
	key[0] = openingByte
	return hex.EncodeToString(key)
}

// ParseAttachKey checks and decodes a key.
func ParseAttachKey(key string) ([]byte, error) {
	b, err := hex.DecodeString(key)
	if err != nil || len(b) != attachKeySize || b[0] != openingByte {
		return nil, fmt.Errorf("stream: attach key must be %d hexadecimal digits, %02x first", 2*attachKeySize, openingByte)
	}
	return b, nil
}

// finder finds a pattern in a stream of bytes (Knuth, Morris and Pratt). It never holds a byte back.
type finder struct {
	pattern []byte
	back    []int // back[i]: length of the longest border of pattern[:i]
	matched int
}

func newFinder(pattern []byte) *finder {
	f := &finder{pattern: pattern, back: make([]int, len(pattern)+1)}
	f.back[0] = -1
	for i, k := 0, -1; i < len(pattern); {
		for k >= 0 && pattern[i] != pattern[k] {
			k = f.back[k]
		}
		i, k = i+1, k+1
		f.back[i] = k
	}
	return f
}

// next takes one more byte and tells whether the pattern ends with it.
func (f *finder) next(b byte) bool {
	for f.matched >= 0 && f.pattern[f.matched] != b {
		f.matched = f.back[f.matched]
	}
	f.matched++
	if f.matched < len(f.pattern) {
		return false
	}
	f.matched = f.back[f.matched]
	return true
}

// appendChunk appends data as one chunk. Data is at most maxChunk bytes.
func appendChunk(dst, data []byte, tag nonce) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(len(data)))
	dst = append(dst, data...)
	return append(dst, tag[:]...)
}

// unchunker takes apart what appendChunk put together.
type unchunker struct {
	tag nonce
	raw []byte       // of a chunk that is not whole yet
	out bytes.Buffer // of whole ones
}

// feed takes bytes as they arrived. It returns io.EOF at the end, and ErrReplaced for a chunk that is not this
// connection's; out stays valid.
func (u *unchunker) feed(p []byte) error {
	u.raw = append(u.raw, p...)
	rest := u.raw
	defer func() { u.raw = append(u.raw[:0], rest...) }()
	for len(rest) >= 2 {
		n := int(binary.BigEndian.Uint16(rest))
		if n > maxChunk {
			return ErrReplaced
		}
		if len(rest) < n+chunkOverhead {
			return nil
		}
		if !bytes.Equal(rest[2+n:n+chunkOverhead], u.tag[:]) {
			return ErrReplaced
		}
		if n == 0 {
			return io.EOF
		}
		u.out.Write(rest[2 : 2+n])
		rest = rest[n+chunkOverhead:]
	}
	return nil
}

// chunker writes one connection's side of the pipes: the opening, then chunks. Its methods are not safe for concurrent
// use.
type chunker struct {
	w      io.Writer
	tag    nonce
	buf    []byte // the opening until it is written, scratch afterwards
	closed bool
}

func newChunker(w io.Writer, key []byte, tag nonce) *chunker {
	return &chunker{w: w, tag: tag, buf: append(append([]byte{}, key...), tag[:]...)}
}

func (c *chunker) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		n := min(len(p), maxChunk)
		if err := c.write(p[:n]); err != nil {
			return written, err
		}
		written, p = written+n, p[n:]
	}
	return written, nil
}

// write writes p as a chunk, the end when p is empty, after the opening if that is still to come.
func (c *chunker) write(p []byte) error {
	if c.closed {
		return net.ErrClosed
	}
	c.buf = appendChunk(c.buf, p, c.tag)
	_, err := c.w.Write(c.buf)
	c.closed = err != nil || len(p) == 0 // part of a chunk may be out, or the end: nothing can follow it
	c.buf = c.buf[:0]
	return err
}

// AttachClient opens a connection over a pair of pipes whose other end an AttachServer with the same key watches. It
// writes the opening and does not wait for an answer; the first Read does. Deadlines work if rw has them. Close also
// closes rw, which is all that ends a Read of a rw without deadlines.
func AttachClient(rw io.ReadWriteCloser, key string) (net.Conn, error) {
	k, err := ParseAttachKey(key)
	if err != nil {
		return nil, err
	}
	c := &attachClient{rw: rw}
	_, _ = rand.Read(c.in.tag[:]) // never fails
	c.out = newChunker(rw, k, c.in.tag)
	c.opening = newFinder(append(k, c.in.tag[:]...))
	if _, err := rw.Write(c.out.buf); err != nil {
		return nil, fmt.Errorf("stream: attaching: %w", err)
	}
	c.out.buf = c.out.buf[:0]
	return c, nil
}

type attachClient struct {
	rw      io.ReadWriteCloser
	opening *finder // nil once found
	in      unchunker
	scratch [maxChunk]byte
	inErr   error

	mu  sync.Mutex // guards out
	out *chunker
}

// Read returns io.EOF when the other end closed the connection, ErrReplaced when it gave it to somebody else.
func (c *attachClient) Read(p []byte) (int, error) {
	for c.in.out.Len() == 0 {
		if c.inErr != nil {
			return 0, c.inErr
		}
		n, err := c.rw.Read(c.scratch[:])
		if feedErr := c.feed(c.scratch[:n]); feedErr != nil {
			err = feedErr
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			c.inErr = err
		} else if c.in.out.Len() == 0 {
			return 0, err
		}
	}
	return c.in.out.Read(p)
}

func (c *attachClient) feed(p []byte) error {
	for c.opening != nil && len(p) > 0 {
		if c.opening.next(p[0]) {
			c.opening = nil
		}
		p = p[1:]
	}
	return c.in.feed(p)
}

func (c *attachClient) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.Write(p)
}

// CloseWrite tells the other end that nothing more comes. That closes its side when it has read what came before.
func (c *attachClient) CloseWrite() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.out.write(nil)
}

// Close tells the other end where that cannot block for long, unless it knows, and closes the pipes.
func (c *attachClient) Close() error {
	if c.SetWriteDeadline(time.Now().Add(endTimeout)) == nil {
		_ = c.CloseWrite()
	}
	return c.rw.Close()
}

func (c *attachClient) LocalAddr() net.Addr  { return attachAddr{} }
func (c *attachClient) RemoteAddr() net.Addr { return attachAddr{} }

func (c *attachClient) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

func (c *attachClient) SetReadDeadline(t time.Time) error {
	if d, ok := c.rw.(interface{ SetReadDeadline(time.Time) error }); ok {
		return d.SetReadDeadline(t)
	}
	return os.ErrNoDeadline
}

func (c *attachClient) SetWriteDeadline(t time.Time) error { return setWriteDeadline(c.rw, t) }

func setWriteDeadline(w any, t time.Time) error {
	if d, ok := w.(interface{ SetWriteDeadline(time.Time) error }); ok {
		return d.SetWriteDeadline(t)
	}
	return os.ErrNoDeadline
}

// attachAddr is the address of both ends: pipes have none.
type attachAddr struct{}

func (attachAddr) Network() string { return "attach" }
func (attachAddr) String() string  { return "stdio" }

var _ net.Conn = (*attachClient)(nil)
