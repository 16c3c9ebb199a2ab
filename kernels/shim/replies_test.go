//go:build linux

package shim

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels/stream"
)

func replyMessage(parent, status string) [][]byte {
	return message(parent, "execute_reply", map[string]string{"status": status})
}

// A reply gets its number behind the outputs of its execution, and none waits for ever.
func TestRepliesWaitForTheirIdle(t *testing.T) {
	reply := func(parent string) func(*script) {
		return func(s *script) { s.g.message(stream.Shell, replyMessage(parent, "ok")) }
	}
	iopub := func(parts [][]byte) func(*script) { return func(s *script) { s.send(parts) } }
	shown := func(text string) func(*script) { return iopub(streamMessage("a", "stdout", text)) }
	pass := func(d time.Duration) func(*script) {
		return func(*script) { time.Sleep(d); synctest.Wait() }
	}
	often := func(n int) (steps []func(*script)) {
		for range n {
			steps = append(steps, shown("."), pass(idleWait))
		}
		return steps
	}
	dots := func(n int) string { return strings.TrimSpace(strings.Repeat(`a:out:"." `, n)) }
	const nearly = idleWait - time.Millisecond
	tests := map[string]struct {
		steps []func(*script)
		want  string
	}{
		"before its outputs":        {[]func(*script){reply("a"), shown("1"), shown("2"), iopub(idle("a"))}, `a:out:"1" a:out:"2" a:execute_reply a:status`},
		"behind its idle":           {[]func(*script){shown("1"), iopub(idle("a")), reply("a")}, `a:out:"1" a:status a:execute_reply`},
		"behind another one's idle": {[]func(*script){iopub(idle("a")), iopub(idle("x")), reply("a")}, `a:status x:status a:execute_reply`},
		"of two cells":              {[]func(*script){reply("a"), reply("b"), iopub(idle("a")), shown("late"), iopub(idle("b"))}, `a:execute_reply a:status a:out:"late" b:execute_reply b:status`},
		"one idle is lost":          {[]func(*script){reply("a"), reply("b"), iopub(idle("b"))}, `a:execute_reply b:execute_reply b:status`},
		"another one's idle":        {[]func(*script){reply("a"), iopub(idle("x"))}, `x:status`},
		"what is no execution":      {[]func(*script){func(s *script) { s.g.message(stream.Shell, message("a", "kernel_info_reply", nil)) }}, `a:kernel_info_reply`},
		"the kernel ends":           {[]func(*script){reply("a"), shown("1"), func(s *script) { s.g.end() }}, `a:out:"1" a:execute_reply`},
		"a large one":               {[]func(*script){func(s *script) { s.g.message(stream.Shell, replyMessage("a", strings.Repeat("x", maxReply))) }}, `a:execute_reply`},
		"its idle is lost":          {[]func(*script){reply("a"), pass(nearly)}, ``},
		"and nothing comes":         {[]func(*script){reply("a"), pass(idleWait)}, `a:execute_reply`},
		"and outputs come":          {[]func(*script){reply("a"), pass(nearly), shown("1"), pass(nearly)}, `a:out:"1"`},
		"and nothing more":          {[]func(*script){reply("a"), pass(nearly), shown("1"), pass(2 * idleWait)}, `a:out:"1" a:execute_reply`},
		"and outputs come on":       {append([]func(*script){reply("a")}, often(maxWaits-1)...), dots(maxWaits - 1)},
		"and outputs come for long": {append([]func(*script){reply("a")}, often(maxWaits)...), dots(maxWaits) + " a:execute_reply"},
		"and one waits for room":    {[]func(*script){reply("a"), func(s *script) { s.g.pause(1) }, pass(10 * idleWait)}, ``},
		"a second one as well":      {[]func(*script){reply("a"), pass(idleWait), reply("b"), pass(idleWait)}, `a:execute_reply b:execute_reply`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScript(t, 1<<20, 1<<20, 1<<10)
				for _, step := range tt.steps {
					step(s)
				}
				if got := s.out(); got != tt.want {
					t.Errorf("got %s, want %s", got, tt.want)
				}
				s.g.end()
			})
		})
	}
}

func TestRepliesAreBounded(t *testing.T) {
	s := newScript(t, 1<<20, 1<<20, 1<<10)
	for range maxReplies + 1 {
		s.g.message(stream.Shell, replyMessage("a", "ok"))
	}
	if got := s.out(); got != "a:execute_reply" {
		t.Errorf("of %d replies passed: %s", maxReplies+1, got)
	}
	s.g.end()
}
