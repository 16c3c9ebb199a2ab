package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeClient speaks to ServeStdio through pipes.
type pipeClient struct {
	t     *testing.T
	w     *world
	in    *io.PipeWriter
	out   *bufio.Scanner
	ended chan error
	stop  context.CancelFunc
}

func newPipeClient(t *testing.T, w *world) *pipeClient {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	c := &pipeClient{t: t, w: w, in: inW, out: bufio.NewScanner(outR), ended: make(chan error, 1), stop: stop}
	c.out.Buffer(nil, 64<<20)
	go func() {
		c.ended <- w.d.ServeStdio(ctx, inR, outW)
		outW.Close()
	}()
	t.Cleanup(func() { stop(); inW.Close(); outR.Close() })
	return c
}

func (c *pipeClient) send(lines ...string) {
	c.t.Helper()
	for _, line := range lines {
		if _, err := io.WriteString(c.in, line+"\n"); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *pipeClient) receive() rpc {
	c.t.Helper()
	if !c.out.Scan() {
		c.t.Fatalf("no more lines: %v", c.out.Err())
	}
	return decode(c.t, c.out.Bytes())
}

func stdioCall(id any, tool string, args map[string]any) string {
	return (&user{}).toolCall(id, tool, args)
}

func TestStdioConcurrencyAndCancel(t *testing.T) {
	for _, version := range []string{stateless, handshake} {
		w := newWorld(t)
		c := newPipeClient(t, w)
		u := &user{w: w, version: version, owner: "desk"}
		if version == handshake {
			c.send(u.message(0, "initialize", map[string]any{"protocolVersion": version, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "client of desk", "version": "1"}}))
			c.receive()
			c.send(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		}
		c.send(u.toolCall(1, "block", map[string]any{"label": "one"}), u.toolCall("1", "block", map[string]any{"label": "two"}))
		calls := []*blocked{await(t, w.calls), await(t, w.calls)}
		slices.SortFunc(calls, func(a, b *blocked) int { return strings.Compare(a.label, b.label) })

		c.send("", "   \t", u.toolCall(2, "whoami", nil)) // answered while the others wait
		if got := c.receive(); string(got.ID) != "2" || got.text() != "client of desk "+version {
			t.Errorf("%s: %+v", version, got)
		}
		c.send(u.toolCall(1, "echo", nil))
		if got := c.receive(); string(got.ID) != "1" || got.Error == nil || !strings.Contains(got.Error.Message, "still running") {
			t.Errorf("%s: an id twice: %+v", version, got)
		}
		c.send(cancelOf(1))
		if err := await(t, calls[0].ended); !errors.Is(err, ErrCancelled) {
			t.Errorf("%s: cause %v", version, err)
		}
		calls[1].untouched(t)
		close(calls[1].release)
		if got := c.receive(); string(got.ID) != `"1"` || got.text() != "unblocked two" { // and nothing for the cancelled one
			t.Errorf("%s: %+v", version, got)
		}
		c.in.Close()
		if err := await(t, c.ended); err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if c.out.Scan() {
			t.Errorf("%s: after the end: %s", version, c.out.Bytes())
		}
	}
}

func TestStdioAnswersWhatWasSentBeforeThePipeClosed(t *testing.T) {
	w := newWorld(t)
	in := strings.Join([]string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"pipe","version":"1"}}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		stdioCall(2, "whoami", nil),
		stdioCall(3, "progress", map[string]any{"n": 50}), // the last line has no line break
	}, "\n")
	var out bytes.Buffer
	if err := w.d.ServeStdio(t.Context(), strings.NewReader(in), &out); err != nil {
		t.Fatal(err)
	}
	byID := map[string]rpc{}
	progress := 0
	for line := range strings.Lines(out.String()) {
		m := decode(t, []byte(line))
		if byID[string(m.ID)] = m; m.Method != "" {
			progress++
			if m.Params.Progress != progress || byID["3"].ID != nil {
				t.Errorf("out of order: %s", line)
			}
		}
	}
	if byID["2"].text() != "pipe 2025-06-18" || byID["3"].text() != "done, <nil>" || progress != 50 {
		t.Errorf("%s", out.String())
	}
}

func TestStdioSurvivesBadLines(t *testing.T) {
	w := newWorld(t)
	c := newPipeClient(t, w)
	for _, tt := range []struct {
		line string
		code int
	}{
		{"not json", -32700},
		{`{"jsonrpc":"2.0","id":1`, -32700},
		{`[]`, -32600},
		{"\x00\xff", -32700},
		{`{"jsonrpc":"2.0","id":7,"method":"nope"}`, -32601},
		{stdioCall(7, "panic", nil), -32603},
		{strings.Repeat("x", DefaultMaxBody+1), -32600},
	} {
		c.send(tt.line)
		if got := c.receive(); got.Error == nil || got.Error.Code != tt.code {
			t.Errorf("%.40s: %+v, want %d", tt.line, got, tt.code)
		}
		c.send(stdioCall(8, "echo", map[string]any{"msg": "still here"}))
		if got := c.receive(); got.text() != "still here" {
			t.Errorf("after %.40s: %+v", tt.line, got)
		}
	}
	c.send(`{"jsonrpc":"2.0","id":1,"result":{}}`, cancelOf(99), `{"jsonrpc":"2.0","method":"notifications/cancelled"}`, stdioCall(9, "echo", nil))
	if got := c.receive(); string(got.ID) != "9" {
		t.Errorf("something answered what needs no answer: %+v", got)
	}
}

func TestStdioEndsWithItsContext(t *testing.T) {
	w := newWorld(t)
	c := newPipeClient(t, w)
	c.send(stdioCall(1, "block", nil))
	call := await(t, w.calls)
	go io.Copy(io.Discard, readerOf(c.out)) // the answer may still be written
	c.stop()
	if err := await(t, c.ended); !errors.Is(err, context.Canceled) {
		t.Errorf("ServeStdio: %v", err)
	}
	select {
	case err := <-call.ended:
		if !errors.Is(err, ErrShutdown) {
			t.Errorf("cause: %v", err)
		}
	default:
		t.Error("returned before its call had ended")
	}
}

// readerOf drains what a scanner scans.
func readerOf(s *bufio.Scanner) io.Reader {
	r, w := io.Pipe()
	go func() {
		for s.Scan() {
			w.Write(s.Bytes())
		}
		w.Close()
	}()
	return r
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestStdioEndsWhenNobodyReads(t *testing.T) {
	w := newWorld(t)
	in, feed := io.Pipe()
	defer feed.Close()
	ended := make(chan error, 1)
	go func() { ended <- w.d.ServeStdio(t.Context(), in, brokenWriter{}) }()
	fmt.Fprintln(feed, stdioCall(1, "block", nil))
	call := await(t, w.calls)
	fmt.Fprintln(feed, stdioCall(2, "echo", nil))
	if err := await(t, ended); err == nil || !strings.Contains(err.Error(), "broken pipe") {
		t.Errorf("ServeStdio: %v", err)
	}
	if err := await(t, call.ended); !errors.Is(err, ErrDisconnected) {
		t.Errorf("cause: %v", err)
	}
}

// A client that has stopped reading holds up the end only for so long, on pipes without deadlines too.
func TestStdioEndsAlthoughItsClientHasStoppedReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, calls: make(chan *blocked, 1)} // without an endpoint, which a bubble cannot hold
		w.d = NewDispatcher(newServer(w.calls), slog.New(slog.DiscardHandler))
		c := newPipeClient(t, w)
		c.send(stdioCall(1, "block", nil))
		call := <-w.calls
		c.send(stdioCall(2, "echo", nil), stdioCall(3, "echo", nil)) // whose answers fill the pipe
		synctest.Wait()
		c.stop()
		stopped := time.Now()
		if err := <-c.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("ServeStdio: %v", err)
		}
		if took := time.Since(stopped); took != lastWords {
			t.Errorf("it took %v", took)
		}
		if err := <-call.ended; !errors.Is(err, ErrShutdown) {
			t.Errorf("cause: %v", err)
		}
	})
}

func TestStdioBoundsWhatRuns(t *testing.T) {
	w := newWorld(t)
	c := newPipeClient(t, w)
	var calls []*blocked
	for i := range maxRunning {
		c.send(stdioCall(i, "block", nil))
		calls = append(calls, await(t, w.calls))
	}
	c.send(stdioCall("more", "block", nil))
	if got := c.receive(); got.Error == nil || got.Error.Code != codeBusy || string(got.ID) != `"more"` {
		t.Errorf("%+v", got)
	}
	c.send(cancelOf(0))
	await(t, calls[0].ended)
	for _, call := range calls[1:] {
		close(call.release)
		c.receive()
	}
	c.send(stdioCall("more", "echo", nil))
	if got := c.receive(); got.Error != nil {
		t.Errorf("after the others: %+v", got)
	}
}

func FuzzReadLine(f *testing.F) {
	f.Add([]byte("a\nbb\n\nccccc\nd"), 3)
	f.Add(bytes.Repeat([]byte("x"), 200), 100)
	f.Fuzz(func(t *testing.T, in []byte, most int) {
		most = min(max(most, 0), 1000)
		var want []string
		for line := range strings.SplitSeq(string(in), "\n") {
			if trimmed := strings.TrimSpace(line); len(line) > most {
				want = append(want, "too long")
			} else if trimmed != "" {
				want = append(want, trimmed)
			}
		}
		lines := make(chan []byte, len(in)+1)
		if err := readLines(t.Context(), bytes.NewReader(in), most, lines); err != nil {
			t.Fatal(err)
		}
		close(lines)
		var got []string
		for line := range lines {
			if line == nil {
				line = []byte("too long")
			}
			got = append(got, string(line))
		}
		if len(got) != len(want) {
			t.Fatalf("%q: got %q, want %q", in, got, want)
		}
	})
}

func TestStdioWritesOneObjectALine(t *testing.T) {
	w := newWorld(t)
	var out bytes.Buffer
	text := "line\nbreaks \u2028 \r and \"quotes\" <&>"
	if err := w.d.ServeStdio(t.Context(), strings.NewReader(stdioCall(1, "echo", map[string]any{"msg": text})), &out); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 1 || !json.Valid(out.Bytes()) || decode(t, out.Bytes()).text() != text {
		t.Errorf("%q", out.String())
	}
}
