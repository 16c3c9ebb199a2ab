package docker

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/pkg/stdcopy"
)

// pieces is what an engine sends for these writes to stdout and stderr.
func pieces(writes ...string) []byte {
	var b bytes.Buffer
	for _, text := range writes {
		kind, body, _ := strings.Cut(text, ":")
		std := stdcopy.Stdout
		if kind == "err" {
			std = stdcopy.Stderr
		}
		_, _ = stdcopy.NewStdWriter(&b, std).Write([]byte(body))
	}
	return b.Bytes()
}

func newDemux(r io.Reader, stderr io.Writer) *demux {
	return &demux{r: bufio.NewReader(r), stderr: stderr}
}

func TestDemux(t *testing.T) {
	var stderr tail
	in := pieces("out:a", "err:first ", "out:", "out:bc", "err:second", "out:d")
	got, err := io.ReadAll(newDemux(bytes.NewReader(in), &stderr))
	if err != nil || string(got) != "abcd" || stderr.String() != "first second" {
		t.Fatalf("%q, %q, %v", got, stderr.String(), err)
	}
}

func TestDemuxRefusesWhatIsNoSuchStream(t *testing.T) {
	head := func(kind byte, size uint32) []byte { return binary.BigEndian.AppendUint32([]byte{kind, 0, 0, 0}, size) }
	tests := map[string]struct {
		in   []byte
		want string
	}{
		"unknown stream":   {head(9, 1), "malformed"},
		"huge":             {head(1, 1<<31), "malformed"},
		"cut head":         {head(1, 1)[:5], "unexpected EOF"},
		"the engine's own": {append(head(3, 4), "oops"...), "oops"},
	}
	for name, tt := range tests {
		if _, err := io.ReadAll(newDemux(bytes.NewReader(tt.in), io.Discard)); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A deadline may come in the middle of a header; what follows must still be read right.
func TestDemuxSurvivesDeadlines(t *testing.T) {
	here, there := net.Pipe()
	defer here.Close()
	defer there.Close()
	d := &demux{Conn: here, r: bufio.NewReader(here), stderr: io.Discard}
	in := pieces("out:xyz")
	buf := make([]byte, 8)
	for _, part := range [][]byte{in[:3], in[3:8]} {
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			_, _ = there.Write(part)
		}()
		_ = d.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
		if _, err := d.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("got %v", err)
		}
		<-sent
	}
	_ = d.SetReadDeadline(time.Time{})
	go func() { _, _ = there.Write(in[8:]) }()
	if n, err := io.ReadFull(d, buf[:3]); err != nil || string(buf[:n]) != "xyz" {
		t.Fatalf("%q, %v", buf[:n], err)
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	var end tail
	for range 3 {
		_, _ = end.Write(bytes.Repeat([]byte("a"), logTail))
	}
	_, _ = end.Write([]byte("the end"))
	if s := end.String(); len(s) != logTail || !strings.HasSuffix(s, "the end") {
		t.Fatalf("%d bytes", len(s))
	}
}

// Whatever arrives: no panic, and never more than arrived; a valid stream gives what stdcopy gives.
func FuzzDemux(f *testing.F) {
	f.Add(pieces("out:a", "err:b", "out:c"))
	f.Add([]byte{1, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, in []byte) {
		var stderr, wantOut, wantErr bytes.Buffer
		got, err := io.ReadAll(newDemux(bytes.NewReader(in), &stderr))
		if len(got)+stderr.Len() > len(in) {
			t.Fatalf("%d bytes out of %d", len(got)+stderr.Len(), len(in))
		}
		if longest(in) > len(in) { // stdcopy makes room for as much as a header announces, up to 4 GiB
			return
		}
		if _, theirs := stdcopy.StdCopy(&wantOut, &wantErr, bytes.NewReader(in)); theirs != nil || err != nil {
			return
		}
		if !bytes.HasPrefix(got, wantOut.Bytes()) || !bytes.HasPrefix(stderr.Bytes(), wantErr.Bytes()) {
			t.Fatalf("%q and %q, stdcopy says %q and %q", got, stderr.Bytes(), wantOut.Bytes(), wantErr.Bytes())
		}
	})
}

// longest is the most that the header of a piece announces.
func longest(in []byte) (most int) {
	for len(in) >= demuxHead {
		size := int(binary.BigEndian.Uint32(in[4:demuxHead]))
		most = max(most, size)
		in = in[min(len(in), demuxHead+size):]
	}
	return most
}
