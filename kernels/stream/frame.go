package stream

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"sync"

	"cellblock/internal/jsontext"
)

// ErrFrameTooLarge is what ReadFrame returns for a frame above the reader's limit.
var ErrFrameTooLarge = errors.New("stream: frame above the limit")

// ErrMalformed is what decoding returns for a payload that breaks the format.
var ErrMalformed = errors.New("stream: malformed frame")

const (
	lengthSize  = 4
	bufferSize  = 8 << 10 // a dozen small frames; every session at rest has one, and what is larger is read past it
	chunkSize   = 1 << 20
	messageHead = 8 + 1 + 2 // seq, channel, number of parts
)

// Frame is one frame as it was read. Payload belongs to the caller.
type Frame struct {
	Type    FrameType
	Payload []byte
}

// Reader reads frames. It is not safe for concurrent use.
type Reader struct {
	r   *bufio.Reader
	max int64
}

// NewReader returns a reader that refuses frames of more than maxFrame bytes.
func NewReader(r io.Reader, maxFrame int64) *Reader {
	return &Reader{r: bufio.NewReaderSize(r, bufferSize), max: maxFrame}
}

// ReadFrame reads one frame. It returns io.EOF when the stream ends between frames, io.ErrUnexpectedEOF when it ends
// within one. Memory is taken as bytes arrive, so a length alone costs nothing.
func (r *Reader) ReadFrame() (Frame, error) {
	var head [lengthSize + 1]byte
	if _, err := io.ReadFull(r.r, head[:]); err != nil {
		return Frame{}, err
	}
	n := int64(binary.BigEndian.Uint32(head[:])) - 1
	if n < 0 {
		return Frame{}, fmt.Errorf("%w: empty frame", ErrMalformed)
	}
	if n > r.max {
		return Frame{}, fmt.Errorf("%w: %d bytes, at most %d", ErrFrameTooLarge, n, r.max)
	}
	payload, err := readBounded(r.r, int(n))
	if err != nil {
		return Frame{}, err
	}
	return Frame{Type: FrameType(head[lengthSize]), Payload: payload}, nil
}

// readBounded reads n bytes, growing with what has really arrived: often enough to be safe from a length alone, and seldom enough
// that little is copied for it.
func readBounded(r io.Reader, n int) ([]byte, error) {
	buf := make([]byte, min(n, chunkSize))
	for filled := 0; ; {
		m, err := io.ReadFull(r, buf[filled:])
		filled += m
		if err == io.EOF && n > 0 {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return nil, err
		}
		if filled == n {
			return buf, nil
		}
		grown := make([]byte, min(n, 8*filled))
		copy(grown, buf)
		buf = grown
	}
}

// Writer writes frames. Its methods may be called concurrently; each frame is one write of the carrier where it can be.
// After an error the connection is of no further use.
type Writer struct {
	mu    sync.Mutex
	w     io.Writer
	head  [lengthSize + 1 + messageHead]byte
	bufs  net.Buffers
	lens  []byte
	small []byte // a small frame's bytes, in one piece
}

// maxSmall bounds the frames that are put together before they are written, in bytes: a request with its code mostly is less. It
// bounds too what a resting connection holds for that.
const maxSmall = 4 << 10

// NewWriter returns a writer onto w. For a net.Conn it writes without copying.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w} }

// WriteJSON writes a frame whose payload is v as JSON.
func (w *Writer) WriteJSON(t FrameType, v any) error {
	return w.writeFrame(t, marshal(v))
}

// WriteAck writes a FrameAck.
func (w *Writer) WriteAck(seq uint64) error {
	var payload [8]byte
	binary.BigEndian.PutUint64(payload[:], seq)
	return w.writeFrame(FrameAck, payload[:])
}

// WriteEvent writes a FrameEvent.
func (w *Writer) WriteEvent(seq uint64, e Event) error {
	return w.writeFrame(FrameEvent, binary.BigEndian.AppendUint64(nil, seq), marshal(e))
}

func (w *Writer) writeFrame(t FrameType, payload ...[]byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	size := 1
	for _, p := range payload {
		size += len(p)
	}
	binary.BigEndian.PutUint32(w.head[:], uint32(size))
	w.head[lengthSize] = byte(t)
	w.bufs = append(w.bufs[:0], w.head[:lengthSize+1])
	w.bufs = append(w.bufs, payload...)
	return w.flush(int64(size))
}

// WriteMessage writes m as a frame of type t, FrameSend or FrameMessage. It does not keep m.
func (w *Writer) WriteMessage(t FrameType, m Message) error {
	if len(m.Parts) > MaxParts {
		return fmt.Errorf("%w: %d parts, at most %d", ErrMalformed, len(m.Parts), MaxParts)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lens = w.lens[:0]
	size := int64(1 + messageHead)
	for _, p := range m.Parts {
		w.lens = binary.BigEndian.AppendUint32(w.lens, uint32(len(p)))
		size += 4 + int64(len(p))
	}
	if size > 1<<31 {
		return fmt.Errorf("%w: message of %d bytes", ErrFrameTooLarge, size)
	}
	binary.BigEndian.PutUint32(w.head[:], uint32(size))
	w.head[lengthSize] = byte(t)
	body := w.head[lengthSize+1:]
	binary.BigEndian.PutUint64(body, m.Seq)
	body[8] = byte(m.Channel)
	binary.BigEndian.PutUint16(body[9:], uint16(len(m.Parts)))
	w.bufs = append(w.bufs[:0], w.head[:], w.lens)
	w.bufs = append(w.bufs, m.Parts...)
	return w.flush(size)
}

// flush writes a frame of size bytes that is gathered, in one write when it is small or the carrier can gather. One that
// cannot, because it is wrapped, would wake its reader with each part.
func (w *Writer) flush(size int64) (err error) {
	if bufs := w.bufs; size <= maxSmall {
		w.small = w.small[:0]
		for _, b := range bufs {
			w.small = append(w.small, b...)
		}
		_, err = w.w.Write(w.small)
	} else {
		_, err = bufs.WriteTo(w.w)
	}
	clear(w.bufs[:cap(w.bufs)])
	return err
}

// DecodeMessage decodes the payload of FrameSend or FrameMessage. The parts alias payload.
func DecodeMessage(payload []byte) (Message, error) {
	if len(payload) < messageHead {
		return Message{}, fmt.Errorf("%w: message head of %d bytes", ErrMalformed, len(payload))
	}
	m := Message{Seq: binary.BigEndian.Uint64(payload), Channel: Channel(payload[8])}
	if m.Channel < Shell || m.Channel > IOPub {
		return Message{}, fmt.Errorf("%w: channel %d", ErrMalformed, payload[8])
	}
	count := int(binary.BigEndian.Uint16(payload[9:]))
	rest := payload[messageHead:]
	if count > MaxParts || len(rest) < 4*count {
		return Message{}, fmt.Errorf("%w: %d parts in %d bytes", ErrMalformed, count, len(rest))
	}
	lens, body := rest[:4*count], rest[4*count:]
	m.Parts = make([][]byte, count)
	for i := range m.Parts {
		n := binary.BigEndian.Uint32(lens[4*i:])
		if uint64(n) > uint64(len(body)) {
			return Message{}, fmt.Errorf("%w: part %d of %d bytes, %d left", ErrMalformed, i, n, len(body))
		}
		m.Parts[i], body = body[:n:n], body[n:]
	}
	if len(body) != 0 {
		return Message{}, fmt.Errorf("%w: %d bytes after the last part", ErrMalformed, len(body))
	}
	return m, nil
}

// DecodeEvent decodes the payload of FrameEvent.
func DecodeEvent(payload []byte) (uint64, Event, error) {
	var e Event
	if len(payload) < 8 {
		return 0, e, fmt.Errorf("%w: event of %d bytes", ErrMalformed, len(payload))
	}
	if err := checkJSON(payload[8:]); err != nil {
		return 0, e, fmt.Errorf("event: %w", err)
	}
	if err := jsontext.Members(payload[8:], e.member); err != nil {
		return 0, Event{}, fmt.Errorf("event: %w: %w", ErrMalformed, err)
	}
	return binary.BigEndian.Uint64(payload), e, nil
}

// member takes one member of an event. Each cell has an event, about what it used, so that its way is the short one.
func (e *Event) member(name []byte, value json.RawMessage) error {
	switch string(name) {
	case "kind":
		return setText((*string)(&e.Kind), value)
	case "time":
		return e.Time.UnmarshalJSON(value)
	case "incarnation":
		return setInt(&e.Incarnation, value)
	case "pid":
		return setInt(&e.PID, value)
	case "exit":
		return json.Unmarshal(value, &e.Exit)
	case "elided":
		return json.Unmarshal(value, &e.Elided)
	case "dropped":
		return json.Unmarshal(value, &e.Dropped)
	case "used":
		return e.setUsed(value)
	case "gap":
		return json.Unmarshal(value, &e.Gap)
	}
	return nil
}

func (e *Event) setUsed(value json.RawMessage) error {
	if jsontext.IsNull(value) {
		e.Used = nil
		return nil
	}
	if e.Used == nil {
		e.Used = &Used{}
	}
	return jsontext.Members(value, e.Used.member)
}

func (u *Used) member(name []byte, value json.RawMessage) error {
	switch string(name) {
	case "parent":
		return setText(&u.Parent, value)
	case "cpu_ns":
		return setInt(&u.CPU, value)
	case "memory":
		return setInt(&u.Memory, value)
	case "oom_kills":
		return setInt(&u.OOMKills, value)
	}
	return nil
}

func setText(to *string, value json.RawMessage) error {
	if jsontext.IsNull(value) {
		return nil
	}
	text, ok := jsontext.Text(value)
	if !ok {
		return jsontext.ErrSyntax
	}
	*to = text
	return nil
}

func setInt[T ~int | ~int64](to *T, value json.RawMessage) error {
	if jsontext.IsNull(value) {
		return nil
	}
	n, err := strconv.ParseInt(string(value), 10, 64)
	*to = T(n)
	return err
}

// DecodeAck decodes the payload of FrameAck.
func DecodeAck(payload []byte) (uint64, error) {
	if len(payload) != 8 {
		return 0, fmt.Errorf("%w: ack of %d bytes", ErrMalformed, len(payload))
	}
	return binary.BigEndian.Uint64(payload), nil
}

// DecodeJSON decodes the payload of FrameHello, FrameWelcome, FrameRequest or FrameReply into v. One of more than MaxJSON
// bytes is malformed.
func DecodeJSON(payload []byte, v any) error {
	if err := checkJSON(payload); err != nil {
		return err
	}
	if err := json.Unmarshal(payload, v); err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// checkJSON refuses what is too long to be read.
func checkJSON(payload []byte) error {
	if len(payload) > MaxJSON {
		return fmt.Errorf("%w: %d bytes of JSON, at most %d", ErrMalformed, len(payload), MaxJSON)
	}
	return nil
}
