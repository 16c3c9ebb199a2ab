package channels

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// opening is a handshake as the parser sees it.
func opening() []byte { return slices.Concat(greetingBytes(), readyBytes("PUB")) }

func noCommand(string, []byte) error { return nil }

func TestParserPassesWhatIsInOrder(t *testing.T) {
	long := bytes.Repeat([]byte("long"), 10_000)
	in := slices.Concat(opening(), messageBytes(nil), messageBytes([]byte("a"), long, nil), messageBytes(long[:255], long[:256]))
	for name, r := range map[string]io.Reader{
		"at once":    bytes.NewReader(in),
		"one byte":   iotest.OneByteReader(bytes.NewReader(in)),
		"with error": iotest.DataErrReader(bytes.NewReader(in)),
	} {
		t.Run(name, func(t *testing.T) {
			p := newParser(r, 1<<20, noCommand)
			if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, in) {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(in))
			}
			if p.takeCut() != nil {
				t.Error("something was left out")
			}
		})
	}
}

func TestParserMakesFramesCanonical(t *testing.T) {
	in := slices.Concat(opening(), frameHeadBytes(flagMore, 1), []byte("a"), frameHeadBytes(0, 0))
	want := slices.Concat(opening(), messageBytes([]byte("a"), nil))
	if got, err := io.ReadAll(newParser(bytes.NewReader(in), 10, noCommand)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestParserSwallowsCommands(t *testing.T) {
	in := slices.Concat(opening(), commandBytes("PING", []byte("\x00\x01context")),
		frameBytes(flagMore, []byte("a")), commandBytes("PONG", nil), frameBytes(0, []byte("b")), commandBytes("ERROR", nil))
	var commands []string
	p := newParser(bytes.NewReader(in), 10, func(name string, body []byte) error {
		commands = append(commands, name+string(body))
		return nil
	})
	want := slices.Concat(opening(), messageBytes([]byte("a"), []byte("b")))
	if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if want := []string{"PING\x00\x01context", "PONG", "ERROR"}; !slices.Equal(commands, want) {
		t.Errorf("commands %q, want %q", commands, want)
	}
}

func TestParserCutsWhatIsTooLarge(t *testing.T) {
	body := make([]byte, 1<<20)
	for i := range body {
		body[i] = byte(rand.Uint32())
	}
	const limit = 100
	tests := map[string]struct {
		in, out [][]byte
		cut     cut
	}{
		"one frame":        {[][]byte{body}, [][]byte{nil}, cut{frame: 0, total: 1 << 20}},
		"in the middle":    {[][]byte{[]byte("a"), body, []byte("b")}, [][]byte{[]byte("a"), nil, nil}, cut{frame: 1, total: 1<<20 + 2}},
		"by their sum":     {[][]byte{body[:60], body[:40], body[:1]}, [][]byte{body[:60], body[:40], nil}, cut{frame: 2, total: 101}},
		"two large frames": {[][]byte{body[:200], body}, [][]byte{nil, nil}, cut{frame: 0, total: 1<<20 + 200}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := bytes.NewReader(slices.Concat(opening(), messageBytes(tt.in...)))
			p := newParser(in, limit, noCommand)
			got, err := io.ReadAll(p)
			if want := slices.Concat(opening(), messageBytes(tt.out...)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, %v, want %d", len(got), err, len(want))
			}
			c := p.takeCut()
			if c == nil || *c != tt.cut {
				t.Fatalf("cut %+v, want %+v", c, tt.cut)
			}
		})
	}
}

// TestParserDiverts: who wants a large frame is told what came before it, if that is small, and gets all of it.
func TestParserDiverts(t *testing.T) {
	body := bytes.Repeat([]byte("body"), 1000)
	wide := make([]byte, maxLead)
	tests := map[string]struct {
		in   [][]byte
		lead string // as it is shown to divert, "-" if that is not asked
		cut  bool
	}{
		"first":           {[][]byte{body}, "[]", true},
		"after some":      {[][]byte{[]byte("a"), nil, []byte("bc"), body}, `["a" "" "bc"]`, true},
		"and before some": {[][]byte{[]byte("a"), body, []byte("b")}, `["a"]`, true},
		"not wanted":      {[][]byte{[]byte("no"), body}, `["no"]`, false},
		"small":           {[][]byte{[]byte("a"), body[:1000]}, "-", false},
		"after too much":  {[][]byte{wide[:900], wide[:maxLead-800], body}, "-", false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			in := slices.Concat(messageBytes([]byte("before")), messageBytes(tt.in...), messageBytes([]byte("after")))
			p := newParser(iotest.HalfReader(bytes.NewReader(slices.Concat(opening(), in))), 1<<20, noCommand)
			lead, got := "-", new(bytes.Buffer)
			p.large = 2000
			p.divert = func(frames [][]byte) io.Writer {
				if size := len(frames); size > 0 && len(frames[size-1]) > 2 {
					return nil
				}
				lead = fmt.Sprintf("%q", frames)
				if lead == `["no"]` {
					return nil
				}
				return got
			}
			out, err := io.ReadAll(p)
			if err != nil || lead != tt.lead || tt.cut != bytes.Equal(got.Bytes(), body) || tt.cut == bytes.Contains(out, body[:1000]) {
				t.Errorf("lead %s, %d bytes diverted, %d passed, %v", lead, got.Len(), len(out), err)
			}
			if !bytes.HasSuffix(out, messageBytes([]byte("after"))) {
				t.Error("the next message is missing")
			}
		})
	}
}

func TestParserGoesOnAfterACut(t *testing.T) {
	in := slices.Concat(opening(), messageBytes(make([]byte, 1000)), messageBytes([]byte("next")))
	p := newParser(bytes.NewReader(in), 10, noCommand)
	want := slices.Concat(opening(), messageBytes(nil), messageBytes([]byte("next")))
	if got, err := io.ReadAll(p); err != nil || !bytes.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
	if c := p.takeCut(); c != nil {
		t.Errorf("the next message has the cut %+v", c)
	}
}

func TestParserRefuses(t *testing.T) {
	badGreeting := func(at int, b byte) []byte {
		g := greetingBytes()
		g[at] = b
		return g
	}
	greeted := greetingBytes()
	tests := map[string]struct {
		in   []byte
		want error
	}{
		"nothing":                    {nil, io.EOF},
		"half a greeting":            {greeted[:20], io.ErrUnexpectedEOF},
		"HTTP":                       {[]byte("HTTP/1.1 400 Bad Request\r\n" + strings.Repeat("x", 64)), errProtocol},
		"ZMTP 2":                     {badGreeting(10, 2), errProtocol},
		"signature":                  {badGreeting(9, 0), errProtocol},
		"message before READY":       {slices.Concat(greeted, messageBytes([]byte("a"))), errProtocol},
		"command in place of READY":  {slices.Concat(greeted, commandBytes("ERROR", []byte("\x07go away"))), errProtocol},
		"empty command":              {slices.Concat(greeted, frameBytes(flagCommand, nil)), errProtocol},
		"name past the end":          {slices.Concat(greeted, frameBytes(flagCommand, []byte("\x06READY"))), errProtocol},
		"property name past the end": {slices.Concat(greeted, commandBytes("READY", []byte("\x0bSocket"))), errProtocol},
		"property name is the end":   {slices.Concat(greeted, commandBytes("READY", []byte("\x02ab"))), errProtocol},
		"property size past the end": {slices.Concat(greeted, commandBytes("READY", []byte("\x01a\x00\x00"))), errProtocol},
		"property past the end":      {slices.Concat(greeted, commandBytes("READY", []byte("\x01a\x00\x00\x00\x01"))), errProtocol},
		"property of 4 GB":           {slices.Concat(greeted, commandBytes("READY", []byte("\x01a\xff\xff\xff\xff"))), errProtocol},
		"huge command":               {slices.Concat(opening(), frameHeadBytes(flagCommand, maxCommand+1)), errProtocol},
		"command with MORE":          {slices.Concat(opening(), frameBytes(flagCommand|flagMore, []byte("\x01a"))), errProtocol},
		"flags":                      {slices.Concat(opening(), []byte{8, 0}), errProtocol},
		"2^50 bytes":                 {slices.Concat(opening(), frameHeadBytes(0, 1<<50)), errProtocol},
		"2^64-1 bytes":               {slices.Concat(opening(), frameHeadBytes(0, 1<<64-1)), errProtocol},
		"2^40 bytes that never come": {slices.Concat(opening(), frameHeadBytes(0, 1<<40)), io.ErrUnexpectedEOF},
		"half a head":                {slices.Concat(opening(), []byte{0}), io.ErrUnexpectedEOF},
		"half a long head":           {slices.Concat(opening(), []byte{flagLong, 0, 0}), io.ErrUnexpectedEOF},
		"half a body":                {slices.Concat(opening(), []byte{0, 5, 'a'}), io.ErrUnexpectedEOF},
		"half a command":             {slices.Concat(opening(), []byte{flagCommand, 5, 4}), io.ErrUnexpectedEOF},
		"too many frames":            {slices.Concat(opening(), bytes.Repeat(frameBytes(flagMore, nil), maxFrames+1)), errProtocol},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := newParser(bytes.NewReader(tt.in), 1<<20, noCommand)
			if err := readAll(p); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
			if n, err := p.Read(make([]byte, 1)); n != 0 || !errors.Is(err, tt.want) {
				t.Errorf("afterwards got %d, %v, want %v", n, err, tt.want)
			}
		})
	}
}

// readAll reads until an error, which it returns.
func readAll(r io.Reader) error {
	b := make([]byte, 512)
	for {
		if _, err := r.Read(b); err != nil {
			return err
		}
	}
}

func TestParserSkipsWithoutMemory(t *testing.T) {
	const size = 1 << 30
	src := io.MultiReader(bytes.NewReader(slices.Concat(opening(), frameHeadBytes(0, size))), io.LimitReader(zeros{}, size))
	p := newParser(src, 1<<20, noCommand)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := readAll(p); err != io.EOF {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if c := p.takeCut(); c == nil || c.total != size {
		t.Errorf("cut %+v", c)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes of memory for nothing", n)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// FuzzParser: arbitrary bytes in arbitrary pieces either end in an error or give ZMTP within bounds, which the parser
// passes unchanged when it sees it again.
func FuzzParser(f *testing.F) {
	add := func(b []byte) { f.Add(b, uint64(7), uint16(100)) }
	add(nil)
	add(opening())
	add(slices.Concat(opening(), messageBytes([]byte("a"), make([]byte, 300), nil), commandBytes("PING", []byte("\x00\x01c")), messageBytes([]byte("b"))))
	add(slices.Concat(opening(), frameHeadBytes(flagMore, 1<<50)))
	add(slices.Concat(opening(), frameHeadBytes(flagMore, 1<<30), []byte("tail")))
	add(slices.Concat(greetingBytes(), commandBytes("READY", []byte("\x01a\xff\xff\xff\xff"))))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, limit uint16) {
		out, err := parseInPieces(in, seed, int64(limit))
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errProtocol) {
			return // and what came before it is whole frames and one started
		}
		if err != io.EOF {
			t.Fatalf("error of another kind: %v", err)
		}
		again, err := parseInPieces(out, seed+1, int64(limit))
		if err != io.EOF || !bytes.Equal(out, again) {
			t.Fatalf("not stable: %q became %q, %v", out, again, err)
		}
		checkBounds(t, out, int64(limit))
	})
}

// parseInPieces reads in through a parser, both sides in pieces of random size.
func parseInPieces(in []byte, seed uint64, limit int64) ([]byte, error) {
	random := rand.New(rand.NewPCG(seed, 0))
	p := newParser(&pieces{bytes.NewReader(in), random}, limit, noCommand)
	var out []byte
	for {
		b := make([]byte, random.IntN(70))
		n, err := p.Read(b)
		out = append(out, b[:n]...)
		if err != nil {
			return out, err
		}
		p.takeCut()
	}
}

type pieces struct {
	r      io.Reader
	random *rand.Rand
}

func (p *pieces) Read(b []byte) (int, error) {
	return p.r.Read(b[:min(len(b), 1+p.random.IntN(100))])
}

// checkBounds reads out with an independent reader: greeting, READY, then messages within limit.
func checkBounds(t *testing.T, out []byte, limit int64) {
	if len(out) == 0 {
		return
	}
	if len(out) < 64 || out[0] != 0xff || out[9] != 0x7f {
		t.Fatalf("no greeting: %q", out)
	}
	r := &peer{r: bufio.NewReader(bytes.NewReader(out[64:]))}
	if flags, body, err := r.readFrame(); err == io.EOF {
		return
	} else if err != nil || flags&flagCommand == 0 || !bytes.HasPrefix(body, []byte("\x05READY")) {
		t.Fatalf("no READY: %x %q %v", flags, body, err)
	}
	for {
		var total int64
		frames, err := r.readMessage()
		if err == io.EOF {
			return
		}
		for _, f := range frames {
			total += int64(len(f))
		}
		if err != nil || total > limit || len(frames) > maxFrames {
			t.Fatalf("message of %d bytes in %d frames, %v", total, len(frames), err)
		}
	}
}
