package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

const (
	// patientWait is how long a call waits for its cell when its client hears how it goes on, quietWait when it does not:
	// many clients give up after 60 seconds, some after 30.
	patientWait = 45 * time.Second
	quietWait   = 25 * time.Second
	// maxWait is the longest that a call may ask for.
	maxWait = time.Hour
)

// errWaitOver is why a call returns before its cell has ended.
var errWaitOver = errors.New("the wait is over")

func defaultWait(r mcp.CallToolRequest) time.Duration {
	if r.Params.Meta != nil && r.Params.Meta.ProgressToken != nil {
		return patientWait
	}
	return quietWait
}

// waitArgument has no default in its schema: which one counts depends on the call, and some clients send what stands there.
func waitArgument(description string) mcp.ToolOption {
	return mcp.WithInteger("wait_seconds", mcp.Min(0.0), mcp.Max(maxWait.Seconds()), mcp.Description(description))
}

// view is what one call gets to see of a cell.
type view struct {
	shown *area
	// from is the output that it begins with, next the one that the next view would begin with.
	from, next int
	// err is nil when the cell has ended, and result is how; errWaitOver when it still runs, errAsks when it waits for the
	// answer to prompt.
	err    error
	result sessions.Result
	prompt *sessions.Prompt
}

// follow waits until a cell ends, the wait is over or the call ends, tells the caller meanwhile how it goes on, if he wants
// to know, and then collects what the cell has shown. It is collected in the end and not as it comes: what the session
// keeps of a cell is bounded, what a cell shows while it runs is not. Where the cell asks for input, ask is called, if there
// is one; from the answer on the call waits as long again.
func (s *service) follow(ctx context.Context, r mcp.CallToolRequest, e *sessions.Execution, from int, wait time.Duration, ask asker) view {
	v := view{shown: newArea(), from: from, next: from}
	v.shown.place = s.placeOf(ctx, e, from)
	p := s.startProgress(ctx, r, e)
	defer p.stop()
	at := from
	for asked := true; asked; {
		if p == nil && ask == nil {
			v.err = awaitEnd(ctx, e, wait)
			break
		}
		at, v.prompt, v.err = watch(ctx, e, at, wait, ask != nil, p.add)
		if asked = v.prompt != nil; asked {
			v.err = ask(ctx, e, v.prompt)
			asked = v.err == nil
		}
	}
	now, cancel := context.WithCancel(ctx)
	cancel()
	for out, err := range e.OutputsFrom(now, from) { // what is there now
		if v.next = out.Next; err != nil {
			break
		}
		v.shown.index = out.Index
		v.shown.add(out.Output)
	}
	if v.err == nil {
		v.result, v.err = e.Wait(context.WithoutCancel(ctx)) // it has ended
		v.shown.place.shift = shiftOf(e.Number(), v.result)
	}
	return v
}

// awaitEnd waits until the cell ends or the wait is over, which is an error. It does not wake for every output.
func awaitEnd(ctx context.Context, e *sessions.Execution, wait time.Duration) error {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	select {
	case <-e.Done():
	case <-ctx.Done():
	}
	select { // of two that are so it takes either
	case <-e.Done():
		return nil
	default:
		return context.Cause(ctx)
	}
}

// watch tells what a cell produces from an output on, until the cell ends, the wait is over, which is an error, or, if asked
// for, the cell waits for input. It returns where it stopped.
func watch(ctx context.Context, e *sessions.Execution, from int, wait time.Duration, prompts bool, tell func(kernels.Output)) (int, *sessions.Prompt, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, wait, errWaitOver)
	defer cancel()
	for out, err := range e.OutputsFrom(ctx, from) {
		if err != nil {
			return from, nil, err
		}
		from = out.Next
		tell(out.Output)
		if !prompts || out.Kind != kernels.OutputInput {
			continue
		}
		if prompt := e.Prompt(); prompt != nil {
			return from, prompt, nil
		}
	}
	return from, nil, nil
}

// soFar is the result of a call whose wait is over: what there is, where the cell is, and how to read on. Whoever is told
// of a cell can ask for it later, so it is in the store by then.
func (s *service) soFar(ctx context.Context, e *sessions.Execution, v view) *mcp.CallToolResult {
	content := s.outputs(ctx, e, v)
	if n := e.OOMKills(ctx); n > 0 {
		content = append(content, mcp.NewTextContent(killedRemark(n, s.boundsFor(ctx, e.Choice()).memory)+waitsInVain))
	}
	if err := e.Saved(context.Background()); err != nil {
		content = append(content, mcp.NewTextContent(unsavedRemark(err)))
	}
	content = append(content, mcp.NewTextContent(footer(e, whereNow(e)+"; read on with "+readOn(e, v.next))))
	return about(e, v, &mcp.CallToolResult{Content: content})
}

// waitsInVain is added where processes of a cell were killed that has not ended: a pool of multiprocessing waits for its own for ever.
const waitsInVain = " Code that waits for such a process, as multiprocessing.Pool does, waits in vain: interrupt_session stops it."

// whereNow says where a cell is that has not ended.
func whereNow(e *sessions.Execution) string {
	info := e.Info()
	switch {
	case info.Phase == sessions.PhaseQueued && info.Position > 0:
		return fmt.Sprintf("waiting for %s before it in the session", words.Count(int64(info.Position), "cell"))
	case info.Phase == sessions.PhaseQueued && info.Crowded:
		return crowded
	case info.Phase == sessions.PhaseQueued && info.Starting:
		return "waiting for the kernel, which is starting"
	case info.Phase == sessions.PhaseQueued:
		return aboutToRun
	case e.Prompt() != nil:
		return waitsForUser
	}
	return fmt.Sprintf("still running, %s so far", words.Took(info.Duration))
}

// crowded is where a cell is that has only its turn to wait for.
const crowded = "waiting for its turn: the server runs as many cells as it may"

// aboutToRun is where a cell is that comes next in a kernel that is there.
const aboutToRun = "about to run"

// waitsForUser is where a cell is that has called input().
const waitsForUser = "waiting for the user's answer to its input()"

// readOn is the call that reads the rest of a cell.
func readOn(e *sessions.Execution, since int) string {
	if since == 0 {
		return fmt.Sprintf("get_execution(session_id=%q, execution_id=%d)", e.SessionID(), e.Number())
	}
	return fmt.Sprintf("get_execution(session_id=%q, execution_id=%d, since=%d)", e.SessionID(), e.Number(), since)
}

// notRun is the result of a call whose cell never ran, or that ended before its cell.
func (s *service) notRun(ctx context.Context, e *sessions.Execution, v view) *mcp.CallToolResult {
	err, how := v.err, "no result"
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, transport.ErrShutdown):
		how = "its call ended with the server"
		err = fault.New(fault.Unavailable, "the server is shutting down, so this call ends before its cell does").
			WithHint("when it is back, %s says what became of the cell", readOn(e, v.next))
	case cause != nil:
		err = fault.New(fault.Cancelled, "the call ended before its cell did (%w); the cell is being stopped", cause).
			WithHint("what it has printed can be read with %s", readOn(e, 0))
	}
	result := toolError(err)
	result.Content = append(s.outputs(ctx, e, v), append(result.Content, mcp.NewTextContent(footer(e, how)))...)
	return about(e, v, result)
}

// ExecutionMeta is the key in a result's _meta under which programs find which cell it is about.
const ExecutionMeta = "cellblock/execution"

// about tells programs which cell a result is about, whether it has ended, where to read on, which files it wrote, and whether its first
// block is the server's own word on what happened before.
func about(e *sessions.Execution, v view, result *mcp.CallToolResult) *mcp.CallToolResult {
	phase, _ := e.Phase()
	switch {
	case v.err == nil:
		phase = sessions.PhaseEnded
	case errors.Is(v.err, errWaitOver) && phase == sessions.PhaseEnded: // since; this is not its result
		phase = sessions.PhaseRunning
	}
	said := map[string]any{"session_id": e.SessionID(), "execution_id": e.Number(), "phase": phase, "since": v.next}
	if noted(e, v) {
		said["noted"] = true
	}
	if wrote := v.result; len(wrote.Files) > 0 {
		said["files"], said["more_files"] = wrote.Files, wrote.MoreFiles
	}
	result.Meta = &mcp.Meta{AdditionalFields: map[string]any{ExecutionMeta: said}}
	return result
}
