//go:build linux

package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"cellblock/e2e/rig"
)

// session is what one session must be, and the client that works on it.
type session struct {
	c         *rig.Client
	owner, id string

	generation int             // of its kernel
	n          int             // what its kernel has counted
	files      map[string]bool // in its workspace; false: perhaps
	cells      []*cell         // that the server has, in order
	tokens     int
	// over is why its kernel is no more, as a pattern; "" while it lives. The next cell must be told.
	over string
	// unknown counts cells that a server took along before they were written down. Their kernel may have run them, and die of
	// it by mayDie.
	unknown int
	mayDie  string
}

// fate is what a fault may do to a session.
type fate struct {
	// dies is why its kernel ends, as a pattern; "": it lives.
	dies string
	// restarts: the server ends. Answers may be lost, and cells that waited are told that they never ran.
	restarts bool
	// away: nothing can be launched for a while, and the cell may be told so.
	away bool
	// full: nothing can be written.
	full bool
}

func (s *session) String() string { return s.owner + "'s " + s.id }

func (s *session) newCell(b body) *cell {
	s.tokens++
	return &cell{token: fmt.Sprintf("T-%s-%s-%d", s.owner, s.id, s.tokens), body: b}
}

// send runs a cell and waits for its answer. Begun hears when it prints its first line.
func (s *session) send(ctx context.Context, c *cell, f fate, begun func()) (rig.Result, error) {
	args := map[string]any{"session_id": s.id, "code": c.code(f.full), "wait_seconds": 60}
	return s.c.Call(ctx, "execute_python", args, func(message string) {
		if strings.Contains(message, "<"+c.token+" #") {
			begun()
		}
	})
}

// entry is a cell in list_executions.
type entry struct {
	Number     int     `json:"execution_id"`
	Status     string  `json:"status"`
	Code       string  `json:"code"`
	Generation int     `json:"generation"`
	Seconds    float64 `json:"seconds"`
}

// state is a session in list_sessions.
type state struct {
	ID          string  `json:"session_id"`
	State       string  `json:"state"`
	Executions  int     `json:"executions"`
	Generation  int     `json:"generation"`
	BusySeconds float64 `json:"busy_seconds"`
}

// list calls a tool that lists, and takes the list out of what it gives.
func list[T any](ctx context.Context, c *rig.Client, tool, name string, args map[string]any) ([]T, error) {
	r, err := c.Call(ctx, tool, args, nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(r.Structured)
	var fields map[string]json.RawMessage
	var listed []T
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err == nil {
		err = json.Unmarshal(fields[name], &listed)
	}
	if r.IsError || err != nil {
		return nil, fmt.Errorf("%s: %v: %s", tool, err, r.Text)
	}
	if strings.Contains(r.Text, " -") {
		return nil, fmt.Errorf("%s: a negative time: %s", tool, r.Text)
	}
	return listed, nil
}

func (s *session) entries(ctx context.Context, limit int) ([]entry, error) {
	return list[entry](ctx, s.c, "list_executions", "executions", map[string]any{"session_id": s.id, "limit": limit})
}

func (s *session) read(ctx context.Context, number int) (rig.Result, error) {
	return s.c.Call(ctx, "get_execution", map[string]any{"session_id": s.id, "execution_id": number, "wait_seconds": 60}, nil)
}

// settle finds out what became of a cell, which must be what its fate allows, and notes what follows for the session.
func (s *session) settle(ctx context.Context, c *cell, answer rig.Result, failed error, f fate) error {
	if failed != nil && !f.restarts {
		return fmt.Errorf("%s: the call failed: %w", c.token, failed)
	}
	e, err := s.find(ctx, c, answer, failed)
	if err == nil && e.Number == 0 && failed != nil {
		s.unknown, s.mayDie, s.files[c.token] = s.unknown+1, f.dies, false
	}
	if err != nil || e.Number == 0 {
		return err
	}
	c.number = e.Number
	r, err := s.read(ctx, c.number)
	if err != nil {
		return err
	}
	if got := phase(r); got != "ended" {
		return c.wrong(r, "it is %q", got)
	}
	c.text, c.answered = lasting(r.Text), failed == nil && phase(answer) == "ended"
	if first := lasting(answer.Text); c.answered && first != c.text {
		return fmt.Errorf("%s (%s) has another result than its call brought: %s", c.token, c.body.name, difference(first, c.text))
	}
	if e, err = s.find(ctx, c, answer, failed); err != nil {
		return err
	}
	if n := len(s.cells) + 1; e.Number != n {
		return c.wrong(r, "it is cell %d, not %d", e.Number, n)
	}
	s.cells = append(s.cells, c)
	if e.Seconds < 0 || e.Seconds > 120 {
		return c.wrong(r, "it took %v s", e.Seconds)
	}
	return s.judge(ctx, c, e, r, f)
}

// find looks for a cell among the last of its session. One whose call failed may never have reached the server.
func (s *session) find(ctx context.Context, c *cell, answer rig.Result, failed error) (entry, error) {
	entries, err := s.entries(ctx, 5)
	if err != nil {
		return entry{}, err
	}
	for _, e := range entries {
		if strings.Contains(e.Code, "'"+c.token+"'") {
			return e, nil
		}
	}
	if failed == nil && c.number == 0 && phase(answer) == "" {
		return entry{}, nil // refused
	}
	if failed == nil || c.number > 0 {
		return entry{}, fmt.Errorf("%s is lost: its answer was\n%s\nand there are %+v", c.token, answer.Text, entries)
	}
	return entry{}, nil
}

// judge holds a cell that has ended against what may have happened to it.
func (s *session) judge(ctx context.Context, c *cell, e entry, r rig.Result, f fate) error {
	switch e.Status {
	case "not run":
		if !f.restarts && !f.away && f.dies == "" {
			return c.wrong(r, "it did not run")
		}
		s.over = f.dies
		return nil
	case "error":
		if c.body.name != greedy.name || !strings.Contains(r.Text, "MemoryError") { // where a limit is the process's own
			return c.wrong(r, "it failed")
		}
		s.n++
		s.files[c.token] = true
		_, err := s.ran(c, e, r, fate{})
		return err
	case "ok":
		replaced, err := s.ran(c, e, r, f)
		if err != nil {
			return err
		}
		s.n++
		for ; s.unknown > 0 && !strings.Contains(r.Text, c.head(s.n)); s.unknown-- {
			s.n++
		}
		s.unknown = 0
		s.files[c.token] = true
		if !replaced { // else it has died before
			s.over = f.dies
		}
		whole, _, err := s.c.Read(ctx, fmt.Sprintf("cellblock://sessions/%s/executions/%d/output?limit=1000000", s.id, c.number))
		if err == nil && !c.shows(s.n, whole) {
			err = c.wrong(r, "as number %d of its kernel it shows in all\n%s\nand its result is", s.n, cut(whole))
		}
		if err == nil && c.body.name == files.name {
			err = s.listed(c, whole)
		}
		return err
	case "kernel died":
		if _, err := s.ran(c, e, r, fate{}); err != nil {
			return err
		}
		if f.dies == "" || !regexp.MustCompile(f.dies).MatchString(r.Text) {
			return c.wrong(r, "its kernel was to %s", f)
		}
		s.over = f.dies
		s.files[c.token] = strings.Contains(r.Text, c.head(s.n+1))
		return nil
	}
	return c.wrong(r, "it is %q", e.Status)
}

var lossPattern = regexp.MustCompile(`The kernel of session "([^"]+)" \(generation (\d+)\) ended (?:at|while no server ran, between) ` +
	`(\S+ \S+ UTC)(?: and \S+ \S+ UTC)?: (.*?)\. `)

// unwritten is what a server knows of a death that the one before it had no time to write down.
const unwritten = "its container or sandbox is gone"

// ran checks on which kernel a cell ran, and that it was told of every kernel that ended before, and of no other. One that
// was to die may have done so before the cell, which then has a new one.
func (s *session) ran(c *cell, e entry, r rig.Result, f fate) (replaced bool, err error) {
	if e.Generation > s.generation && s.over == "" {
		s.over = f.dies
	}
	var told, ended []int
	for _, loss := range lossPattern.FindAllStringSubmatch(r.Text, -1) {
		generation, _ := strconv.Atoi(loss[2])
		told = append(told, generation)
		if at, err := time.Parse("2006-01-02 15:04:05 MST", loss[3]); err != nil || time.Since(at).Abs() > 2*time.Hour {
			return false, c.wrong(r, "it is told of an end at %s", loss[3])
		}
		if loss[1] != s.id || s.over == "" || !regexp.MustCompile(s.over+"|"+unwritten).MatchString(loss[4]) {
			return false, c.wrong(r, "it is told that generation %d ended by %q, not %q", generation, loss[4], s.over)
		}
	}
	if replaced = s.over != ""; replaced {
		ended = []int{s.generation}
		s.generation, s.n, s.over, s.unknown = s.generation+1, 0, "", 0
	}
	if !slices.Equal(told, ended) {
		return false, c.wrong(r, "it is told that the generations %v ended, and %v did", told, ended)
	}
	if e.Generation != s.generation {
		return false, c.wrong(r, "it ran on generation %d, not %d", e.Generation, s.generation)
	}
	return replaced, nil
}

// listed holds the workspace's files against those that must be there.
func (s *session) listed(c *cell, whole string) error {
	lines := strings.Split(whole, "\n")
	if len(lines) < 4 || lines[2] != "[]" {
		return fmt.Errorf("%s: files have another content: %s", c.token, whole)
	}
	there := map[string]bool{}
	for name := range strings.SplitSeq(lines[1], ",") {
		if _, known := s.files[name]; !known {
			return fmt.Errorf("%s: there is %s, which no cell wrote", c.token, name)
		}
		there[name] = true
	}
	for name, certain := range s.files {
		if certain && !there[name] {
			return fmt.Errorf("%s: the file %s is lost", c.token, name)
		}
		if !there[name] {
			delete(s.files, name)
		}
	}
	for name := range there {
		s.files[name] = true
	}
	return nil
}

// reread holds cells that are known against what the server says of them now.
func (s *session) reread(ctx context.Context, cells []*cell) error {
	var wrong error
	for _, c := range cells {
		r, err := s.read(ctx, c.number)
		if now := lasting(r.Text); err == nil && now != c.text {
			err = fmt.Errorf("%s (%s) has another result now: %s", c.token, c.body.name, difference(c.text, now))
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// phase is where a cell is by the _meta of a result that is about it.
func phase(r rig.Result) string {
	about, _ := r.Meta["cellblock/execution"].(map[string]any)
	p, _ := about["phase"].(string)
	return p
}

func (f fate) String() string {
	if f.dies == "" {
		return "live"
	}
	return "die of " + f.dies
}

func (c *cell) wrong(r rig.Result, format string, args ...any) error {
	return fmt.Errorf("%s (%s): %s:\n%s", c.token, c.body.name, fmt.Sprintf(format, args...), cut(r.Text))
}

// difference shows where two texts part.
func difference(was, is string) string {
	at := 0
	for at < min(len(was), len(is)) && was[at] == is[at] {
		at++
	}
	around := func(text string) string { return text[max(0, at-100):min(len(text), at+200)] }
	return fmt.Sprintf("after %d bytes it was\n%s\nand is\n%s", at, around(was), around(is))
}

func cut(text string) string {
	const most = 600
	if len(text) > 2*most {
		return text[:most] + "\n…\n" + text[len(text)-most:]
	}
	return text
}
