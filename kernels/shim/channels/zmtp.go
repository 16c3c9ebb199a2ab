package channels

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Bounds of what a peer may send; beyond them it is no Jupyter kernel.
const (
	maxFrame   = 1 << 40  // bytes of a frame, also of one that is skipped
	maxFrames  = 4096     // frames of a message
	maxCommand = 64 << 10 // bytes of a command
	readBuffer = 16 << 10
)

// Flags of a frame (ZMTP 3.1, "Framing").
const (
	flagMore    = 1
	flagLong    = 2
	flagCommand = 4
)

// errProtocol is in every error about a peer that breaks ZMTP or our bounds.
var errProtocol = errors.New("ZMTP protocol error")

// parser reads what a ZMTP 3.x peer sends and passes on only what zmq4 can read safely: zmq4 takes a frame's size on
// trust and allocates it, collects frames without end, and indexes past the end of malformed metadata.
//
// A message whose frames add up to more than max bytes is passed with empty frames from where it went over; what they
// held is counted, and its ends are kept, in a cut. Commands that come after the handshake are not passed on at all.
// Everything else that is out of bounds is an error, and then so is every later Read.
type parser struct {
	r   *bufio.Reader
	max int64
	// command is told of every command after the handshake. Its body is valid until it returns.
	command func(name string, body []byte) error
	// skim, if not nil, returns what is to read the first frame of a message that is skipped.
	skim func() io.Writer

	out  []byte // to be passed before anything else
	body int64  // then this much of the source, as it is
	err  error
	head [9]byte // backs out

	greeted, ready bool
	frames         int   // of the message so far; 0 between messages
	total          int64 // their bytes, including what was skipped
	cut            *cut  // of the message so far
}

func newParser(r io.Reader, max int64, command func(string, []byte) error) *parser {
	return &parser{r: bufio.NewReaderSize(r, readBuffer), max: max, command: command}
}

// Read reads what zmq4 may see.
func (p *parser) Read(b []byte) (int, error) {
	for len(b) > 0 && len(p.out) == 0 && p.body == 0 {
		if p.err != nil {
			return 0, p.err
		}
		p.err = p.next()
	}
	if len(p.out) > 0 {
		n := copy(b, p.out)
		p.out = p.out[n:]
		return n, nil
	}
	n, err := p.r.Read(b[:min(int64(len(b)), p.body)])
	p.body -= int64(n)
	if err != nil {
		p.body, p.err = 0, inside(err)
	}
	return n, p.err
}

// takeCut returns what was left out of the message that was read last, nil if it is whole.
func (p *parser) takeCut() *cut {
	c := p.cut
	p.cut = nil
	return c
}

// next prepares the next thing to pass on.
func (p *parser) next() error {
	if !p.greeted {
		return p.greeting()
	}
	flags, err := p.r.ReadByte()
	if err != nil {
		return err // io.EOF here is an orderly end
	}
	size, err := p.size(flags)
	switch {
	case err != nil:
		return err
	case flags&^(flagMore|flagLong|flagCommand) != 0:
		return fmt.Errorf("%w: flags %#x", errProtocol, flags)
	case flags&flagCommand != 0:
		return p.readCommand(flags, size)
	case !p.ready:
		return fmt.Errorf("%w: message before the handshake", errProtocol)
	}
	return p.readFrame(flags&flagMore, size)
}

// size reads the size of a frame.
func (p *parser) size(flags byte) (uint64, error) {
	if flags&flagLong == 0 {
		n, err := p.r.ReadByte()
		return uint64(n), inside(err)
	}
	var n [8]byte
	_, err := io.ReadFull(p.r, n[:])
	return binary.BigEndian.Uint64(n[:]), inside(err)
}

// greeting reads the 64 bytes that open a connection.
func (p *parser) greeting() error {
	var g [64]byte
	if _, err := io.ReadFull(p.r, g[:]); err != nil {
		return err
	}
	if g[0] != 0xff || g[9] != 0x7f || g[10] < 3 {
		return fmt.Errorf("%w: greeting is not that of ZMTP 3", errProtocol)
	}
	p.greeted, p.out = true, g[:]
	return nil
}

// readFrame reads the head of a message's frame, and what is skipped of it.
func (p *parser) readFrame(more byte, size uint64) error {
	if p.frames == 0 {
		p.total, p.cut = 0, nil
	}
	if p.frames++; p.frames > maxFrames {
		return fmt.Errorf("%w: message of more than %d frames", errProtocol, maxFrames)
	}
	if size > maxFrame {
		return fmt.Errorf("%w: frame of %d bytes", errProtocol, size)
	}
	p.total += int64(size)
	if p.cut == nil && p.total > p.max {
		p.cut = &cut{frame: p.frames - 1, size: int64(size)}
		if p.skim != nil {
			p.cut.skim = p.skim()
		}
	}
	if p.cut == nil {
		p.out, p.body = p.frameHead(more, size), int64(size)
	} else {
		if err := p.skip(int64(size)); err != nil {
			return err
		}
		p.out, p.cut.total = p.frameHead(more, 0), p.total
	}
	if more == 0 {
		p.frames = 0
	}
	return nil
}

// skip reads size bytes and keeps the ends of the first frame that is skipped in a message.
func (p *parser) skip(size int64) error {
	first := p.cut.frame == p.frames-1
	for at := int64(0); at < size; {
		if _, err := p.r.Peek(1); err != nil {
			return inside(err)
		}
		chunk, _ := p.r.Peek(int(min(int64(p.r.Buffered()), size-at)))
		if first {
			p.cut.keep(at, chunk)
		}
		at += int64(len(chunk))
		p.r.Discard(len(chunk))
	}
	return nil
}

// readCommand reads a command. READY, which ends the handshake, is passed on once it is found to be well-formed.
func (p *parser) readCommand(flags byte, size uint64) error {
	if flags&flagMore != 0 || size > maxCommand {
		return fmt.Errorf("%w: command of %d bytes with flags %#x", errProtocol, size, flags)
	}
	data := make([]byte, size)
	if _, err := io.ReadFull(p.r, data); err != nil {
		return inside(err)
	}
	if size == 0 || int(data[0]) >= len(data) {
		return fmt.Errorf("%w: malformed command", errProtocol)
	}
	name, body := string(data[1:1+data[0]]), data[1+data[0]:]
	switch {
	case p.ready:
		return p.command(name, body)
	case name != "READY":
		return fmt.Errorf("%w: %q %.100q in place of READY", errProtocol, name, body)
	case !validMetadata(body):
		return fmt.Errorf("%w: malformed metadata", errProtocol)
	}
	p.ready = true
	p.out = append(p.frameHead(flagCommand, size), data...)
	return nil
}

// validMetadata tells whether b is a sequence of properties: length of name, name, four bytes length of value, value.
func validMetadata(b []byte) bool {
	for len(b) > 0 {
		name := 1 + int(b[0])
		if len(b) < name+4 {
			return false
		}
		value := binary.BigEndian.Uint32(b[name:])
		if b = b[name+4:]; uint64(value) > uint64(len(b)) {
			return false
		}
		b = b[value:]
	}
	return true
}

// frameHead encodes the head of a frame.
func (p *parser) frameHead(flags byte, size uint64) []byte {
	if size <= 0xff {
		return append(p.head[:0], flags, byte(size))
	}
	return binary.BigEndian.AppendUint64(append(p.head[:0], flags|flagLong), size)
}

// inside is for an error within a frame, where an end is not an orderly one.
func inside(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
