package channels

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// serveRaw shakes hands as a PUB would and then sends b again and again, once or for ever.
func serveRaw(b []byte, forEver bool) func(net.Conn) {
	return func(conn net.Conn) {
		p, err := newPeer(conn, "PUB")
		for err == nil {
			if _, err = p.Write(b); err == nil && !forEver {
				_, _ = p.readMessage()   // the subscription
				_, err = p.readMessage() // until the end
			}
		}
	}
}

// TestEvilPeers: each of these ends the process, or its memory, through zmq4 alone. Here the channel is lost, and the
// others live.
func TestEvilPeers(t *testing.T) {
	tests := map[string]struct {
		bytes   []byte
		forEver bool
	}{
		"nine bytes: frame of 2^50":         {frameHeadBytes(0, 1<<50), false},
		"nine bytes: frame of 2^63-1":       {frameHeadBytes(0, 1<<63-1), false},
		"more frames without end":           {frameBytes(flagMore, []byte("x")), true},
		"more large frames without end":     {frameBytes(flagMore, make([]byte, 1<<16)), true},
		"command of 2^40":                   {frameHeadBytes(flagCommand, 1<<40), false},
		"garbage":                           {bytes.Repeat([]byte{0xee}, 100), false},
		"command without a name for itself": {frameBytes(flagCommand, []byte{9}), false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, connection(t), map[stream.Channel]func(net.Conn){stream.IOPub: serveRaw(tt.bytes, tt.forEver)})
			r := newRecorder()
			cs := dial(t, f.Connection, Options{Handler: r, MaxMessage: 1 << 20})
			if err := r.awaitLost(t, stream.IOPub); !errors.Is(err, errProtocol) || !strings.Contains(err.Error(), "iopub") {
				t.Errorf("lost for %v, want a protocol error on iopub", err)
			}
			if err := cs.Send(stream.Shell, wire.Message{}.Parts()); err != nil {
				t.Errorf("shell suffers: %v", err)
			}
		})
	}
}

// TestClaimedSizeCostsNothing: 32 GiB are within what may be skipped, and skipping takes no memory.
func TestClaimedSizeCostsNothing(t *testing.T) {
	claim := func(conn net.Conn) {
		p, err := newPeer(conn, "PUB")
		if err != nil {
			return
		}
		p.readMessage()
		p.Write(frameHeadBytes(0, 32<<30))
		p.Close()
	}
	f := newFake(t, connection(t), map[stream.Channel]func(net.Conn){stream.IOPub: claim})
	r := newRecorder()
	dial(t, f.Connection, Options{Handler: r})
	if err := r.awaitLost(t, stream.IOPub); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("lost for %v", err)
	}
}

// TestBadHandshakes: each makes Dial fail, in time.
func TestBadHandshakes(t *testing.T) {
	raw := func(b []byte) func(net.Conn) {
		return func(conn net.Conn) {
			conn.Write(b)
			io.Copy(io.Discard, conn)
		}
	}
	tests := map[string]struct {
		script func(net.Conn)
		want   error
	}{
		"silence":                 {raw(nil), os.ErrDeadlineExceeded},
		"silence after greeting":  {raw(greetingBytes()), os.ErrDeadlineExceeded},
		"hang up":                 {func(conn net.Conn) { conn.Close() }, nil},
		"metadata of 4 GB":        {raw(slices.Concat(greetingBytes(), commandBytes("READY", []byte("\x01a\xff\xff\xff\xff")))), errProtocol},
		"metadata that ends":      {raw(slices.Concat(greetingBytes(), commandBytes("READY", []byte("\x02ab")))), errProtocol},
		"frame of 2^50":           {raw(slices.Concat(greetingBytes(), frameHeadBytes(0, 1<<50))), errProtocol},
		"socket of another type":  {raw(slices.Concat(greetingBytes(), readyBytes("PULL"))), nil},
		"SSH":                     {raw([]byte("SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3 and so on for more than 64 bytes\r\n")), errProtocol},
		"refusal":                 {raw(slices.Concat(greetingBytes(), commandBytes("ERROR", []byte("\x02no")))), errProtocol},
		"one byte at a long time": {raw([]byte{0xff}), os.ErrDeadlineExceeded},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t, connection(t), map[stream.Channel]func(net.Conn){stream.Control: tt.script})
			cs, err := Dial(t.Context(), f.Connection, Options{Handler: newRecorder(), HandshakeTimeout: 200 * time.Millisecond})
			if err == nil {
				cs.Close()
				t.Fatal("dialled")
			}
			if tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), "control: handshake") {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// TestContextEndsHandshake: zmq4 itself would wait for ever.
func TestContextEndsHandshake(t *testing.T) {
	cause := errors.New("changed my mind")
	ctx, cancel := context.WithCancelCause(t.Context())
	silent := func(conn net.Conn) {
		io.ReadFull(conn, make([]byte, 64))
		cancel(cause)
		io.Copy(io.Discard, conn)
	}
	f := newFake(t, connection(t), map[stream.Channel]func(net.Conn){stream.Shell: silent})
	if _, err := Dial(ctx, f.Connection, Options{Handler: newRecorder(), HandshakeTimeout: time.Hour}); !errors.Is(err, cause) {
		t.Errorf("got %v, want %v", err, cause)
	}
}
