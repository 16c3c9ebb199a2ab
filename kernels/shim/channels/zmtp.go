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
	maxFrame   = 1 << 40   // bytes of a frame, also of one that is skipped
	maxFrames  = 4096      // frames of a message
	maxCommand = 64 << 10  // bytes of a command
	maxLead    = 128 << 10 // bytes of the frames before a large one that are kept to tell what that is
	readBuffer = 16 << 10
	passBuffer = 128 << 10 // bytes of a frame that is skipped which are read at once
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
// A message whose frames add up to more than max bytes is passed with empty frames from where it went over, and so is one
// whose large frame somebody else wants to read; what they held is counted in a cut. Commands that come after the
// handshake are not passed on at all. Everything else that is out of bounds is an error, and then so is every later Read.
type parser struct {
	r   *bufio.Reader
	max int64
	// command is told of every command after the handshake. Its body is valid until it returns.
	command func(name string, body []byte) error
	// divert, if not nil, is asked who reads a frame of more than large bytes; nil means zmq4. It is given the frames of
	// the message that came before, if they are small enough to be kept, valid until it returns.
	divert func(lead [][]byte) io.Writer
	large  int64

	out  []byte // to be passed before anything else
	body int64  // then this much of the source, as it is
	err  error
	head [9]byte // backs out

	greeted, ready bool
	frames         int    // of the message so far; 0 between messages
	total          int64  // their bytes, including what was skipped
	cut            *cut   // of the message so far
	lead           []byte // the message's frames so far, one after the other…
	leadEnds       []int  // …and where each ends; fewer than frames if they are not kept
	keeping        bool   // the present frame is one of them
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
	if p.keeping {
		p.lead = append(p.lead, b[:n]...)
	}
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
		p.total, p.cut, p.lead, p.leadEnds = 0, nil, p.lead[:0], p.leadEnds[:0]
	}
	if p.frames++; p.frames > maxFrames {
		return fmt.Errorf("%w: message of more than %d frames", errProtocol, maxFrames)
	}
	if size > maxFrame {
		return fmt.Errorf("%w: frame of %d bytes", errProtocol, size)
	}
	p.total += int64(size)
	p.decide(int64(size))
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

// decide decides what becomes of the frame that begins: cut is set if zmq4 does not get it, and keeping if it is kept.
func (p *parser) decide(size int64) {
	p.keeping = false
	if p.cut != nil {
		return
	}
	kept := len(p.leadEnds) == p.frames-1
	if p.divert != nil && size > p.large && kept {
		if to := p.divert(p.leadFrames()); to != nil {
			p.cut = &cut{frame: p.frames - 1, to: to}
			return
		}
	}
	if p.total > p.max {
		p.cut = &cut{frame: p.frames - 1}
		return
	}
	if p.keeping = p.divert != nil && kept && p.total <= maxLead; p.keeping {
		p.leadEnds = append(p.leadEnds, int(p.total))
	}
}

// leadFrames returns the message's frames so far, with room for one more.
func (p *parser) leadFrames() [][]byte {
	frames := make([][]byte, 0, len(p.leadEnds)+1)
	start := 0
	for _, end := range p.leadEnds {
		frames = append(frames, p.lead[start:end:end])
		start = end
	}
	return frames
}

// skip reads size bytes that zmq4 does not get.
func (p *parser) skip(size int64) error {
	if size == 0 {
		return nil
	}
	to := io.Discard
	if p.cut.to != nil && p.cut.frame == p.frames-1 {
		to = p.cut.to
	}
	n, err := io.CopyBuffer(to, io.LimitReader(p.r, size), make([]byte, min(size, passBuffer)))
	if n < size && err == nil {
		err = io.EOF
	}
	return inside(err)
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
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
