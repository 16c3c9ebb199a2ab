//go:build linux

package shim

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// message returns the parts of an IOPub message.
func message(parent, msgType string, content any) [][]byte {
	m := wire.Message{Header: wire.NewHeader(newID(), "kernel", msgType), Content: encode(content)}
	if parent != "" {
		m.Parent = wire.NewHeader(parent, "test", "execute_request")
	}
	return m.Parts()
}

func streamMessage(parent, name, text string) [][]byte {
	return message(parent, "stream", map[string]string{"name": name, "text": text})
}

func idle(parent string) [][]byte {
	return message(parent, "status", map[string]string{"execution_state": "idle"})
}

func line1K() string { return strings.Repeat("x", 1023) + "\n" }

// script feeds a gate and describes what comes out of the journal, one word a frame.
type script struct {
	t *testing.T
	j *journal
	g *gate
}

func newScript(t *testing.T, journal, limit, tail int64) *script {
	j := newJournal(journal)
	return &script{t: t, j: j, g: newGate(j, limit, tail)}
}

func (s *script) send(parts ...[][]byte) {
	for _, p := range parts {
		s.g.message(stream.IOPub, p)
	}
}

// out reads everything and acknowledges it.
func (s *script) out() string {
	s.t.Helper()
	var words []string
	c, next, err := s.j.follow(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for c.next < next {
		e, _, _ := c.read()
		words = append(words, describe(e))
	}
	if _, err := s.j.ack(next - 1); err != nil {
		s.t.Fatal(err)
	}
	return strings.Join(words, " ")
}

func describe(e entry) string {
	if e.event != nil {
		switch {
		case e.event.Elided != nil && e.event.Elided.Stream == "":
			return fmt.Sprintf("[%s: %d messages, %d bytes]", e.event.Elided.Parent, e.event.Elided.Messages, e.event.Elided.Bytes)
		case e.event.Elided != nil:
			return fmt.Sprintf("[%s %s: %d bytes, %d lines]", e.event.Elided.Parent, e.event.Elided.Stream, e.event.Elided.Bytes, e.event.Elided.Lines)
		case e.event.Gap != nil:
			return fmt.Sprintf("[gap %d-%d: %d bytes]", e.event.Gap.From, e.event.Gap.To, e.event.Gap.Bytes)
		}
		return string(e.event.Kind)
	}
	m, err := wire.FromParts(e.msg.Parts)
	if err != nil {
		return err.Error()
	}
	if m.Header.MsgType == "stream" {
		var c map[string]string
		_ = json.Unmarshal(m.Content, &c)
		return fmt.Sprintf("%s:%s:%q", m.Parent.MsgID, strings.TrimPrefix(c["name"], "std"), c["text"])
	}
	return m.Parent.MsgID + ":" + m.Header.MsgType
}

func TestGate(t *testing.T) {
	display := func(parent string, n int) [][]byte {
		return message(parent, "display_data", map[string]string{"x": strings.Repeat("d", n)})
	}
	errorMessage := message("a", "error", map[string]string{"ename": "E"})
	tests := map[string]struct {
		in   [][][]byte
		want string
	}{
		"under the limit": {
			[][][]byte{streamMessage("a", "stdout", "1\n"), display("a", 10), idle("a")},
			`a:out:"1\n" a:display_data a:status`,
		},
		"one message over it": {
			[][][]byte{streamMessage("a", "stdout", strings.Repeat("0123456789", 20)), idle("a")},
			fmt.Sprintf(`a:out:%q [a stdout: 70 bytes, 0 lines] a:out:"0123456789" a:status`, strings.Repeat("0123456789", 12)),
		},
		"two streams": {
			[][][]byte{
				streamMessage("a", "stdout", strings.Repeat("o", 100)), streamMessage("a", "stdout", "1\n2\n3\n4\n5\n6\n7\n"),
				streamMessage("a", "stderr", "warning: careful\n"), idle("a"),
			},
			fmt.Sprintf(`a:out:%q [a stdout: 4 bytes, 2 lines] a:out:"3\n4\n5\n6\n7\n" [a stderr: 7 bytes, 0 lines] a:err:": careful\n" a:status`, strings.Repeat("o", 100)),
		},
		"the stream that spoke last comes last": {
			[][][]byte{
				streamMessage("a", "stdout", strings.Repeat("o", 100)), streamMessage("a", "stdout", "out"),
				streamMessage("a", "stderr", "err"), streamMessage("a", "stdout", "out"), idle("a"),
			},
			fmt.Sprintf(`a:out:%q a:err:"err" a:out:"outout" a:status`, strings.Repeat("o", 100)),
		},
		"displays are left out whole": {
			[][][]byte{display("a", 200), display("a", 5), errorMessage, display("a", 300), idle("a")},
			`[a: 2 messages, 221 bytes] a:error [a: 1 messages, 308 bytes] a:status`,
		},
		"characters are not split": {
			[][][]byte{streamMessage("a", "stdout", "12345"+strings.Repeat("€", 60)), idle("a")},
			fmt.Sprintf(`a:out:%q [a stdout: 54 bytes, 0 lines] a:out:"€€€" a:status`, "12345"+strings.Repeat("€", 39)),
		},
		"executions are apart": {
			[][][]byte{display("a", 200), streamMessage("b", "stdout", "fine"), idle("b"), idle("a")},
			`b:out:"fine" b:status [a: 1 messages, 208 bytes] a:status`,
		},
		"late output of a thread": {
			[][][]byte{streamMessage("a", "stdout", strings.Repeat("o", 120)), idle("a"), streamMessage("a", "stdout", "late"), streamMessage("b", "stdout", "next"), idle("b")},
			fmt.Sprintf(`a:out:%q a:status b:out:"next" a:out:"late" b:status`, strings.Repeat("o", 120)),
		},
		"what is no stream": {
			[][][]byte{display("a", 200), message("a", "stream", map[string]string{"name": "stdin", "text": "x"}), message("a", "comm_msg", struct{}{}), idle("a")},
			`a:comm_msg [a: 2 messages, 235 bytes] a:status`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, 1<<20, 120, 10)
			s.send(tt.in...)
			if got := s.out(); got != tt.want {
				t.Fatalf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// A crowded journal makes output wait, and it goes on when there is room.
func TestGateCrowded(t *testing.T) {
	s := newScript(t, 10_000, 1<<30, 100)
	for range 20 {
		s.send(streamMessage("a", "stdout", line1K()))
	}
	passed := strings.Count(s.out(), "a:out")
	if passed < 4 || passed > 8 {
		t.Fatalf("%d KB passed, the journal takes 10", passed)
	}
	s.g.relieve()
	want := fmt.Sprintf(`[a stdout: %d bytes, %d lines] a:out:%q`, (20-passed)<<10-100, 20-passed-1, strings.Repeat("x", 99)+"\n")
	if got := s.out(); got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
	s.send(streamMessage("a", "stdout", "on we go\n"), idle("a"))
	if got := s.out(); got != `a:out:"on we go\n" a:status` {
		t.Fatal(got)
	}
}

// The kernel ends: what waits comes out.
func TestGateEnd(t *testing.T) {
	s := newScript(t, 1<<20, 10, 10)
	s.send(streamMessage("a", "stdout", "more than ten bytes, twice"))
	s.g.end()
	if got := s.out(); got != `a:out:"more than " [a stdout: 6 bytes, 0 lines] a:out:"tes, twice"` {
		t.Fatal(got)
	}
}

// A kernel that makes up parents costs a bounded amount of memory.
func TestGateForgets(t *testing.T) {
	s := newScript(t, 1<<20, 10, 1000)
	for i := range 10_000 {
		s.send(streamMessage(fmt.Sprint("parent", i), "stdout", line1K()))
		if len(s.g.execs) > maxExecutions || len(s.g.order) > maxExecutions {
			t.Fatalf("%d executions", len(s.g.execs))
		}
	}
	waiting := 0
	for _, e := range s.g.order {
		if !e.held.empty() {
			waiting++
		}
	}
	if waiting > 1 {
		t.Fatalf("%d executions hold something", waiting)
	}
}

// Whatever is printed: what comes out and what is reported as left out are together what went in.
func TestGateCountsExactly(t *testing.T) {
	alphabet := []string{"a", "é", "€", "😀", "\n", "\"", "\\", "\u2028", "<"}
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := newScript(t, 4000+r.Int64N(40_000), 1+r.Int64N(4000), r.Int64N(500))
		var want, got counted
		for range 200 {
			var b strings.Builder
			for range r.IntN(200) {
				b.WriteString(alphabet[r.IntN(len(alphabet))])
			}
			want.add(b.String())
			s.send(streamMessage("a", "stdout", b.String()))
			if r.IntN(40) == 0 {
				got.read(t, s)
				s.g.relieve()
			}
		}
		s.send(idle("a"))
		got.read(t, s)
		if got != want {
			t.Fatalf("seed %d: got %+v, want %+v", seed, got, want)
		}
	}
}

type counted struct{ bytes, lines int64 }

func (c *counted) add(text string) {
	c.bytes += int64(len(text))
	c.lines += int64(strings.Count(text, "\n"))
}

func (c *counted) read(t *testing.T, s *script) {
	t.Helper()
	cursor, next, _ := s.j.follow(nil)
	for cursor.next < next {
		e, _, _ := cursor.read()
		switch {
		case e.event != nil && e.event.Elided != nil:
			c.bytes += e.event.Elided.Bytes
			c.lines += e.event.Elided.Lines
		case e.event != nil:
			t.Fatalf("event %+v", e.event)
		case strings.Contains(string(e.msg.Parts[0]), `"stream"`):
			var content map[string]string
			if err := json.Unmarshal(e.msg.Parts[3], &content); err != nil || !utf8.ValidString(content["text"]) {
				t.Fatal("broken message", err)
			}
			c.add(content["text"])
		}
	}
	_, _ = s.j.ack(next - 1)
}

// FuzzSkim: a skim reads what encoding/json reads, in whatever pieces it comes.
func FuzzSkim(f *testing.F) {
	f.Add([]byte(`{"name": "stdout", "text": "a\nb\u00e9\ud83d\ude00\ud83d\"\\"}`), 3, 4)
	f.Add([]byte(`{"text": "x", "meta": {"text": ["}", {"name": 1}]}, "name": "stderr"} `), 1, 0)
	f.Add([]byte(`{"text":"\ud83dx\udc00\ud83d\n\ud83d"}`), 2, 1)
	f.Fuzz(func(t *testing.T, content []byte, head, piece int) {
		kept := excerpt{headMax: head & 15, tail: tail{max: 1 << 20}}
		s := newSkim(kept.add)
		var asItStands []byte
		raw := newRawSkim(func(text []byte) { asItStands = append(asItStands, text...) })
		for rest := content; len(rest) > 0; {
			n := min(len(rest), 1+piece&7)
			_, _ = s.Write(rest[:n])
			_, _ = raw.Write(rest[:n])
			rest = rest[n:]
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(content, &members) != nil || !utf8.Valid(content) {
			return // only valid JSON must be understood
		}
		var name, text string
		if json.Unmarshal(members["name"], &name) != nil || json.Unmarshal(members["text"], &text) != nil || repeats(content) {
			return
		}
		got, ok := s.stream()
		if want := name == "stdout" || name == "stderr"; ok != want {
			t.Fatalf("stream %q, %v; name %q", got, ok, name)
		}
		if ok && string(kept.head)+string(kept.tail.buf) != text {
			t.Fatalf("head %q, tail %q; text %q", kept.head, kept.tail.buf, text)
		}
		if rawName, rawOK := raw.stream(); rawName != got || rawOK != ok || ok && string(members["text"]) != `"`+string(asItStands)+`"` {
			t.Fatalf("%q %v %q as it stands; %s", rawName, rawOK, asItStands, content)
		}
	})
}

// repeats tells whether a key may come twice; encoding/json then takes the last, and folds case.
func repeats(content []byte) bool {
	lower := strings.ToLower(string(content))
	return strings.Count(lower, "name") > 1 || strings.Count(lower, "text") > 1 || strings.Contains(lower, `\u006`) || strings.Contains(lower, `\u007`) || strings.Contains(lower, "null")
}

// A cell that ends soon wakes whoever reads the journal once, with all of it; one that goes on, after a lull.
func TestReadersAreWokenOnce(t *testing.T) {
	busy := message("p", "status", map[string]string{"execution_state": "busy"})
	input := message("p", "execute_input", map[string]string{"code": "1"})
	result := message("p", "execute_result", map[string]string{})
	reply := message("p", "execute_reply", map[string]string{"status": "ok"})
	type step struct {
		ch    stream.Channel
		parts [][]byte
	}
	start := []step{{stream.IOPub, busy}, {stream.IOPub, input}, {stream.IOPub, result}}
	tests := map[string]struct {
		steps []step
		after time.Duration
		kept  int // of the steps, which wait for more
	}{
		"reply first":   {append(start[:3:3], step{stream.Shell, reply}, step{stream.IOPub, idle("p")}), 0, 0},
		"idle first":    {append(start[:3:3], step{stream.IOPub, idle("p")}, step{stream.Shell, reply}), 0, 0},
		"no end":        {start, lull, 0},
		"half an end":   {append(start[:3:3], step{stream.Shell, reply}), lull, 1},
		"a question":    {append(start[:3:3], step{stream.Stdin, message("p", "input_request", map[string]string{})}), 0, 0},
		"control":       {[]step{{stream.IOPub, busy}, {stream.Control, reply}}, 0, 0},
		"much":          {[]step{{stream.IOPub, streamMessage("p", "stdout", strings.Repeat("x", lullBytes))}}, 0, 0},
		"another's end": {append(start[:3:3], step{stream.IOPub, idle("q")}), lull, 0},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, 1<<20, 1<<20, 1<<10)
				c, _, _ := s.j.follow(nil)
				begun, batches := time.Now(), make(chan int, 10)
				go func() {
					defer close(batches)
					for n := 1; ; n++ {
						_, more, ok := c.read()
						if !ok {
							return
						}
						if !more {
							batches <- n
							n = 0
						}
					}
				}()
				synctest.Wait()
				for _, step := range tt.steps {
					s.g.message(step.ch, step.parts)
				}
				if n := <-batches; n != len(tt.steps)-tt.kept || time.Since(begun) != tt.after {
					t.Errorf("%d of %d messages after %v, want %v", n, len(tt.steps)-tt.kept, time.Since(begun), tt.after)
				}
				c.close()
				<-batches
			})
		})
	}
}
