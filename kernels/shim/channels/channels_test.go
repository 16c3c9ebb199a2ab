package channels

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

func TestSendAndReceive(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	cs := dial(t, f.Connection, Options{Handler: r})
	signer := wire.NewSigner([]byte(f.Key))
	parts := wire.Message{Header: wire.NewHeader("1", "s", "x"), Buffers: [][]byte{make([]byte, 1<<20), nil, []byte("small")}}.Parts()
	for i, ch := range []stream.Channel{stream.Shell, stream.Control, stream.Stdin} {
		go func() {
			if err := cs.Send(ch, parts); err != nil {
				t.Error(err)
			}
		}()
		p := f.peer(ch)
		frames, err := p.readMessage()
		if err != nil || string(frames[0]) != wire.Delimiter {
			t.Fatalf("%s: got %.20q, %v", ch, frames, err)
		}
		if got, err := signer.Unpack(frames); err != nil || !equal(got, parts) {
			t.Errorf("%s: %v", ch, err)
		}
		p.Write(messageBytes(frames...))
		r.await(t, "echo", func() bool { return len(r.messages) > i })
		if m := r.messages[i]; m.ch != ch || !equal(m.parts, parts) {
			t.Errorf("%s: echo is %s %.20q", ch, m.ch, m.parts)
		}
	}
}

func equal(a, b [][]byte) bool { return slices.EqualFunc(a, b, bytes.Equal) }

func TestSendRefuses(t *testing.T) {
	f := newFake(t, connection(t), nil)
	cs := dial(t, f.Connection, Options{Handler: newRecorder()})
	for _, ch := range []stream.Channel{0, stream.IOPub, 9} {
		if err := cs.Send(ch, wire.Message{}.Parts()); err == nil {
			t.Errorf("sent on %s", ch)
		}
	}
	if err := cs.Send(stream.Shell, nil); !errors.Is(err, wire.ErrNotJupyter) {
		t.Errorf("got %v, want ErrNotJupyter", err)
	}
	if err := cs.Send(stream.Shell, wire.Message{}.Parts()); err != nil {
		t.Errorf("afterwards: %v", err)
	}
	cs.Close()
	if err := cs.Send(stream.Shell, wire.Message{}.Parts()); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
}

// TestSendIsWholeAndInOrder: many at once, each message whole and each sender's in its order.
func TestSendIsWholeAndInOrder(t *testing.T) {
	f := newFake(t, connection(t), nil)
	cs := dial(t, f.Connection, Options{Handler: newRecorder()})
	const senders, each = 4, 200
	for i := range senders {
		go func() {
			for n := range each {
				m := wire.Message{Header: wire.NewHeader(fmt.Sprint(n), fmt.Sprint(i), "x"), Buffers: [][]byte{make([]byte, n*37)}}
				if err := cs.Send(stream.Shell, m.Parts()); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	p, next, signer := f.peer(stream.Shell), make(map[string]int), wire.NewSigner([]byte(f.Key))
	for range senders * each {
		frames, err := p.readMessage()
		if err != nil {
			t.Fatal(err)
		}
		parts, err := signer.Unpack(frames)
		if err != nil {
			t.Fatal(err)
		}
		h, _ := wire.ParseHeader(parts[0])
		if h.MsgID != fmt.Sprint(next[h.Session]) || len(parts[4]) != next[h.Session]*37 {
			t.Fatalf("sender %s: message %s, want %d", h.Session, h.MsgID, next[h.Session])
		}
		next[h.Session]++
	}
}

// TestBrokenMessagesAreDropped (item 1): each is reported, and the next message comes through.
func TestBrokenMessagesAreDropped(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	dial(t, f.Connection, Options{Handler: r, MaxMessage: 1 << 20})
	p := f.peer(stream.IOPub)
	changed := streamMessage(f.Connection, "hello")
	changed[6] = []byte(`{"name":"stdout","text":"evil"}`)
	parts := slices.Concat(streamMessage(f.Connection, ""), make([][]byte, stream.MaxParts))
	large := slices.Concat(streamMessage(f.Connection, ""), [][]byte{make([]byte, 1<<20)})
	tests := []struct {
		frames [][]byte
		reason string
		bytes  int64
	}{
		{changed, ReasonSignature, total(changed)},
		{[][]byte{[]byte("hello")}, ReasonNotJupyter, 5},
		{[][]byte{nil}, ReasonNotJupyter, 0},
		{changed[:4], ReasonNotJupyter, total(changed[:4])},
		{parts, ReasonTooManyParts, total(parts)},
		{large, ReasonTooLarge, total(large)}, // a buffer is not signed, and missed all the same
	}
	for i, tt := range tests {
		p.Write(messageBytes(tt.frames...))
		p.Write(messageBytes(streamMessage(f.Connection, "fine")...))
		r.await(t, tt.reason, func() bool { return len(r.messages) > i })
		if len(r.dropped) != i+1 {
			t.Fatalf("%s: not dropped", tt.reason)
		}
		d := r.dropped[i]
		if d.ch != stream.IOPub || d.reason != tt.reason || d.bytes != tt.bytes || len(d.parts) != len(tt.frames) {
			t.Errorf("got %s with %d bytes in %d frames, want %s with %d in %d", d.reason, d.bytes, len(d.parts), tt.reason, tt.bytes, len(tt.frames))
		}
	}
}

func total(frames [][]byte) (n int64) {
	for _, f := range frames {
		n += int64(len(f))
	}
	return n
}

// TestLargeText: what a kernel prints is read as it passes where it is large, however large that is, and its signature
// is verified. What is not text, and too large, is dropped.
func TestLargeText(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := &texter{recorder: newRecorder()}
	dial(t, f.Connection, Options{Handler: r, MaxMessage: 1 << 20, MaxText: 64 << 10})
	p := f.peer(stream.IOPub)
	small := streamMessage(f.Connection, strings.Repeat("x", 10<<10))
	large := streamMessage(f.Connection, strings.Repeat("x", 100<<10))
	huge := streamMessage(f.Connection, "start"+strings.Repeat("x", 3<<20)+"end")
	forged := slices.Clone(large)
	forged[2] = bytes.Repeat([]byte("0"), 64)
	display := slices.Clone(huge)
	display[3] = []byte(`{"msg_type":"display_data"}`)
	buffer := slices.Concat(small, [][]byte{make([]byte, 2<<20)})
	for _, frames := range [][][]byte{large, huge, forged, display, buffer, huge[:6], small} {
		p.Write(messageBytes(frames...))
	}
	r.await(t, "the last message", func() bool { return len(r.messages) == 1 })
	if len(r.texts) != 3 || len(r.dropped) != 3 {
		t.Fatalf("%d texts, %d dropped", len(r.texts), len(r.dropped))
	}
	for i, want := range []struct {
		frames [][]byte
		reason string
	}{{large, ""}, {huge, ""}, {forged, ReasonSignature}} {
		if got := r.texts[i]; !equal(got.parts, want.frames[3:6]) || !bytes.Equal(got.content.Bytes(), want.frames[6]) || got.reason != want.reason {
			t.Errorf("text %d: %d bytes, %q, %q", i, got.content.Len(), got.reason, got.parts)
		}
	}
	for _, d := range r.dropped[:2] {
		if h, err := wire.ParseHeader(d.parts[3]); err != nil || h.MsgType == "" || d.bytes < 2<<20 {
			t.Errorf("dropped %+v of %d bytes, %v", h, d.bytes, err)
		}
	}
	p.Write(messageBytes(huge...)[:1<<20])
	p.Close()
	r.awaitLost(t, stream.IOPub)
	if len(r.texts) != 4 || r.texts[3].reason != ReasonCutShort || r.texts[3].content.Len() < 1<<19 {
		t.Errorf("%d texts", len(r.texts))
	}
}

// TestLargeMessage: a large message is passed on whole, or not at all, and leaves nothing behind for the next.
func TestLargeMessage(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := &texter{recorder: newRecorder()}
	dial(t, f.Connection, Options{Handler: r, MaxMessage: 1 << 20})
	p := f.peer(stream.IOPub)
	large := streamMessage(f.Connection, strings.Repeat("x", 300<<10))
	changed := slices.Clone(large)
	changed[6] = bytes.Replace(large[6], []byte("xx"), []byte("xy"), 1)
	tooLarge := slices.Concat(large, [][]byte{make([]byte, 1<<20)})
	withBuffer := slices.Concat(large, [][]byte{make([]byte, 100<<10)})
	small := streamMessage(f.Connection, "x")
	forged := slices.Clone(small)
	forged[2] = bytes.Repeat([]byte("0"), 64)
	for _, frames := range [][][]byte{large, changed, small, tooLarge, forged, withBuffer, small} {
		p.Write(messageBytes(frames...))
	}
	r.await(t, "the last message", func() bool { return len(r.messages) == 4 })
	for i, want := range [][][]byte{large, small, withBuffer, small} {
		if !equal(r.messages[i].parts, want[3:]) {
			t.Errorf("message %d is another", i)
		}
	}
	var reasons []string
	for _, d := range r.dropped {
		reasons = append(reasons, d.reason)
	}
	if !slices.Equal(reasons, []string{ReasonSignature, ReasonTooLarge, ReasonSignature}) {
		t.Error(reasons)
	}
}

// TestBurst: what comes at once is all there, in order.
func TestBurst(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	dial(t, f.Connection, Options{Handler: r})
	p := f.peer(stream.IOPub)
	const count = 10_000
	for i := range count {
		if _, err := p.Write(messageBytes(streamMessage(f.Connection, fmt.Sprint(i))...)); err != nil {
			t.Fatal(err)
		}
	}
	r.await(t, "10,000 messages", func() bool { return len(r.messages) == count })
	for i, m := range r.messages {
		if want := fmt.Sprintf(`{"name":"stdout","text":"%d"}`, i); string(m.parts[3]) != want {
			t.Fatalf("message %d is %s", i, m.parts[3])
		}
	}
}

// TestLostOnce: the kernel's end is told once for each channel, and Send says so.
func TestLostOnce(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	cs := dial(t, f.Connection, Options{Handler: r})
	for _, ch := range []stream.Channel{stream.Shell, stream.Control, stream.Stdin, stream.IOPub} {
		p := f.peer(ch)
		if ch == stream.IOPub {
			p.readMessage() // what is not read makes the end less orderly
		}
		p.Close()
		if err := r.awaitLost(t, ch); !errors.Is(err, io.EOF) {
			t.Errorf("%s: lost for %v, want EOF", ch, err)
		}
		if err := cs.Send(ch, wire.Message{}.Parts()); err == nil {
			t.Errorf("%s: sent", ch)
		}
	}
	cs.Close()
	for ch, errs := range r.lost {
		if len(errs) != 1 {
			t.Errorf("%s: lost %d times", ch, len(errs))
		}
	}
}

// TestSendToStoppedKernel: a kernel that reads nothing blocks Send for the write timeout, and then the channel is lost.
func TestSendToStoppedKernel(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	cs := dial(t, f.Connection, Options{Handler: r, WriteTimeout: 100 * time.Millisecond})
	m := wire.Message{Buffers: [][]byte{make([]byte, 8<<20)}}
	if err := cs.Send(stream.Shell, m.Parts()); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("got %v, want the deadline", err)
	}
	if err := r.awaitLost(t, stream.Shell); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("lost for %v, want the deadline", err)
	}
	if err := cs.Send(stream.Control, wire.Message{}.Parts()); err != nil {
		t.Errorf("control suffers: %v", err)
	}
}

// TestPingIsAnswered: a kernel may watch us by ZMTP's own heartbeats; zmq4 takes them for messages.
func TestPingIsAnswered(t *testing.T) {
	f := newFake(t, connection(t), nil)
	r := newRecorder()
	dial(t, f.Connection, Options{Handler: r})
	p := f.peer(stream.Shell)
	p.Write(slices.Concat(commandBytes("PING", []byte("\x00\x0acontext")), commandBytes("PING", []byte("\x00\x0a"))))
	for _, want := range []string{"\x04PONGcontext", "\x04PONG"} {
		if flags, body, err := p.readFrame(); err != nil || flags != flagCommand || string(body) != want {
			t.Errorf("got %d %q %v, want %q", flags, body, err, want)
		}
	}
	if len(r.messages)+len(r.dropped) != 0 {
		t.Error("PING is taken for a message")
	}
}

// TestCloseWithUnreadData: zmq4's own Close leaves a goroutine for each socket then.
func TestCloseWithUnreadData(t *testing.T) {
	f := newFake(t, connection(t), nil)
	ignore, files := goleak.IgnoreCurrent(), openFiles(t)
	cs := dial(t, f.Connection, Options{Handler: newRecorder()})
	p := f.peer(stream.IOPub)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			if _, err := p.Write(messageBytes(streamMessage(f.Connection, strings.Repeat("x", 10_000))...)); err != nil {
				return
			}
		}
	})
	for range 2 {
		if err := cs.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	goleak.VerifyNone(t, ignore)
	for _, ch := range []stream.Channel{stream.Shell, stream.Control, stream.Stdin} {
		f.peer(ch).Close()
	}
	p.Close()
	if now := openFiles(t); now > files {
		t.Errorf("%d open files, %d before", now, files)
	}
}

// openFiles counts file descriptors, where that can be done.
func openFiles(t *testing.T) int {
	if runtime.GOOS != "linux" {
		return 0
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// TestOneWrite: a message leaves in one write, however many frames it has.
func TestOneWrite(t *testing.T) {
	f := newFake(t, connection(t), nil)
	cs := dial(t, f.Connection, Options{Handler: newRecorder()})
	g := cs.channels[stream.Shell].guard
	counter := &writes{Conn: g.Conn}
	g.Conn = counter
	parts := wire.Message{Header: wire.NewHeader("1", "s", "x")}.Parts()
	if err := cs.Send(stream.Shell, parts); err != nil || counter.n != 1 {
		t.Errorf("%d writes, %v", counter.n, err)
	}
	frames, err := f.peer(stream.Shell).readMessage()
	if err != nil || !reflect.DeepEqual(frames[2:], parts) {
		t.Errorf("got %q, %v", frames, err)
	}
}

type writes struct {
	net.Conn
	n int
}

func (w *writes) Write(b []byte) (int, error) { w.n++; return w.Conn.Write(b) }

func BenchmarkReceive(b *testing.B) {
	frames := messageBytes(streamMessage(Connection{Key: "k"}, "hello")...)
	src := io.MultiReader(bytes.NewReader(opening()), &repeat{frames: frames})
	p := newParser(src, stream.DefaultMaxMessage, noCommand)
	buf := make([]byte, len(frames))
	io.ReadFull(p, buf[:len(opening())])
	b.SetBytes(int64(len(frames)))
	b.ReportAllocs()
	for b.Loop() {
		io.ReadFull(p, buf)
	}
}

type repeat struct {
	frames []byte
	at     int
}

func (r *repeat) Read(b []byte) (int, error) {
	n := copy(b, r.frames[r.at:])
	r.at = (r.at + n) % len(r.frames)
	return n, nil
}
