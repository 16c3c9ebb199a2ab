//go:build linux

package shim

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels/stream"
)

// shut is links of which nothing but the end is wanted.
type shut struct{ links }

func (shut) Close() error { return nil }

// Output waits for room only where its kernel waits for it, and only what would pass then: what a kernel says meanwhile is lost otherwise.
func TestMessageWaitsForRoom(t *testing.T) {
	display := func(parent string, n int) [][]byte {
		return message(parent, "display_data", map[string]any{"data": map[string]string{"text/plain": strings.Repeat("x", n)}})
	}
	for name, tt := range map[string]struct {
		waits bool
		parts [][]byte
		want  time.Duration
	}{
		"a display":                    {true, display("a", 100), time.Second},
		"of a kernel that waits not":   {false, display("a", 100), 0},
		"of a cell that is at its end": {true, display("over", 100), 0},
		"text":                         {true, streamMessage("a", "stdout", "text"), 0},
		"the end":                      {true, idle("a"), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, 10_000, 5_000, 10)
				s.send(display("over", 6_000))
				c, _, _ := s.j.follow(nil)
				defer c.close()
				fill(s.j, 1, 20_000)
				ctx, cancel := context.WithCancel(t.Context())
				l := &link{links: shut{}, gate: s.g, drops: newDrops(s.j), trimmer: new(trimmer), waits: tt.waits, ctx: ctx, cancel: cancel}
				start := time.Now()
				end := time.AfterFunc(time.Second, func() { _ = l.Close() })
				defer end.Stop()
				l.Message(stream.IOPub, tt.parts)
				if got := time.Since(start); got != tt.want {
					t.Errorf("it waited %v, want %v", got, tt.want)
				}
			})
		})
	}
}
