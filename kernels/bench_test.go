package kernels_test

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// answerer is a shim that answers every execute_request at once with busy, execute_input, a result, reply and idle, over
// a Unix socket: what remains is the Client's own cost.
type answerer struct {
	listener net.Listener
	exited   chan struct{}
	answers  []canned
}

func newAnswerer(b testing.TB, answers []canned) *answerer {
	l, err := net.Listen("unix", filepath.Join(kernelstest.ShortDir(b), "s"))
	if err != nil {
		b.Fatal(err)
	}
	a := &answerer{listener: l, exited: make(chan struct{}), answers: answers}
	done := make(chan struct{})
	go func() { defer close(done); a.serve() }()
	b.Cleanup(func() { _ = l.Close(); <-done })
	return a
}

func (a *answerer) Exited() <-chan struct{}    { return a.exited }
func (a *answerer) Status() kernels.ExitStatus { return kernels.ExitStatus{} }

func (a *answerer) Dial(ctx context.Context) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "unix", a.listener.Addr().String())
}

func (a *answerer) serve() {
	conn, err := a.listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	r, w := stream.NewReader(conn, 1<<20), stream.NewWriter(conn)
	_, _ = r.ReadFrame()
	_ = w.WriteJSON(stream.FrameWelcome, stream.Welcome{Version: stream.Version, Next: 1, Incarnation: 1, Alive: true})
	for seq := uint64(1); ; {
		f, err := r.ReadFrame()
		if err != nil {
			return
		}
		m, err := stream.DecodeMessage(f.Payload)
		if f.Type != stream.FrameSend || err != nil {
			continue
		}
		for _, reply := range a.answers {
			parts := [][]byte{reply.header, m.Parts[0], []byte("{}"), reply.content}
			_ = w.WriteMessage(stream.FrameMessage, stream.Message{Seq: seq, Channel: reply.channel, Parts: parts})
			seq++
		}
	}
}

type canned struct {
	channel         stream.Channel
	header, content []byte
}

func can(ch stream.Channel, msgType, content string) canned {
	return canned{ch, wire.Message{Header: wire.NewHeader("x", "y", msgType)}.Parts()[0], []byte(content)}
}

var replies = []canned{
	can(stream.IOPub, "status", `{"execution_state":"busy"}`),
	can(stream.IOPub, "execute_input", `{"code":"1+1","execution_count":1}`),
	can(stream.IOPub, "execute_result", `{"data":{"text/plain":"2"},"metadata":{},"execution_count":1}`),
	can(stream.Shell, "execute_reply", `{"status":"ok","execution_count":1,"user_expressions":{},"payload":[]}`),
	can(stream.IOPub, "status", `{"execution_state":"idle"}`),
}

// BenchmarkExecute is one cell, 1+1, over a Unix socket, five messages of answer; the kernel takes no time.
func BenchmarkExecute(b *testing.B) {
	benchmark(b, connect(b, newAnswerer(b, replies), kernels.Options{}), "1+1")
}

// BenchmarkExecuteFake is the same with the scripted fake kernel, over a pipe.
func BenchmarkExecuteFake(b *testing.B) {
	_, c := start(b, kernelstest.KernelOptions{}, kernels.Options{})
	benchmark(b, c, "1+1")
}

func benchmark(b *testing.B, c *kernels.Client, code string) {
	b.ReportAllocs()
	for b.Loop() {
		e, err := c.Execute(b.Context(), kernels.ExecuteRequest{Code: code})
		if err != nil {
			b.Fatal(err)
		}
		for err == nil {
			_, err = e.Next(b.Context())
		}
		if err != io.EOF || e.Result().Status != kernels.StatusOK {
			b.Fatal(err, e.Result())
		}
	}
}

// What a client does for each line that code prints is bounded, and so is the work of the garbage collector. The frames that the
// other side of the socket writes are counted too.
func TestAllocationsPerMessage(t *testing.T) {
	const lines, most = 1000, 10
	printed := slices.Repeat([]canned{can(stream.IOPub, "stream", `{"name":"stdout","text":"a line of output\n"}`)}, lines)
	c := connect(t, newAnswerer(t, slices.Concat(replies[:2], printed, replies[2:])), kernels.Options{})
	allocations := testing.AllocsPerRun(5, func() {
		e, err := c.Execute(t.Context(), kernels.ExecuteRequest{Code: "print"})
		n := 0
		for err == nil {
			if _, err = e.Next(t.Context()); err == nil {
				n++
			}
		}
		if err != io.EOF || n != lines+1 {
			t.Errorf("%d outputs, %v; want %d and the end", n, err, lines+1)
		}
	})
	if each := allocations / lines; each >= most {
		t.Errorf("%.1f allocations for a message, want fewer than %d", each, most)
	} else {
		t.Logf("%.1f allocations for a message", each)
	}
}

// BenchmarkOutput is one cell that prints ten thousand lines.
func BenchmarkOutput(b *testing.B) {
	const lines = 10000
	_, c := start(b, kernelstest.KernelOptions{}, kernels.Options{})
	benchmark(b, c, "count "+strconv.Itoa(lines))
	b.ReportMetric(float64(b.N*lines)/b.Elapsed().Seconds(), "messages/s")
}
