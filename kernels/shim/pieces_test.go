//go:build linux

package shim

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"cellblock/kernels/shim/channels"
)

// largeMessages is a link whose large messages come out of a script's journal.
func largeMessages(s *script) *link {
	return &link{gate: s.g, drops: newDrops(s.j), trimmer: new(trimmer)}
}

// feed gives a message's content to a link in pieces of n bytes.
func feed(l *link, parts [][]byte, n int, reason string) {
	text := l.Text(parts[:3])
	for content := parts[3]; len(content) > 0; {
		m := min(n, len(content))
		_, _ = text.Write(content[:m])
		content = content[m:]
	}
	text.End(reason)
}

// A message of many megabytes becomes many of one, and nothing of it is missing; the limit holds for them as for all.
func TestPieces(t *testing.T) {
	s := newScript(t, 1<<40, 1<<40, 1000)
	l := largeMessages(s)
	text := strings.Repeat("x€\n😀", 500_000)
	for _, size := range []int{7, 16 << 10} {
		feed(l, streamMessage("a", "stdout", text), size, "")
		var got strings.Builder
		c, next, _ := s.j.follow(nil)
		for c.next < next {
			e, _, _ := c.read()
			piece := printedText(t, e)
			if len(piece) > pieceSize+16<<10 || !utf8.ValidString(piece) || strings.ContainsRune(piece, utf8.RuneError) {
				t.Fatalf("a piece of %d bytes", len(piece))
			}
			got.WriteString(piece)
		}
		if got.String() != text {
			t.Fatalf("%d bytes, want %d", got.Len(), len(text))
		}
		_, _ = s.j.ack(next - 1)
	}
	s = newScript(t, 1<<40, 3<<20, 10)
	feed(largeMessages(s), streamMessage("a", "stderr", strings.Repeat("0123456789", 1<<20)), 1000, "")
	s.send(idle("a"))
	passed, rest, _ := strings.Cut(s.out(), "[")
	head := 0
	for digit := range strings.SplitSeq("0123456789", "") {
		head += strings.Count(passed, digit)
	}
	var left int
	if _, err := fmt.Sscanf(rest, `a stderr: %d bytes, 0 lines] a:err:"0123456789" a:status`, &left); err != nil {
		t.Fatalf("%v: %.200s", err, rest)
	}
	if head > 3<<20 || head < 3<<20-1000 || head+left+10 != 10<<20 {
		t.Fatalf("%d bytes passed, and %d were left out", head, left)
	}
}

func printedText(t *testing.T, e entry) string {
	t.Helper()
	text := strings.TrimPrefix(describe(e), `a:out:`)
	s, err := strconv.Unquote(text) // fmt.Sscanf takes a minute for a few megabytes, beside the race detector
	if err != nil {
		t.Fatalf("%.100s: %v", text, err)
	}
	return s
}

// What goes wrong with a large message is reported, and what was read of it before is not lost.
func TestPiecesOfBrokenMessages(t *testing.T) {
	for name, tt := range map[string]struct {
		content, reason, want string
	}{
		"wrong signature": {`{"name":"stdout","text":"ab"}`, channels.ReasonSignature, `a:out:"ab" dropped:wrong signature:29`},
		"cut short":       {`{"name":"stdout","text":"ab`, channels.ReasonCutShort, `a:out:"ab" dropped:cut short:27`},
		"not whole":       {`{"name":"stdout","text":"ab`, "", `a:out:"ab" dropped:not a Jupyter message:27`},
		"name last":       {`{"text":"` + strings.Repeat("x", 2*pieceSize) + `","name":"stdout"}`, "", `dropped:not a Jupyter message:2097179`},
		"no name":         {`{"text":"ab"}`, "", `dropped:not a Jupyter message:13`},
		"no JSON":         {`hello`, "", `dropped:not a Jupyter message:5`},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScript(t, 1<<40, 1<<40, 10)
			l := largeMessages(s)
			parts := streamMessage("a", "stdout", "")
			parts[3] = []byte(tt.content)
			feed(l, parts, 1<<10, tt.reason)
			var got []string
			c, next, _ := s.j.follow(nil)
			for c.next < next {
				e, _, _ := c.read()
				if e.event != nil && e.event.Dropped != nil {
					d := e.event.Dropped
					if d.Parent != "a" || d.MsgType != "stream" || d.Channel != "iopub" {
						t.Errorf("%+v", d)
					}
					got = append(got, fmt.Sprintf("dropped:%s:%d", d.Reason, d.Bytes))
				} else {
					got = append(got, describe(e))
				}
			}
			l.drops.flush()
			l.trimmer.close()
			if got := strings.Join(got, " "); got != tt.want {
				t.Fatalf("got %.200s, want %s", got, tt.want)
			}
		})
	}
}

// FuzzCutRaw: a text is cut into two that say the same together, and of which the first is whole.
func FuzzCutRaw(f *testing.F) {
	for _, text := range []string{"", `a`, `\n`, `\`, `\\`, `\\\`, `\u00e`, `x\ud83d`, `x\ud83d\`, `\ud83d\ude0`, `\\ud83d`, `\ud83d\ud83d`, "é", "\xc3", "€"[:2], `\"`} {
		f.Add(text, `0\n\ude00`)
	}
	f.Fuzz(func(t *testing.T, text, rest string) {
		var whole, head, tail string
		if json.Unmarshal([]byte(`"`+text+rest+`"`), &whole) != nil {
			return // not the beginning of a text
		}
		n := cutRaw([]byte(text))
		if json.Unmarshal([]byte(`"`+text[:n]+`"`), &head) != nil || json.Unmarshal([]byte(`"`+text[n:]+rest+`"`), &tail) != nil || head+tail != whole {
			t.Fatalf("%q is cut to %q and %q", text, text[:n], text[n:])
		}
		if len(text)-n > 12 {
			t.Fatalf("%d bytes are kept back", len(text)-n)
		}
	})
}
