package kernels_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// hostile is a dialer whose shim sends some bytes on every connection and then ends it, or stays silent.
type hostile struct {
	bytes  []byte
	silent bool
	exited chan struct{}
}

func (h *hostile) Exited() <-chan struct{}    { return h.exited }
func (h *hostile) Status() kernels.ExitStatus { return kernels.ExitStatus{} }

func (h *hostile) Dial(context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	go func() {
		defer server.Close()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		if _, err := server.Write(h.bytes); err == nil && h.silent {
			<-h.exited
		}
	}()
	return client, nil
}

func frames(write ...func(*stream.Writer) error) []byte {
	var b bytes.Buffer
	w := stream.NewWriter(&b)
	for _, f := range write {
		if err := f(w); err != nil {
			panic(err)
		}
	}
	return b.Bytes()
}

func welcome(w *stream.Writer) error {
	return w.WriteJSON(stream.FrameWelcome, stream.Welcome{Version: stream.Version, Next: 2, Incarnation: 1, Alive: true})
}

func event(seq uint64, e stream.Event) func(*stream.Writer) error {
	return func(w *stream.Writer) error { return w.WriteEvent(seq, e) }
}

func message(seq uint64, ch stream.Channel, msgType, parent, content string) func(*stream.Writer) error {
	return func(w *stream.Writer) error {
		m := wire.Message{Header: wire.NewHeader("x", "y", msgType), Parent: wire.Header{MsgID: parent}, Content: []byte(content)}
		return w.WriteMessage(stream.FrameMessage, stream.Message{Seq: seq, Channel: ch, Parts: m.Parts()})
	}
}

// FuzzHostileShim: whatever a shim sends, its client ends or goes on; no panic, and Close works.
func FuzzHostileShim(f *testing.F) {
	const id = "adopted"
	seeds := [][]func(*stream.Writer) error{
		{},
		{event(1, stream.Event{Kind: stream.EventStarted, Incarnation: 2}), event(2, stream.Event{Kind: stream.EventConnected})},
		{event(1, stream.Event{Kind: stream.EventExited}), event(2, stream.Event{Kind: stream.EventExited, Exit: &stream.Exit{Asked: true}})},
		{event(9, stream.Event{Kind: stream.EventGap, Gap: &stream.Gap{From: 1, To: 9}}), event(8, stream.Event{Kind: stream.EventGap})},
		{event(1, stream.Event{Kind: stream.EventElided}), event(2, stream.Event{Kind: stream.EventDropped, Dropped: &stream.Dropped{}})},
		{message(1, stream.IOPub, "stream", id, `{"name":"stdout","text":"a"}`), message(2, stream.IOPub, "status", id, `{"execution_state":"idle"}`)},
		{message(1, stream.Shell, "execute_reply", id, `{"status":"error","traceback":["a"]}`), message(3, stream.Stdin, "input_request", id, `{}`)},
		{message(1, stream.IOPub, "display_data", id, `{"data":{"a":1},"transient":{"display_id":"x"}}`), message(2, stream.Control, "x", "", `{}`)},
		{func(w *stream.Writer) error { return w.WriteJSON(stream.FrameReply, stream.Reply{ID: 1}) }},
	}
	for _, s := range seeds {
		f.Add(frames(s...), true)
		f.Add(frames(s...), false)
	}
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"), false)
	f.Fuzz(func(t *testing.T, in []byte, silent bool) {
		synctest.Test(t, func(t *testing.T) { fuzzHostileShim(t, id, in, silent) }) // where waiting takes no time
	})
}

func fuzzHostileShim(t *testing.T, id string, in []byte, silent bool) {
	h := &hostile{bytes: append(frames(welcome), in...), silent: silent, exited: make(chan struct{})}
	c, err := kernels.Connect(t.Context(), h, kernels.Options{
		Adopt: []string{id}, MaxFrame: 1 << 16, QueueBytes: 1 << 12, Grace: time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	e, _ := c.Execution(id)
	soon, cancel := context.WithTimeout(t.Context(), 3*time.Millisecond)
	defer cancel()
	for {
		if _, err := e.Next(soon); err != nil {
			break
		}
	}
	close(h.exited)
	begun := time.Now()
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(begun); took > 5*time.Second {
		t.Fatalf("Close took %v", took)
	}
}

// A shim that floods a client which nobody reads, with messages for everybody, costs bounded memory.
func TestHostileFloodIsBounded(t *testing.T) {
	var in bytes.Buffer
	in.Write(frames(welcome))
	line := string(bytes.Repeat([]byte("x"), 1000))
	w := stream.NewWriter(&in)
	for seq := range uint64(60000) {
		parent := []string{"a", "b", "nobody"}[seq%3]
		if err := message(seq+1, stream.IOPub, "stream", parent, `{"name":"stdout","text":"`+line+`"}`)(w); err != nil {
			t.Fatal(err)
		}
	}
	h := &hostile{bytes: in.Bytes(), silent: true, exited: make(chan struct{})}
	before := heap()
	c := connect(t, h, kernels.Options{Adopt: []string{"a", "b"}, QueueBytes: 4 << 20})
	defer close(h.exited)
	full(c)
	if grown := int64(heap()) - int64(before); grown > 24<<20 {
		t.Fatalf("grown by %d bytes", grown)
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// full returns when the client reads no more, because a queue is full.
func full(c *kernels.Client) {
	for last := uint64(0); ; {
		time.Sleep(50 * time.Millisecond) // nothing tells that nothing happens
		now := c.Received()
		if now == last && now > 0 {
			return
		}
		last = now
	}
}

// A shim that claims to answer everything cannot make one message cost far more than its bytes.
func TestAmplificationIsBounded(t *testing.T) {
	var traceback bytes.Buffer
	traceback.WriteString(`{"ename":"E","traceback":[""`)
	for range 1 << 20 {
		traceback.WriteString(`,""`)
	}
	traceback.WriteString("]}")
	h := &hostile{silent: true, exited: make(chan struct{}), bytes: frames(welcome,
		message(1, stream.IOPub, "error", "a", traceback.String()),
		message(2, stream.IOPub, "stream", "a", `{"name":"stdout","text":"x"}`))}
	defer close(h.exited)
	c := connect(t, h, kernels.Options{Adopt: []string{"a"}})
	e, _ := c.Execution("a")
	next(t, e, "stdout:x")
	if n := c.Counters().Broken; n != 1 {
		t.Fatalf("%d broken", n)
	}
}

// Notices count with what the shim put into them, and one that no shim would send ends the connection.
func TestNoticesAreBounded(t *testing.T) {
	reason := strings.Repeat("x", 100<<10)
	var in bytes.Buffer
	in.Write(frames(welcome))
	for seq := range uint64(400) {
		in.Write(frames(event(seq+1, stream.Event{Kind: stream.EventDropped, Dropped: &stream.Dropped{Parent: "a", Reason: reason}})))
	}
	h := &hostile{bytes: in.Bytes(), silent: true, exited: make(chan struct{})}
	defer close(h.exited)
	before := heap()
	c := connect(t, h, kernels.Options{Adopt: []string{"a"}, QueueBytes: 2 << 20})
	full(c)
	if grown := int64(heap()) - int64(before); grown > 8<<20 || c.Received() > 100 {
		t.Fatalf("grown by %d bytes after %d notices", grown, c.Received())
	}

	absurd := &hostile{silent: true, exited: make(chan struct{}), bytes: frames(welcome,
		event(1, stream.Event{Kind: stream.EventDropped, Dropped: &stream.Dropped{Reason: strings.Repeat("x", stream.MaxJSON)}}))}
	defer close(absurd.exited)
	c = connect(t, absurd, kernels.Options{})
	<-c.Done()
	wantDeath(t, c.Err(), "bytes of JSON")
}

// Gaps without end cost neither goroutines nor calls without end.
func TestGapsAreBounded(t *testing.T) {
	const gaps = 20_000
	var in bytes.Buffer
	in.Write(frames(welcome))
	for seq := range uint64(gaps) {
		in.Write(frames(event(seq+1, stream.Event{Kind: stream.EventGap, Gap: &stream.Gap{From: seq + 1, To: seq + 1}})))
	}
	h := &hostile{bytes: in.Bytes(), silent: true, exited: make(chan struct{})}
	defer close(h.exited)
	c := connect(t, h, kernels.Options{Adopt: []string{"a"}})
	e, _ := c.Execution("a")
	before := runtime.NumGoroutine()
	for range gaps {
		if _, err := e.Next(ctx(t)); err != nil {
			t.Fatal(err)
		}
	}
	if open, more := c.Open(), runtime.NumGoroutine()-before; open > 4 || more > 10 {
		t.Fatalf("%d calls, %d more goroutines", open, more)
	}
}

// What a kernel says of itself stays with the client, so no more of it is kept than a kernel needs to say.
func TestKernelInfoIsBounded(t *testing.T) {
	k := kernelstest.NewKernel(kernelstest.KernelOptions{Banner: strings.Repeat("x", 1<<20)})
	t.Cleanup(k.Close)
	c := connect(t, k, kernels.Options{})
	if err := c.Ready(ctx(t)); err != nil || c.Info().LanguageInfo.Name != "" {
		t.Fatalf("%v, %+v", err, c.Info())
	}
}

// A shim that accepts and says nothing holds Connect only as long as its context.
func TestSilentShim(t *testing.T) {
	h := &hostile{silent: true, exited: make(chan struct{})}
	defer close(h.exited)
	if _, err := kernels.Connect(short(t), h, kernels.Options{}); err == nil {
		t.Fatal("connected")
	}
}

// A shim whose first frame is something else, or absurdly long, is refused.
func TestBadWelcome(t *testing.T) {
	for name, in := range map[string][]byte{
		"nothing":   {},
		"ack":       frames(func(w *stream.Writer) error { return w.WriteAck(1) }),
		"long":      binary.BigEndian.AppendUint32(nil, 0xffffffff),
		"not json":  {0, 0, 0, 2, byte(stream.FrameWelcome), '{'},
		"cut short": frames(welcome)[:9],
	} {
		t.Run(name, func(t *testing.T) {
			h := &hostile{bytes: in, exited: make(chan struct{})}
			_, err := kernels.Connect(ctx(t), h, kernels.Options{})
			if err == nil || errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("got %v", err)
			}
		})
	}
}
