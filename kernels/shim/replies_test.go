//go:build linux

package shim

import (
	"strconv"
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
	large := func(parent string) func(*script) {
		return func(s *script) { s.g.message(stream.Shell, replyMessage(parent, strings.Repeat("x", maxReplyBytes))) }
	}
	lossless := func(s *script) { s.g.replies.lossless = true }
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
	vain := func(n int) (steps []func(*script)) { // nobody reads, so there is nothing to wait for
		for range n {
			steps = append(steps, func(s *script) { s.g.pause(); s.g.resume(false) }, shown("."), pass(idleWait))
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
		"a large one":               {[]func(*script){large("a")}, `a:execute_reply`},
		"a large one after another": {[]func(*script){reply("a"), large("b")}, `a:execute_reply b:execute_reply`},
		"an earlier idle is lost":   {[]func(*script){reply("a"), iopub(idle("b")), reply("b")}, `b:status a:execute_reply b:execute_reply`},
		"the connection is lost":    {[]func(*script){reply("a"), func(s *script) { s.g.broken() }}, `a:execute_reply`},
		"its idle is lost":          {[]func(*script){reply("a"), pass(nearly)}, ``},
		"and nothing comes":         {[]func(*script){reply("a"), pass(idleWait)}, `a:execute_reply`},
		"and outputs come":          {[]func(*script){reply("a"), pass(nearly), shown("1"), pass(nearly)}, `a:out:"1"`},
		"and nothing more":          {[]func(*script){reply("a"), pass(nearly), shown("1"), pass(2 * idleWait)}, `a:out:"1" a:execute_reply`},
		"and outputs come on":       {append([]func(*script){reply("a")}, often(maxWaits-1)...), dots(maxWaits - 1)},
		"and outputs come for long": {append([]func(*script){reply("a")}, often(maxWaits)...), dots(maxWaits) + " a:execute_reply"},
		"and one waits for room":    {[]func(*script){reply("a"), func(s *script) { s.g.pause() }, pass(10 * idleWait)}, ``},
		"and one waits in vain":     {append([]func(*script){reply("a")}, vain(maxWaits)...), dots(maxWaits) + " a:execute_reply"},
		"and the kernel loses none": {[]func(*script){lossless, reply("a"), pass(maxWaits*idleWait - time.Millisecond)}, ``},
		"and is silent for ever":    {[]func(*script){lossless, reply("a"), pass(maxWaits * idleWait)}, `a:execute_reply`},
		"one after another":         {[]func(*script){reply("a"), pass(nearly), iopub(idle("a")), reply("b"), pass(nearly)}, `a:execute_reply a:status`},
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

// What a cell used is told though its idle is lost for good, with its reply.
func TestUsageOfACellWhoseIdleIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, 1<<20, 1<<20, 1<<10)
		var cpu time.Duration
		s.g.meter = newMeter(func() consumption { cpu += time.Second; return consumption{cpu: cpu} })
		s.g.meter.begin("a")
		s.g.message(stream.Shell, replyMessage("a", "ok"))
		time.Sleep(idleWait)
		synctest.Wait()
		if used := s.j.entries[0].event; used == nil || used.Used == nil || used.Used.Parent != "a" || used.Used.CPU <= 0 {
			t.Errorf("got %+v first, want what a used", used)
		}
		if got := s.out(); !strings.HasSuffix(got, "a:execute_reply") {
			t.Errorf("got %s, want the reply at the end", got)
		}
		s.g.end()
	})
}

// The timer of an earlier reply has run out, and its function waits for the gate, while that reply goes and another one comes.
func TestTimerOfAnEarlierReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript(t, 1<<20, 1<<20, 1<<10)
		s.g.message(stream.Shell, replyMessage("a", "ok"))
		s.g.mu.Lock()
		time.Sleep(idleWait)
		s.g.passReplies(s.g.replies.idle("a"))
		s.g.replies.keep("b", replyMessage("b", "ok"), s.g.overdue)
		s.g.mu.Unlock()
		synctest.Wait()
		if got := s.out(); got != "a:execute_reply" {
			t.Errorf("got %s, want the first reply", got)
		}
		s.g.end()
	})
}

// One more than may wait lets all pass, in their order.
func TestRepliesAreBounded(t *testing.T) {
	s := newScript(t, 1<<20, 1<<20, 1<<10)
	var want []string
	for i := range maxReplies + 1 {
		parent := strconv.Itoa(i)
		want = append(want, parent+":execute_reply")
		s.g.message(stream.Shell, replyMessage(parent, "ok"))
	}
	if got := s.out(); got != strings.Join(want, " ") {
		t.Errorf("got %s, want %s", got, want)
	}
}
