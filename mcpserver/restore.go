package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/auth"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

func (s *service) restoreTool() toolSpec {
	return toolSpec{
		name: restoreSession, title: "Restore a session",
		description: "Run the successful cells of a lost kernel again on the new one, until one fails.",
		input: []mcp.ToolOption{
			sessionArgument(),
			mcp.WithInteger("generation", mcp.Min(1.0), mcp.Description("First lost kernel; default: the last")),
			mcp.WithInteger("timeout_seconds", mcp.Min(1.0), mcp.Description("In all")),
		},
		destructive: true, handle: s.restoreSession,
	}
}

func (s *service) restoreSession(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	a := argumentsOf(r, "session_id", "generation", "timeout_seconds")
	id := a.required("session_id")
	opts := sessions.RestoreOptions{
		Generation: a.index("generation", 1, 0), Timeout: a.seconds("timeout_seconds", s.Sessions.Config().LongestTimeout()),
		Caller: clientName(ctx),
	}
	owner, err := s.caller(ctx, a)
	if err == nil {
		err = s.mayExecute(ctx, owner, id)
	}
	if err != nil {
		return toolError(err), nil
	}
	var p *progress
	defer func() { p.stop() }()
	began := time.Now()
	opts.Began = func(e *sessions.Execution) {
		p.stop()
		p = s.goOnProgress(ctx, r, e, began)
	}
	report, err := s.Sessions.RestoreSession(ctx, owner, id, opts)
	if err != nil {
		return toolError(err), nil
	}
	result := mcp.NewToolResultText(restoreText(id, report))
	result.IsError = report.Stopped != ""
	return result, nil
}

// lostHint is for a cell that failed for want of a variable that its session had on an earlier kernel, and that can be had again. The first
// cell on the new kernel is told so anyhow.
func (s *service) lostHint(ctx context.Context, e *sessions.Execution) string {
	if _, offered := s.readOnly[restoreSession]; !offered || e.Preamble() != "" || s.refusal(ctx, restoreSession) != nil {
		return ""
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return ""
	}
	name, setBy, found := s.Sessions.LostName(ctx, owner, e)
	if !found {
		return ""
	}
	if setBy.Result.Status != kernels.StatusOK {
		return fmt.Sprintf("%s may have been set by cell %d, on a kernel that is no more. That cell did not succeed, so that restore_session does not "+
			"run it again: run what is needed of it.", name, setBy.Number)
	}
	return fmt.Sprintf("%s seems to have been set by cell %d, on a kernel that is no more, and lost with it: restore_session(session_id=%q, generation=%d) runs "+
		"the cells of that kernel again.", name, setBy.Number, e.SessionID(), setBy.Generation)
}

// mayExecute refuses a caller who may not run cells in a session's language.
func (s *service) mayExecute(ctx context.Context, owner sessions.Owner, id string) error {
	choice, err := s.Sessions.Choice(ctx, owner, id)
	if err != nil {
		return err
	}
	if scope := choice.Language + executeSuffix; !s.Allowed(ctx, scope) {
		return auth.NeedsScope("restoring a "+choice.Language+" session", scope)
	}
	return s.permit(ctx)(choice.Profile)
}

// maxRestoredLines is how many cells a report lists: the last ones, and before them those that did not run again to their end.
const maxRestoredLines = 30

// restoreText reports a restoration. What the cells showed has been shown before.
func restoreText(id string, r sessions.RestoreReport) string {
	if r.Loaded != "" && len(r.Cells)+r.Left+r.Done == 0 {
		return fmt.Sprintf("Note: %s\nSession %s: no cell was run again. To run them all the same, over what is there now: restore_session(session_id=%q, generation=%d).",
			terminal.Plain(r.Loaded), id, id, r.From)
	}
	lines := []string{restoreSummary(id, r)}
	if r.Loaded != "" {
		lines = append([]string{"Note: " + terminal.Plain(r.Loaded)}, lines...)
	}
	if r.Preamble != "" {
		lines = append([]string{"Note: " + terminal.Plain(r.Preamble)}, lines...)
	}
	lines = append(lines, restoredLines(r.Cells)...)
	if r.Stopped != "" {
		lines = append(lines, restoreStopped(id, r))
	}
	if r.Missing > 0 {
		lines = append(lines, fmt.Sprintf("%s of the session before or among these could not run again: not kept any more.", words.Count(int64(r.Missing), "cell")))
	}
	if r.Earlier > 0 {
		lines = append(lines, fmt.Sprintf("Generation %d had cells that are not among these: generation=%d runs them again too.", r.Earlier, r.Earlier))
	}
	return strings.Join(lines, "\n")
}

func restoreSummary(id string, r sessions.RestoreReport) string {
	ran := r.Ran()
	if len(r.Cells)+r.Left == 0 && r.Done > 0 {
		return fmt.Sprintf("Session %s: nothing was left to run again; %s of generation %d had been run before.", id,
			words.Count(int64(r.Done), "cell"), r.From)
	}
	from := fmt.Sprintf("generation %d", r.From)
	if r.To > r.From {
		from = fmt.Sprintf("generations %d to %d", r.From, r.To)
	}
	text := fmt.Sprintf("Session %s: %d of %s from %s ran again", id, ran, words.Count(int64(len(r.Cells)+r.Left), "cell"), from)
	if r.Generation > 0 {
		text += fmt.Sprintf(" in generation %d, in %s", r.Generation, words.Took(r.Duration))
	}
	if r.Done > 0 {
		text += fmt.Sprintf("; %s had been run again before", words.Count(int64(r.Done), "cell"))
	}
	text += "."
	if ran+r.Done > 0 {
		text += " What these cells define is there again; what cells had defined before they failed, or ran in the background, is not."
	}
	return text
}

// restoredLines lists cells. What is not there again is what a reader must know: of that each is named, if by its number alone.
func restoredLines(cells []sessions.RestoredCell) []string {
	recent := max(0, len(cells)-maxRestoredLines)
	var lines, more []string
	hidden := 0
	for _, c := range cells[:recent] {
		switch {
		case c.Skipped == "" && c.Result.Status == kernels.StatusOK:
			hidden++
		case len(lines) < maxRestoredLines:
			lines = append(lines, restoredLine(c))
		default:
			more = append(more, fmt.Sprint(c.Original))
		}
	}
	if len(more) > 0 {
		lines = append(lines, "Not run again to their end either: "+strings.Join(more, ", "))
	}
	if hidden > 0 {
		lines = append(lines, fmt.Sprintf("(%s before these ran again and ended well)", words.Count(int64(hidden), "cell")))
	}
	for _, c := range cells[recent:] {
		lines = append(lines, restoredLine(c))
	}
	return lines
}

// restoredLine is a cell on one line: "3 → 9 · ok · 0.12 s · df = load()".
func restoredLine(c sessions.RestoredCell) string {
	switch {
	case c.Number == 0:
		return fmt.Sprintf("%d · skipped: %s · %s", c.Original, c.Skipped, firstLine(c.Title))
	case c.Skipped != "":
		return fmt.Sprintf("%d → %d · given up: %s · %s", c.Original, c.Number, c.Skipped, firstLine(c.Title))
	}
	status := string(c.Result.Status)
	if status == "" {
		status = "not run"
	}
	return fmt.Sprintf("%d → %d · %s · %s · %s", c.Original, c.Number, status, words.Took(c.Result.Duration), firstLine(c.Title))
}

func restoreStopped(id string, r sessions.RestoreReport) string {
	text := "Stopped: " + strings.TrimSuffix(terminal.Plain(r.Stopped), ".") + "."
	if r.Left > 0 {
		text += fmt.Sprintf(" %s not restored.", words.Count(int64(r.Left), "cell"))
	}
	if n := len(r.Cells); n > 0 && r.Cells[n-1].Number > 0 {
		last := r.Cells[n-1]
		text += fmt.Sprintf(" get_execution(session_id=%q, execution_id=%d) shows what it printed.", id, last.Number)
		if failed := last.Result.Error; failed != nil && failed.Name == "FileNotFoundError" {
			text += " The file was there when the cell first ran: write it into the workspace again (write_file)."
		}
	}
	again := "."
	if n := len(r.Cells); n > 0 && r.Cells[n-1].Result.Status != kernels.StatusOK {
		again = ", with that cell."
	}
	if r.SetBy > 0 {
		text += fmt.Sprintf(" %s was set by cell %d, which did not succeed and so did not run again: run what is needed of it first.", r.Absent, r.SetBy)
	}
	return text + " Calling again goes on where this stopped" + again
}
