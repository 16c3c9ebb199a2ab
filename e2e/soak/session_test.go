package soak

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"cellblock/e2e/rig"
)

// session is one session under load and the client that works on it. Every cell that it runs prints a token of its own and
// how many cells the kernel has seen, so that whatever is lost, doubled or in the wrong place shows.
type session struct {
	c         *rig.Client
	owner, id string
	handshake bool
	tokens    []string // of the cells, in order
	// lost is the cells before the last restart of the kernel, restarts how many there were: on a machine that is very
	// busy an interrupted cell may take longer to stop than the ladder waits.
	lost, restarts int
}

// token names the next cell, among all of them.
func (s *session) token() string {
	token := fmt.Sprintf("T-%s-%s-%d", s.owner, s.id, len(s.tokens)+1)
	s.tokens = append(s.tokens, token)
	return token
}

// cell is one cell: its token, its place in its session, and its code, which begins by saying both.
type cell struct {
	s      *session
	token  string
	number int
	code   string
}

func (s *session) newCell(code string) cell {
	token := s.token()
	c := cell{s: s, token: token, number: len(s.tokens)}
	c.code = fmt.Sprintf("n = globals().get('n', 0) + 1; print(f'<%s #{n}>', flush=True)\n%s",
		token, strings.ReplaceAll(code, "TOKEN", token))
	return c
}

// head is the first line of what the cell prints.
func (c cell) head() string { return fmt.Sprintf("<%s #%d>", c.token, c.number-c.s.lost) }

// run runs the cell and waits for it. A told that is not nil hears of its progress.
func (c cell) run(ctx context.Context, more map[string]any, told func(string)) (rig.Result, error) {
	args := map[string]any{"code": c.code, "session_id": c.s.id, "wait_seconds": 300}
	for name, value := range more {
		args[name] = value
	}
	return c.s.c.Call(ctx, "execute_python", args, told)
}

// begun returns a channel that closes when the cell's own first line has been told, and the told for it.
func (c cell) begun() (<-chan struct{}, func(string)) {
	seen := make(chan struct{})
	closed := false
	return seen, func(message string) { // one at a time: they come over one stream
		if !closed && strings.Contains(message, c.head()) {
			closed = true
			close(seen)
		}
	}
}

// again reads the cell's result anew.
func (c cell) again(ctx context.Context) (rig.Result, error) {
	return c.s.c.Call(ctx, "get_execution", map[string]any{"session_id": c.s.id, "execution_id": c.number, "wait_seconds": 60}, nil)
}

var anyToken = regexp.MustCompile(`T-[a-z]+-s[0-9]+-[0-9]+`)

// check holds a result against what the cell must have given: its own first line, its status, each of the parts, in this
// order, and nothing of another cell.
func (c cell) check(r rig.Result, status string, parts ...string) error {
	if (status != "ok") != r.IsError {
		return c.wrong(r, "isError is %t", r.IsError)
	}
	at := 0
	for _, part := range append([]string{c.head()}, parts...) {
		i := strings.Index(r.Text[at:], part)
		if i < 0 {
			return c.wrong(r, "%q is not there, or not at its place", part)
		}
		at += i + len(part)
	}
	footer := fmt.Sprintf("[session %s · cell %d · %s · ", c.s.id, c.number, status)
	if !strings.Contains(r.Text[at:], footer) {
		return c.wrong(r, "no %q at its end", footer)
	}
	for _, found := range anyToken.FindAllString(r.Text, -1) {
		if found != c.token {
			return c.wrong(r, "it holds %s of another cell", found)
		}
	}
	if strings.Contains(r.Text, "The kernel was restarted because the cell did not stop") {
		c.s.lost = c.number
		c.s.restarts++
	}
	return nil
}

func (c cell) wrong(r rig.Result, format string, args ...any) error {
	text := r.Text
	if len(text) > 2000 {
		text = text[:1000] + "\n…\n" + text[len(text)-1000:]
	}
	return fmt.Errorf("%s: %s:\n%s", c.token, fmt.Sprintf(format, args...), text)
}
