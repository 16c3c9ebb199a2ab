//go:build linux

package shim

import (
	"encoding/binary"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	"cellblock/kernels/stream"
)

// closed waits until the shim has closed nc, and returns the frames that came before.
func closed(t *testing.T, nc net.Conn) []stream.Frame {
	t.Helper()
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	r := stream.NewReader(nc, 1<<20)
	var frames []stream.Frame
	for {
		f, err := r.ReadFrame()
		var ne net.Error
		if errors.As(err, &ne) && ne.Timeout() {
			t.Fatal("the connection was not closed")
		}
		if err != nil {
			return frames
		}
		frames = append(frames, f)
	}
}

func TestHandshakeRefused(t *testing.T) {
	f, c := startFake(t, forever, nil)
	c.event(stream.EventStarted)
	tests := map[string]struct {
		hello   any
		frame   stream.FrameType
		welcome string
	}{
		"version":       {stream.Hello{Version: 99}, stream.FrameHello, "version 99"},
		"future":        {stream.Hello{Version: stream.Version, After: number(1 << 40)}, stream.FrameHello, "acknowledges"},
		"no JSON":       {"hello", stream.FrameHello, ""},
		"another frame": {stream.Hello{Version: stream.Version}, stream.FrameAck, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			nc := connectSocket(t, f.config)
			defer nc.Close()
			if err := stream.NewWriter(nc).WriteJSON(tt.frame, tt.hello); err != nil {
				t.Fatal(err)
			}
			frames := closed(t, nc)
			if tt.welcome == "" {
				if len(frames) != 0 {
					t.Fatalf("answered %+v", frames)
				}
				return
			}
			var w stream.Welcome
			if len(frames) != 1 || stream.DecodeJSON(frames[0].Payload, &w) != nil || !strings.Contains(w.Error, tt.welcome) {
				t.Fatalf("answered %+v %+v", frames, w)
			}
		})
	}
}

// Frames that break the protocol end their connection, and nothing else.
func TestMalformedFrames(t *testing.T) {
	f, first := startFake(t, forever, nil)
	first.event(stream.EventStarted)
	iopub := append(make([]byte, 8), byte(stream.IOPub), 0, 0)
	tests := map[string][]byte{
		"ack of the future": ackFrame(1 << 50),
		"short ack":         rawFrame(stream.FrameAck, []byte{1}),
		"no message":        rawFrame(stream.FrameSend, []byte{1, 2, 3}),
		"to iopub":          rawFrame(stream.FrameSend, iopub),
		"no request":        rawFrame(stream.FrameRequest, []byte("{")),
		"second hello":      rawFrame(stream.FrameHello, []byte(`{"version":1}`)),
		"wrong direction":   rawFrame(stream.FrameWelcome, []byte("{}")),
		"too large":         binary.BigEndian.AppendUint32(nil, 1<<31),
	}
	for name, raw := range tests {
		t.Run(name, func(t *testing.T) {
			c := dialShim(t, f.config, nil)
			if _, err := c.nc.Write(append(raw, 0)); err != nil {
				t.Fatal(err)
			}
			closed(t, c.nc)
		})
	}
	c := dialShim(t, f.config, nil)
	if r := c.call("dance", 0); r.Error != `unknown request "dance"` {
		t.Fatal(r.Error)
	}
}

func rawFrame(t stream.FrameType, payload []byte) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(1+len(payload))), append([]byte{byte(t)}, payload...)...)
}

func ackFrame(n uint64) []byte {
	return rawFrame(stream.FrameAck, binary.BigEndian.AppendUint64(nil, n))
}

// The newest connection is served, but only once it has said Hello.
func TestReplaced(t *testing.T) {
	f, old := startFake(t, forever, nil)
	old.event(stream.EventStarted)
	silent := connectSocket(t, f.config)
	defer silent.Close()
	old.must(stream.OpStats, 0)
	c := dialShim(t, f.config, nil)
	closed(t, old.nc)
	c.must(stream.OpStats, 0)
}

// Connections that say nothing are cut off, and are few.
func TestSilentConnections(t *testing.T) {
	f, c := startFake(t, forever, nil)
	c.event(stream.EventStarted)
	var all []net.Conn
	for range 3 * maxHandshakes {
		nc := connectSocket(t, f.config)
		defer nc.Close()
		all = append(all, nc)
	}
	for _, nc := range all {
		closed(t, nc)
	}
	dialShim(t, f.config, nil).must(stream.OpStats, 0)
}

// FuzzConn: whatever a server sends after Hello, the shim neither crashes nor hangs.
func FuzzConn(f *testing.F) {
	f.Add([]byte{})
	f.Add(ackFrame(1))
	f.Add(rawFrame(stream.FrameRequest, []byte(`{"id":1,"op":"stats"}`)))
	f.Add(rawFrame(stream.FrameRequest, []byte(`{"id":1,"op":"restart","grace_ms":-1}`)))
	f.Add(rawFrame(stream.FrameRequest, []byte(`{"id":2,"op":"shutdown","grace_ms":9223372036854775807}`)))
	f.Add(rawFrame(stream.FrameSend, append(make([]byte, 8), byte(stream.Shell), 0, 1, 0, 0, 0, 1, 'x')))
	f.Fuzz(func(t *testing.T, in []byte) {
		config := stream.Config{KernelID: "fuzz"}
		setDefaults(&config)
		s := newShim(config, slog.New(slog.DiscardHandler), nil)
		s.ended = true // there is no kernel to start
		client, server := net.Pipe()
		c := newConn(s, server)
		done := make(chan error, 1)
		go func() {
			hello, err := c.handshake()
			if err == nil {
				err = c.serve(hello)
			}
			done <- err
		}()
		go func() { _, _ = io.Copy(io.Discard, client) }()
		_, _ = client.Write(rawFrame(stream.FrameHello, []byte(`{"version":1}`)))
		_, _ = client.Write(in)
		client.Close()
		<-done
		s.close()
	})
}

// A server that comes back is told which cell was sent last, and how long ago: it has no clock of its own for that.
func TestWelcomeTellsOfTheLastCell(t *testing.T) {
	f, c := startFake(t, forever, nil)
	if w := c.welcome; w.Request != "" || w.RequestMS != 0 {
		t.Errorf("before the first cell it tells of %q", w.Request)
	}
	c.event(stream.EventStarted)
	before := time.Now()
	id := c.execute("1")
	c.send("kernel_info_request", map[string]any{})
	c.must(stream.OpPing, 0) // what was sent before has been read
	c.close()
	const later = 30 * time.Millisecond
	time.Sleep(later)
	w := dialShim(t, f.config, nil).welcome
	if age := time.Duration(w.RequestMS) * time.Millisecond; w.Request != id || age < later || age > time.Since(before) {
		t.Errorf("it tells of %q, %v ago, not of %q", w.Request, age, id)
	}
}
