package wire

import (
	"bytes"
	"testing"
)

func BenchmarkPack(b *testing.B) {
	signer, parts := NewSigner([]byte("key")), sample().Parts()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signer.Pack(parts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUnpack(b *testing.B) {
	signer := NewSigner([]byte("key"))
	frames, err := signer.Pack(sample().Parts())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := signer.Unpack(frames); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParts(b *testing.B) {
	m := sample()
	b.ReportAllocs()
	for b.Loop() {
		m.Parts()
	}
}

func BenchmarkFromParts(b *testing.B) {
	parts := sample().Parts()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromParts(parts); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFromPartsLarge(b *testing.B) {
	m := sample()
	m.Content = bytes.Join([][]byte{[]byte(`{"name":"stdout","text":"`), bytes.Repeat([]byte("a line of output\\n"), 1<<16), []byte(`"}`)}, nil)
	parts := m.Parts()
	b.SetBytes(int64(len(m.Content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := FromParts(parts); err != nil {
			b.Fatal(err)
		}
	}
}

// sample is a message as a kernel sends thousands of.
func sample() Message {
	parent := Header{
		MsgID: "b5f3f0d4-2", Session: "b5f3f0d4", Username: "cellblock", Date: "2026-11-20T12:00:00.000000Z",
		MsgType: "execute_request", Version: "5.4",
	}
	header := parent
	header.MsgID, header.Session, header.MsgType, header.Version = "77aa12c1-9", "77aa12c1", "stream", "5.3"
	return Message{Header: header, Parent: parent, Content: []byte(`{"name":"stdout","text":"hello\n"}`)}
}
