//go:build linux

package shim

import (
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
	if got, want := s.out(), fmt.Sprintf(`[a stderr: %d bytes, 0 lines] a:err:"0123456789" a:status`, 7<<20-10); !strings.HasSuffix(got, want) {
		t.Fatalf("got …%s", got[max(0, len(got)-200):])
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
