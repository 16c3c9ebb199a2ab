package browser

import (
	"fmt"
	"testing"
)

// Who looks at another tab sees by the title what a cell does: that it runs, that it asks, and how it ended, until he comes back.
func TestTitle(t *testing.T) {
	s := shared(t)
	c := s.mcp(t)
	s.python(t, c, "title", "import os, time")
	p := s.signIn(t)
	p.open("/s/title")
	looks := func(looks bool) {
		t.Helper()
		eval[bool](p, fmt.Sprintf("(Object.defineProperty(document, 'hidden', {configurable: true, value: %v}), document.dispatchEvent(new Event('visibilitychange')))", !looks))
	}
	until := func(want string) {
		t.Helper()
		p.until("document.title === " + quoted(want))
	}
	until("title · cellblock")
	for _, tt := range []struct {
		code, running, ended string
		looks                bool
	}{
		{untilLetGo + "\nos.remove('go')", "● title · cellblock", "✓ title · cellblock", false},
		{untilLetGo + "\nos.remove('go'); 1/0", "● title · cellblock", "✗ title · cellblock", false},
		{untilLetGo + "\nos.remove('go')", "● title · cellblock", "title · cellblock", true},
	} {
		looks(tt.looks)
		s.start(t, c, "title", tt.code)
		until(tt.running)
		letGo(t, c, "title")
		until(tt.ended)
		looks(true)
		until("title · cellblock")
	}
	p.desk("title")
	p.write("input('Who? ')")
	p.key("Enter", shift)
	until("? title · cellblock")
	p.until("document.activeElement.id === 'prompt-line'")
	p.key("Enter")
	until("title · cellblock")
}
