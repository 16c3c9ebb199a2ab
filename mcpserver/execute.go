package mcpserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/images"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
	"cellblock/mcpserver/transport"
	"cellblock/notebook"
	"cellblock/sessions"
)

// titleOf is how people write a language, "" for none.
func (s *service) titleOf(language string) string {
	return cmp.Or(s.Sessions.Config().Runtimes[language].Title, images.Title(language))
}

// idleEnd says, to go after "until close_session", that a kernel nobody uses stops.
func idleEnd(cfg sessions.Config, language string) string {
	timeout := cfg.IdleTimeoutOf(language)
	if timeout <= 0 {
		return ""
	}
	stay := "files stay"
	if cfg.SavesVariables(language) {
		stay = "files stay, what can be saved comes back"
	}
	return " or " + words.Length(timeout) + " without use (" + stay + ")"
}

// executeTool runs cells of a language. One such tool of a list explains at length what all of them do; every model reads
// all of them with every call.
func (s *service) executeTool(language string) toolSpec {
	cfg := s.Sessions.Config()
	title := s.titleOf(language)
	t := toolSpec{
		name: executePrefix + language, title: "Run " + title, destructive: true,
		handle: func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return s.execute(ctx, r, language)
		},
	}
	note := cfg.Runtimes[language].Note
	if note != "" {
		note = " " + terminal.Plain(note)
	}
	if language != s.Languages[0] {
		t.description = "Run " + title + " code in a persistent kernel; its sessions are its own." + note
		t.input = []mcp.ToolOption{
			mcp.WithString("code", mcp.Required(), mcp.Description(title+" source")),
			mcp.WithString("session_id"),
			mcp.WithInteger("timeout_seconds"),
			mcp.WithInteger("wait_seconds", mcp.Description("Return after this time; it goes on")),
			s.profileArgument(),
		}
		t.input = append(t.input, s.imageArguments()...)
		return t
	}
	t.description = "Run " + title + " code in a persistent Jupyter kernel: variables, imports and files stay between calls " +
		"with the same session_id, until close_session" + idleEnd(cfg, language) + "." + note + " " + s.usualNote() + ". It sees only the " +
		"session's files, in /workspace. Long output is cut in the middle."
	t.input = []mcp.ToolOption{
		mcp.WithString("code", mcp.Required(), mcp.MinLength(1), mcp.Description(title+" source, as in one notebook cell")),
		mcp.WithString("session_id", mcp.Pattern(`^[A-Za-z0-9._-]{1,64}$`),
			mcp.Description("Any name; a new one starts a kernel. Without it one is made and returned, "+
				"and ends after "+words.Length(cfg.MintedIdle)+" unless used again")),
		mcp.WithInteger("timeout_seconds", mcp.Min(1.0), mcp.Max(cfg.LongestTimeout().Seconds()),
			mcp.DefaultNumber(cfg.DefaultTimeout.Seconds()), mcp.Description("Interrupt the code after this time")),
		waitArgument("Return after this time; the code goes on: get_execution reads the rest"),
		s.describeProfiles(),
	}
	t.input = append(t.input, s.imageArguments(mcp.Description("Image of a new session"))...)
	return t
}

// execute runs one cell and waits for its end, for as long as the call wants to. While it waits, the end of the call is
// the end of the cell; afterwards the cell is nobody's.
func (s *service) execute(ctx context.Context, r mcp.CallToolRequest, language string) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "code", "session_id", "timeout_seconds", "wait_seconds", "profile", "image")
	id := a.text("session_id")
	if v, given := a.value("session_id"); given && id == "" && string(v) == `""` {
		a.fail(`session_id: is empty; give a name, or leave it out for a new session`)
	}
	request := sessions.Request{
		SessionID: id, Language: language, Code: a.required("code"), Profile: a.text("profile"), Image: a.text("image"),
		Timeout: a.seconds("timeout_seconds", s.Sessions.Config().LongestTimeout()), Caller: clientName(ctx),
	}
	wait := a.wait(defaultWait(r))
	owner, err := s.caller(ctx, a)
	if err != nil {
		return toolError(err), nil
	}
	return s.runCell(ctx, r, owner, request, wait)
}

// runCell runs the cell of a call that is in order.
func (s *service) runCell(ctx context.Context, r mcp.CallToolRequest, owner sessions.Owner, request sessions.Request, wait time.Duration) (*mcp.CallToolResult, error) {
	ask := askerFor(ctx, wait)
	request.Attended, request.Permit = ask != nil, s.permit(ctx)
	e, err := s.begin(ctx, owner, r, request)
	if err != nil {
		return toolError(err), nil
	}
	if wait > 0 {
		defer bind(ctx, e)()
	}
	v := s.follow(ctx, r, e, 0, wait, ask)
	if errors.Is(v.err, errAsks) {
		return s.asks(owner, e, v.prompt), nil
	}
	if !gaveUp(ctx) { // then the cell is interrupted, and hears of nothing else
		e.Unattend()
	}
	return s.ended(ctx, e, v), nil
}

// begin starts a call's cell, or finds the one that the call brings an answer for.
func (s *service) begin(ctx context.Context, owner sessions.Owner, r mcp.CallToolRequest, request sessions.Request) (*sessions.Execution, error) {
	if answers(r) {
		return s.resume(ctx, owner, r, request.Language)
	}
	return s.Sessions.Execute(ctx, owner, request)
}

// bind cancels a cell when its call is cancelled, until it is released.
func bind(ctx context.Context, e *sessions.Execution) (release func() bool) {
	return context.AfterFunc(ctx, func() {
		if gaveUp(ctx) {
			e.Cancel()
		}
	})
}

// gaveUp tells whether a call was cancelled by its caller. A server that stops does not cancel cells: what becomes of them
// is for the session manager to say.
func gaveUp(ctx context.Context) bool {
	return ctx.Err() != nil && !errors.Is(context.Cause(ctx), transport.ErrShutdown)
}

// ended returns the result of a cell that has been followed to its end, or, when the wait is over, what there is so far.
func (s *service) ended(ctx context.Context, e *sessions.Execution, v view) *mcp.CallToolResult {
	switch {
	case errors.Is(v.err, errWaitOver):
		return s.soFar(ctx, e, v)
	case v.err != nil:
		return s.notRun(ctx, e, v)
	}
	return s.report(ctx, e, v)
}

// caller returns whose call it is, if its arguments are in order.
func (s *service) caller(ctx context.Context, a *arguments) (sessions.Owner, error) {
	if a.err != nil {
		return sessions.Owner{}, a.err
	}
	return s.Owner(ctx)
}

// report makes the result of a cell that has run: what the reader must know first, the outputs in their order, late ones
// of earlier cells, what was done to the cell, and one line that says where and how it ended.
func (s *service) report(ctx context.Context, e *sessions.Execution, v view) *mcp.CallToolResult {
	r := v.result
	if e.Once() {
		r.Files = nil // they are gone
	}
	v.shown.index = -1 // what is added from here on is no output of the kernel
	if r.Error != nil && !v.shown.hasError() {
		v.shown.add(kernels.Output{Kind: kernels.OutputError, Error: r.Error})
	}
	content, within := s.outputs(ctx, e, v), s.boundsFor(ctx, e.Choice())
	if hint := printedHint(content, r.Error, within); hint != "" {
		content = append(content, mcp.NewTextContent("Hint: "+hint))
	}
	if hint := s.lostHint(ctx, e); hint != "" {
		content = append(content, mcp.NewTextContent("Hint: "+hint))
	}
	content = append(content, s.lateBlocks(e.Late()...)...)
	if remark := remarkOn(e, r, within); remark != "" {
		content = append(content, mcp.NewTextContent(remark))
	}
	if soon := endsSoon(e); soon != "" {
		content = append(content, mcp.NewTextContent(soon))
	}
	content = append(content, mcp.NewTextContent(joinLines(filesLine(r), footer(e, statusText(r)+" · "+words.Took(r.Duration)))))
	return about(e, v, &mcp.CallToolResult{Content: content, IsError: failed(r)})
}

// failed tells whether programs are to take a cell for an error. One that was cut short has not done what it was to do, even where its
// code has dealt with the interrupt and ended well, or a command of it was stopped.
func failed(r sessions.Result) bool {
	return r.Status != kernels.StatusOK || r.TimedOut || r.Cancelled || r.Overrun > 0
}

// noted tells whether a view begins with what the reader must know first.
func noted(e *sessions.Execution, v view) bool { return v.from == 0 && e.Preamble() != "" }

// outputs are the blocks of what a view shows, after what the reader must know first.
func (s *service) outputs(ctx context.Context, e *sessions.Execution, v view) []mcp.Content {
	var content []mcp.Content
	if noted(e, v) {
		content = append(content, mcp.NewTextContent("Note: "+terminal.Plain(e.Preamble())))
	}
	return append(content, v.shown.blocks(s.budget, s.boundsFor(ctx, e.Choice()))...)
}

// lateBudget bounds what one result tells of the late output of all earlier cells together.
var lateBudget = budget{chars: 4000, images: 200_000, pixels: 50_000_000}

// lateBlocks tells what earlier cells have produced after their end, as far as the budget goes.
func (s *service) lateBlocks(cells ...sessions.Late) []mcp.Content {
	room := lateBudget
	room.side = s.budget.side
	var content []mcp.Content
	for i, late := range cells {
		if room.chars <= 0 {
			rest := words.Count(int64(len(cells)-i), "more cell")
			return append(content, mcp.NewTextContent("["+rest+" went on in the background; get_execution reads what they produced]"))
		}
		shown := newArea()
		for _, out := range late.Outputs {
			shown.add(out)
		}
		blocks := shown.blocks(room, bounds{})
		if len(blocks) == 0 {
			continue
		}
		head := mcp.NewTextContent(fmt.Sprintf("[cell %d went on in the background and produced:]", late.Number))
		content = append(append(content, head), blocks...)
		room = room.minus(blocks)
	}
	return content
}

// remarkOn says in sentences what happened to a cell that did not simply end, and what that means for the session.
func remarkOn(e *sessions.Execution, r sessions.Result, within bounds) string {
	var said []string
	switch {
	case r.TimedOut:
		said = append(said, fmt.Sprintf("The cell was stopped because it ran longer than its timeout of %s.", words.Took(e.Timeout())))
	case r.Overrun > 0:
		said = append(said, fmt.Sprintf("The cell was stopped because its workspace held %s, more than its limit of %s: delete files that are not needed.",
			words.Bytes(r.Overrun), words.Bytes(within.workspace)))
	case r.Cancelled:
		said = append(said, "The cell was stopped because its call was cancelled.")
	case r.Interrupt.Ran && r.Interrupt.Caller == sessions.Person:
		said = append(said, sentence(sessions.Person)+" interrupted this cell.")
	case r.Interrupt.Ran && r.Interrupt.Caller != "" && r.Interrupt.Caller != e.Info().Caller:
		said = append(said, "Another client stopped this cell by interrupt_session.")
	case r.Interrupt.Ran:
		said = append(said, "The cell was stopped by interrupt_session.")
	}
	switch {
	case r.Status == kernels.StatusDied && r.Death != nil:
		said = append(said, deathRemark(*r.Death, e.Once())...)
	case r.Interrupt.Ran:
		said = append(said, ladderRemark(r.Interrupt))
	case r.Status == kernels.StatusAborted:
		said = append(said, "The kernel did not run this cell, because an earlier one had failed: call again.")
	}
	if r.OOMKills > 0 && r.Death == nil {
		said = append(said, killedRemark(r.OOMKills, within.memory))
	}
	if r.Reason != "" {
		said = append(said, "Note: "+terminal.Plain(r.Reason)+".")
	}
	if r.Unsaved != nil {
		said = append(said, unsavedRemark(r.Unsaved))
	}
	return strings.Join(said, " ")
}

// killedRemark tells of processes of a cell that ended for want of memory: the cell may have waited for them in vain, or gone on without.
func killedRemark(n, limit int64) string {
	who, why := "A process of this session was", "for want of memory"
	if n > 1 {
		who = words.Thousands(n) + " processes of this session were"
	}
	if limit > 0 {
		why += "; the limit is " + words.Bytes(limit) + " for all of them together"
	}
	return who + " killed while the cell ran, " + why + ": work on the data in pieces, or with fewer processes at once."
}

// unsavedRemark says that what is known of a cell does not outlive the server.
func unsavedRemark(err error) string {
	return "Note: this cell is kept in memory only: " + strings.TrimSuffix(err.Error(), ".") + "."
}

func ladderRemark(i sessions.InterruptReport) string {
	variables := "variables are lost"
	if i.VariablesSaved {
		variables = "of its variables those come back that had been saved (the next cell is told which)"
	}
	switch {
	case i.Rung == sessions.RungRestart:
		return "It ignored the interrupt, and its kernel had to be restarted: " + variables + ", files are kept."
	case !i.VariablesKept:
		return "Its kernel ended before it stopped: " + variables + "."
	case i.Rung == sessions.RungKillChildren:
		return "It stopped when the processes that it had started were killed; variables are kept."
	}
	return "An interrupt was enough. Variables are kept."
}

// deathRemark tells of a death during the cell. The next cell's preamble repeats it for whoever calls then.
func deathRemark(d kernels.Death, last bool) []string {
	said := []string{sentence(terminal.Plain(d.Cause)) + "."}
	if d.OOM {
		said = append(said, "Work on the data in pieces, use smaller types, or delete what is not needed.")
	}
	if last {
		return said
	}
	if sessions.HasVariablesSaved(d.Cause) {
		return append(said, "The next call has those on a new kernel; files are kept.")
	}
	return append(said, "Variables are lost, files are kept; the next call runs on a new kernel.")
}

func sentence(s string) string {
	s = strings.TrimSuffix(s, ".")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// footer is the last line of a result: "[session analysis · cell 3 · ok · 0.12 s]".
func footer(e *sessions.Execution, how string) string {
	session := e.SessionID()
	switch {
	case e.Once():
		session += " (" + e.Choice().Profile + ": for this call only, its kernel and files go with it)"
	case e.Minted():
		session += " (new: pass this session_id to go on with it)"
	}
	return fmt.Sprintf("[session %s · cell %d · %s]", session, e.Number(), how)
}

func statusText(r sessions.Result) string {
	switch {
	case r.TimedOut:
		return notebook.StatusTimedOut
	case r.Cancelled:
		return "cancelled"
	case r.Interrupted():
		return notebook.StatusInterrupted
	case r.Restarted:
		return notebook.StatusRestarted
	case r.Stopped():
		return notebook.StatusStopped
	case r.Status == kernels.StatusDied:
		return "kernel died"
	}
	return string(r.Status)
}
