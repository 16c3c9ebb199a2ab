package sessions

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellblock/images"
	"cellblock/kernels"
)

type fakeClient struct {
	p    *fakeProvisioner
	dir  string // the workspace
	late func(kernels.Output, string) bool
	done chan struct{}
	// server has launched the kernel.
	server int64
	born   time.Time

	mu       sync.Mutex
	err      error
	current  *fakeCell
	cells    []*fakeCell
	restarts int
	frozen   atomic.Bool // it does not answer

	interrupts atomic.Int64
	egress     atomic.Pointer[kernels.ServeTunnel]
}

func (c *fakeClient) Ready(ctx context.Context) error {
	if c.frozen.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if err := c.p.readyErr.Load(); err != nil {
		return *err
	}
	return c.Err()
}

func (c *fakeClient) ServeEgress(serve kernels.ServeTunnel) { c.egress.Store(&serve) }

func (c *fakeClient) Info() kernels.KernelInfo {
	return kernels.KernelInfo{LanguageInfo: kernels.LanguageInfo{Name: "fake", FileExtension: ".fake"}}
}

func (c *fakeClient) Stats(ctx context.Context) (kernels.Stats, error) {
	return kernels.Stats{Starved: time.Since(c.born) * c.p.starving / 100, CPU: time.Since(c.born) / 2, Memory: 64 << 20}, c.Ready(ctx)
}

func (c *fakeClient) Ping(ctx context.Context) error { return c.Ready(ctx) }

func (c *fakeClient) Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error) {
	return c.execute(ctx, r, c.server)
}

// Complete completes any code by its own text and "!"; "hang" is answered when the kernel is interrupted, and not in time.
func (c *fakeClient) Complete(ctx context.Context, code string, cursor int) (kernels.Completion, error) {
	if code == "hang" {
		<-ctx.Done()
		return kernels.Completion{}, ctx.Err()
	}
	metadata := []byte(`{"_jupyter_types_experimental":[{"text":"` + code + `!","type":"function"}]}`)
	return kernels.Completion{Matches: []string{code + "!"}, CursorEnd: cursor, Metadata: metadata}, nil
}

// Inspect says of any code that it is what it is.
func (c *fakeClient) Inspect(_ context.Context, code string, _, _ int) (kernels.Inspection, error) {
	text, _ := json.Marshal("\x1b[31m" + code)
	return kernels.Inspection{Found: true, Data: map[string]json.RawMessage{"text/plain": text}}, nil
}

// execute is Execute of a server's client.
func (c *fakeClient) execute(ctx context.Context, r kernels.ExecuteRequest, server int64) (cell, error) {
	if c.p.unplugged.Load() || server != c.p.killed.Load() {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.done:
			return nil, c.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return nil, c.err
	}
	r.Code = cmp.Or(r.UserExpressions["v"], r.Code)
	e := &fakeCell{id: r.MsgID, code: r.Code, mayAsk: r.AllowStdin, signals: make(chan string, 1), replies: make(chan string, 1), changed: make(chan struct{}), done: make(chan struct{})}
	if c.current != nil && !c.current.over() {
		panic("two cells at once on one kernel")
	}
	c.current = e
	c.cells = append(c.cells, e)
	go c.play(e)
	return e, nil
}

// play does what a cell's code says: "sleep 3s" (ends early when interrupted), "slow 3s" (ends
// so long after it was interrupted), "save", "load" and "checkpoint CELL" (images.Language), "stubborn" (only a restart ends it), "steps N",
// "children" (ends when its children are killed), "die", "fail", "print N", "ask WORDS" (see ask); anything else is printed.
func (c *fakeClient) play(e *fakeCell) {
	word, rest, _ := strings.Cut(e.code, " ")
	switch word {
	case "sleep":
		d, _ := time.ParseDuration(rest)
		e.print("sleeping\n")
		select {
		case <-time.After(d):
			e.end(kernels.Result{Status: kernels.StatusOK})
		case <-e.awaitSignal("interrupt"):
			e.fail("KeyboardInterrupt")
		case <-e.done:
		}
	case "slow": // to end when it is interrupted
		d, _ := time.ParseDuration(rest)
		select {
		case <-e.awaitSignal("interrupt"):
		case <-e.done:
			return
		}
		select {
		case <-time.After(d):
			e.fail("KeyboardInterrupt")
		case <-e.done:
		}
	case "children":
		select {
		case <-e.awaitSignal("kill_children"):
			e.end(kernels.Result{Status: kernels.StatusOK})
		case <-e.done:
		}
	case "steps": // N lines, a second apart
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			e.print(fmt.Sprintf("line %d\n", i))
			select {
			case <-time.After(time.Second):
			case <-e.done:
				return
			}
		}
		e.end(kernels.Result{Status: kernels.StatusOK})
	case "stubborn":
		<-e.done
	case "save":
		select {
		case <-time.After(c.p.saving):
			_ = os.WriteFile(filepath.Join(c.dir, images.SavedFile), nil, 0o600)
			e.end(kernels.Result{Status: kernels.StatusOK, UserExpressions: expressionValue(`{"saved":1}`)})
		case <-e.awaitSignal("interrupt"):
			e.fail("KeyboardInterrupt")
		case <-e.done:
		}
	case "checkpoint":
		_ = os.WriteFile(filepath.Join(c.dir, images.SavedFile), fmt.Appendf(nil, "{\"cell\":%s}\nand so on", rest), 0o600)
		e.end(kernels.Result{Status: kernels.StatusOK, UserExpressions: expressionValue(fmt.Sprintf(`{"took":%g}`, c.p.saving.Seconds()))})
	case "load":
		answer, file := c.p.loads, filepath.Join(c.dir, images.SavedFile)
		if saved, err := os.ReadFile(file); err != nil {
			answer = `{"why":"there is no file"}`
		} else if len(saved) == 0 {
			_ = os.Remove(file)
		}
		e.end(kernels.Result{Status: kernels.StatusOK, UserExpressions: expressionValue(answer)})
	case "die":
		c.die(kernels.Death{Cause: "the kernel was killed by SIGKILL", OOM: rest == "oom", Time: time.Now()})
	case "unsent": // the first N kernels die without having had it
		var n int64
		fmt.Sscan(rest, &n)
		if e.unsent = c.p.unsent.Add(1) <= n; e.unsent {
			c.die(kernels.Death{Cause: "the kernel was killed by SIGKILL", Time: time.Now()})
			return
		}
		e.print("at last")
		e.end(kernels.Result{Status: kernels.StatusOK})
	case "vanish": // the kernel dies before it says that it has it
		e.silent = true
		c.die(kernels.Death{Cause: "the kernel was killed by SIGKILL", Time: time.Now()})
	case "ask":
		c.ask(e, strings.Fields(rest))
	case "fail":
		e.fail("ValueError")
	case "print":
		var n int
		fmt.Sscan(rest, &n)
		for i := range n {
			e.print(fmt.Sprintf("line %d\n", i))
		}
		e.end(kernels.Result{Status: kernels.StatusOK})
	default:
		e.print(e.code)
		e.end(kernels.Result{Status: kernels.StatusOK})
	}
}

// expressionValue is the reply's user_expressions of an expression whose value has this description.
func expressionValue(text string) json.RawMessage {
	raw, _ := json.Marshal(map[string]any{"v": map[string]any{"status": "ok", "data": map[string]any{images.VariablesType: text}}})
	return raw
}

// ask prompts once for each word, and prints the answers; a word in brackets is a password's prompt.
func (c *fakeClient) ask(e *fakeCell, words []string) {
	for _, word := range words {
		e.put(kernels.Output{Kind: kernels.OutputInput, Text: word, Password: word[0] == '('})
		select {
		case line := <-e.replies:
			e.print(word + line + "\n")
		case <-e.awaitSignal("interrupt"):
			e.fail("KeyboardInterrupt")
			return
		case <-e.done:
			return
		}
	}
	e.end(kernels.Result{Status: kernels.StatusOK})
}

// signal is what a server that has been killed sends no more.
func (c *fakeClient) signal(name string, server int64) {
	if server != c.p.killed.Load() {
		return
	}
	c.mu.Lock()
	e := c.current
	c.mu.Unlock()
	if e != nil {
		select {
		case e.signals <- name:
		default:
		}
	}
}

func (c *fakeClient) Interrupt(context.Context) error {
	c.interrupts.Add(1)
	c.signal("interrupt", c.server)
	return nil
}

func (c *fakeClient) KillChildren(context.Context) (int, error) {
	c.signal("kill_children", c.server)
	return 1, nil
}

func (c *fakeClient) Restart(context.Context, time.Duration) error {
	if c.p.restartErr != nil {
		return c.p.restartErr
	}
	time.Sleep(c.p.restartTime)
	c.mu.Lock()
	c.restarts++
	e := c.current
	c.mu.Unlock()
	if e != nil {
		e.end(kernels.Result{Status: kernels.StatusDied, Death: &kernels.Death{Cause: "restart", Asked: true}})
	}
	return nil
}

func (c *fakeClient) die(d kernels.Death) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return
	}
	c.err = &kernels.DeathError{Death: d}
	close(c.done) // before the cell ends, as whoever sees that end of a real client's also sees this
	if c.current != nil {
		c.current.end(kernels.Result{Status: kernels.StatusDied, Death: &d})
	}
}

func (c *fakeClient) Done() <-chan struct{} { return c.done }
func (c *fakeClient) Err() error            { c.mu.Lock(); defer c.mu.Unlock(); return c.err }
func (c *fakeClient) Close() error          { return nil } // the kernel goes on

// There was no earlier client: see adoptingClient.
func (c *fakeClient) Adopted(string) (cell, bool)        { return nil, false }
func (c *fakeClient) Since(string) (time.Duration, bool) { return 0, false }
func (c *fakeClient) CaughtUp() <-chan struct{}          { return begun }
func (c *fakeClient) ReleaseLate(string, uint64)         {}

// adoptingClient is the client of a kernel that an earlier process has launched. The shim behind it has acknowledged
// nothing: all that a cell has put out comes again.
type adoptingClient struct {
	*fakeClient
	server int64
}

func (c adoptingClient) Execute(ctx context.Context, r kernels.ExecuteRequest) (cell, error) {
	return c.execute(ctx, r, c.server)
}

func (c adoptingClient) Interrupt(context.Context) error {
	c.signal("interrupt", c.server)
	return nil
}

func (c adoptingClient) KillChildren(context.Context) (int, error) {
	c.signal("kill_children", c.server)
	return 1, nil
}

func (c adoptingClient) Adopted(msgID string) (cell, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range c.cells {
		if e.id == msgID {
			return &adoptedCell{fakeCell: e}, true
		}
	}
	// It was never sent: a fence would tell.
	lost := &fakeCell{id: msgID, changed: make(chan struct{}), done: make(chan struct{}), result: kernels.Result{Status: kernels.StatusIncomplete}}
	close(lost.done)
	return &adoptedCell{fakeCell: lost, unseen: true}, true
}

// adoptedCell is read from its beginning again.
type adoptedCell struct {
	*fakeCell
	at     int
	unseen bool
}

func (e *adoptedCell) Next(ctx context.Context) (kernels.Output, error) { return e.next(ctx, &e.at) }

func (e *adoptedCell) Begun() <-chan struct{} {
	if e.unseen {
		return nil
	}
	return begun
}
