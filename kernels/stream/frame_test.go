package stream

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/internal/jsontext"
)

func TestMessageRoundTrip(t *testing.T) {
	tests := map[string]Message{
		"no parts":    {Seq: 1, Channel: Shell, Parts: [][]byte{}},
		"empty parts": {Seq: 2, Channel: IOPub, Parts: [][]byte{{}, {}, {}, {}}},
		"buffers":     {Seq: 1 << 60, Channel: Stdin, Parts: [][]byte{[]byte("{}"), {}, bytes.Repeat([]byte{7}, 3<<20)}},
		"most parts":  {Seq: 3, Channel: Control, Parts: make([][]byte, MaxParts)},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			for i, p := range want.Parts {
				if p == nil {
					want.Parts[i] = []byte{}
				}
			}
			var buf bytes.Buffer
			if err := NewWriter(&buf).WriteMessage(FrameMessage, want); err != nil {
				t.Fatal(err)
			}
			f, err := NewReader(&buf, 64<<20).ReadFrame()
			if err != nil || f.Type != FrameMessage {
				t.Fatalf("ReadFrame: type %d, %v", f.Type, err)
			}
			got, err := DecodeMessage(f.Payload)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("DecodeMessage: %v; seq %d, %d parts", err, got.Seq, len(got.Parts))
			}
		})
	}
}

// A carrier that is wrapped gets each small frame in one write: its reader would wake for every part.
func TestSmallFramesAreOneWrite(t *testing.T) {
	var sent writes
	w := NewWriter(&sent)
	parts := [][]byte{[]byte("header"), []byte("{}"), {}, []byte("content")}
	large := append(parts[:3:3], bytes.Repeat([]byte("x"), maxSmall))
	for _, write := range []func() error{
		func() error { return w.WriteMessage(FrameSend, Message{Channel: Shell, Parts: parts}) },
		func() error { return w.WriteAck(7) },
		func() error { return w.WriteMessage(FrameSend, Message{Channel: Shell, Parts: large}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(sent); n < 3 || len(sent[2]) > maxSmall {
		t.Errorf("%d writes", n)
	}
	r := NewReader(bytes.NewReader(slices.Concat(sent...)), 1<<20)
	for i, want := range [][][]byte{parts, nil, large} {
		f, err := r.ReadFrame()
		if err != nil || i < 2 && len(f.Payload)+lengthSize+1 != len(sent[i]) {
			t.Fatalf("frame %d of %d bytes: %v", i, len(f.Payload), err)
		}
		if m, err := DecodeMessage(f.Payload); want != nil && (err != nil || !slices.EqualFunc(m.Parts, want, bytes.Equal)) {
			t.Errorf("frame %d: %v", i, err)
		}
	}
}

// writes keeps what is written, each write by itself.
type writes [][]byte

func (w *writes) Write(p []byte) (int, error) {
	*w = append(*w, bytes.Clone(p))
	return len(p), nil
}

func TestWriterRefusesTooManyParts(t *testing.T) {
	err := NewWriter(io.Discard).WriteMessage(FrameSend, Message{Channel: Shell, Parts: make([][]byte, MaxParts+1)})
	if !errors.Is(err, ErrMalformed) {
		t.Fatalf("got %v", err)
	}
}

func TestReadFrameBounds(t *testing.T) {
	frame := func(n uint32, rest ...byte) []byte { return append(binary.BigEndian.AppendUint32(nil, n), rest...) }
	tests := map[string]struct {
		in   []byte
		want error
	}{
		"nothing":      {nil, io.EOF},
		"cut head":     {[]byte{0, 0}, io.ErrUnexpectedEOF},
		"zero length":  {frame(0, 1), ErrMalformed},
		"over limit":   {frame(1<<31, 1), ErrFrameTooLarge},
		"cut payload":  {frame(10, 1, 2), io.ErrUnexpectedEOF},
		"no payload":   {frame(10, 1), io.ErrUnexpectedEOF},
		"just a claim": {frame(1000, 1), io.ErrUnexpectedEOF},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := NewReader(bytes.NewReader(tt.in), 4096).ReadFrame(); !errors.Is(err, tt.want) {
				t.Fatalf("got %v, want %v", err, tt.want)
			}
		})
	}
}

// A length alone must not make the reader take memory.
func TestReadFrameClaimCostsNothing(t *testing.T) {
	in := append(binary.BigEndian.AppendUint32(nil, 1<<30), byte(FrameMessage), 1, 2, 3)
	r := NewReader(bytes.NewReader(in), 1<<31)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		for range b.N {
			_, _ = NewReader(bytes.NewReader(in), 1<<31).ReadFrame()
		}
	}).AllocedBytesPerOp()
	if _, err := r.ReadFrame(); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("got %v", err)
	}
	if allocated > 4<<20 {
		t.Fatalf("a claim of 1 GiB took %d bytes", allocated)
	}
}

func TestEventsAndAcks(t *testing.T) {
	var buf bytes.Buffer
	w := NewWriter(&buf)
	r := NewReader(&buf, 4096)
	at := time.Date(2026, 7, 28, 1, 2, 3, 4000, time.UTC)
	for _, want := range []Event{
		{Kind: EventExited, Incarnation: 2, Exit: &Exit{Code: -1, Signal: "SIGKILL", OOM: true}},
		{Kind: "used", Time: at, PID: 7, Used: &Used{Parent: "a \"cell\"", CPU: 1234567 * time.Microsecond, Memory: 1 << 40, OOMKills: 3}},
		{Kind: "elided", Time: at, Elided: &Elided{}}, {Kind: "dropped", Dropped: &Dropped{}}, {Kind: "gap", Gap: &Gap{From: 1, To: 2, Bytes: 3}},
	} {
		if err := w.WriteEvent(42, want); err != nil {
			t.Fatal(err)
		}
		f, _ := r.ReadFrame()
		seq, got, err := DecodeEvent(f.Payload)
		if err != nil || seq != 42 || !reflect.DeepEqual(got, want) {
			t.Fatalf("event %d %+v, %v", seq, got, err)
		}
		checkEvent(t, got)
	}
	for _, wrong := range []string{``, `{`, `[]`, `{"kind":1}`, `{"time":"now"}`, `{"pid":"x"}`, `{"pid":1e99}`, `{"exit":[]}`, `{"used":{"cpu_ns":"1"}}`, `{"used":[]}`} {
		if _, e, err := DecodeEvent([]byte("12345678" + wrong)); !errors.Is(err, ErrMalformed) || e != (Event{}) {
			t.Errorf("%s: %+v, %v", wrong, e, err)
		}
	}
	if err := w.WriteAck(41); err != nil {
		t.Fatal(err)
	}
	f, _ := r.ReadFrame()
	if ack, err := DecodeAck(f.Payload); err != nil || ack != 41 || f.Type != FrameAck {
		t.Fatalf("ack %d, %v", ack, err)
	}
}

// What others write of an event, and not only what we do, is read as encoding/json reads it.
func TestEventsOfOthers(t *testing.T) {
	for _, text := range eventsOfOthers {
		if _, _, err := DecodeEvent([]byte("12345678" + text)); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		checkRead(t, []byte("12345678"+text))
	}
}

var eventsOfOthers = []string{
	`null`, `{"used":null}`, `{"kind":null,"time":null,"incarnation":null,"pid":null,"exit":null,"elided":null,"dropped":null,"gap":null}`,
	`{"used":{"parent":null,"cpu_ns":null,"memory":null}}`, `{"used":{"parent":"a"},"used":{"memory":1}}`, `{"used":{"parent":"a"},"used": null }`,
	`{"pid":7,"pid":null,"exit":{"code":1},"exit":{"oom":true}}`, `{"kind":"used","Used":{"CPU_ns":1}}`,
}

// checkRead holds the way in which an event's payload is read against encoding/json. That takes names in any case, which we do not.
func checkRead(t *testing.T, payload []byte) {
	t.Helper()
	_, ours, err := DecodeEvent(payload)
	var theirs Event
	if err != nil || json.Unmarshal(payload[8:], &theirs) != nil || namesInOtherCase(payload[8:]) {
		return
	}
	if !reflect.DeepEqual(ours, theirs) {
		t.Fatalf("%s: %+v, encoding/json has %+v", payload[8:], ours, theirs)
	}
}

// namesInOtherCase tells whether an event, or what it says of use, has a member whose name is one of ours but for its case.
func namesInOtherCase(event []byte) (found bool) {
	ours := map[string][]string{
		"": {"kind", "time", "incarnation", "pid", "exit", "elided", "dropped", "used", "gap"}, "used": {"parent", "cpu_ns", "memory", "oom_kills"},
	}
	var look func(in string, object []byte)
	look = func(in string, object []byte) {
		_ = jsontext.Members(object, func(name []byte, value json.RawMessage) error {
			for _, known := range ours[in] {
				found = found || string(name) != known && strings.EqualFold(string(name), known)
			}
			if in == "" && string(name) == "used" {
				look("used", value)
			}
			return nil
		})
	}
	look("", event)
	return found
}

// checkEvent holds the way in which events are read against encoding/json.
func checkEvent(t *testing.T, e Event) {
	t.Helper()
	written, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var theirs Event
	_, ours, err := DecodeEvent(append(make([]byte, 8), written...))
	if err != nil || json.Unmarshal(written, &theirs) != nil || !reflect.DeepEqual(ours, theirs) {
		t.Fatalf("%s: %+v, encoding/json has %+v, %v", written, ours, theirs, err)
	}
}

func FuzzDecode(f *testing.F) {
	var buf bytes.Buffer
	_ = NewWriter(&buf).WriteMessage(FrameMessage, Message{Seq: 9, Channel: IOPub, Parts: [][]byte{[]byte("{}"), nil, []byte("x")}})
	f.Add(buf.Bytes()[5:])
	f.Add([]byte("\x00\x00\x00\x00\x00\x00\x00\x01{\"kind\":\"exited\"}"))
	for _, text := range eventsOfOthers {
		f.Add([]byte("12345678" + text))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		if m, err := DecodeMessage(payload); err == nil {
			var out bytes.Buffer
			if err := NewWriter(&out).WriteMessage(FrameMessage, m); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(out.Bytes()[5:], payload) {
				t.Fatalf("not the same after a round trip: %x, %x", out.Bytes()[5:], payload)
			}
		}
		if _, e, err := DecodeEvent(payload); err == nil {
			checkEvent(t, e)
			checkRead(t, payload)
		}
		_, _ = DecodeAck(payload)
		_ = DecodeJSON(payload, &Hello{})
	})
}

func FuzzReadFrame(f *testing.F) {
	f.Add([]byte{0, 0, 0, 2, 1, 7, 0, 0, 0, 1, 3})
	f.Fuzz(func(t *testing.T, in []byte) {
		r := NewReader(bytes.NewReader(in), 1<<16)
		for {
			frame, err := r.ReadFrame()
			if err != nil {
				return
			}
			if len(frame.Payload) > 1<<16 {
				t.Fatalf("payload of %d bytes", len(frame.Payload))
			}
		}
	})
}

func BenchmarkWriteMessage(b *testing.B) {
	client, server := net.Pipe()
	defer client.Close()
	go func() { _, _ = io.Copy(io.Discard, server) }()
	w := NewWriter(client)
	m := Message{Seq: 1, Channel: IOPub, Parts: [][]byte{make([]byte, 200), make([]byte, 200), []byte("{}"), make([]byte, 60)}}
	b.ReportAllocs()
	for b.Loop() {
		if err := w.WriteMessage(FrameMessage, m); err != nil {
			b.Fatal(err)
		}
	}
}
