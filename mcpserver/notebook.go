package mcpserver

import (
	"context"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver/terminal"
	"cellblock/notebook"
	"cellblock/sessions"
)

// readNotebook is a session as a Jupyter notebook, whether it runs or not.
func (s *service) readNotebook(ctx context.Context, o sessions.Owner, a address) ([]mcp.ResourceContents, error) {
	book, err := NotebookOf(ctx, s.Sessions, o, a.session)
	if err != nil {
		return nil, err
	}
	text, err := book.Text()
	if err != nil {
		return nil, err
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: a.uri, MIMEType: notebook.MIMEType, Text: text}}, nil
}

// NotebookOf makes a notebook of the cells of a session that have run or run now, whether the session runs or not. Cells that
// never ran did nothing, and are not in it. Of cells that are not kept, or run in another process, it says so. The error is
// NotFound where there is no such session.
func NotebookOf(ctx context.Context, m *sessions.Manager, o sessions.Owner, id string) (*notebook.Notebook, error) {
	account, err := m.Account(ctx, o, id)
	if err != nil {
		return nil, err
	}
	b, generation := notebook.NewBuilder(bookOf(m, account)), 0
	var missing gap
	for n := 1; n <= account.Executions && ctx.Err() == nil; n++ {
		e, err := m.Execution(ctx, o, account.ID, n)
		switch kind := fault.KindOf(err); {
		case err != nil && (kind == fault.NotFound || kind == fault.Conflict):
			missing.add(n, kind)
			continue
		case err != nil:
			return nil, err
		}
		missing.tell(b)
		info := e.Info()
		if info.Phase == sessions.PhaseQueued || info.Err != nil {
			continue
		}
		if info.Generation != generation {
			generation = info.Generation
			b.NewKernel(generation, whyEnded(account, generation-1))
		}
		if b.Begin(runOf(info)) {
			addOutputs(b, e)
		}
	}
	missing.tell(b)
	return b.Notebook(), context.Cause(ctx)
}

// gap is cells in a row that a notebook has not.
type gap struct {
	from, to int
	why      fault.Kind
}

func (g *gap) add(n int, why fault.Kind) {
	if g.from == 0 {
		g.from = n
	}
	g.to, g.why = n, why
}

// tell says what is missing, if something is.
func (g *gap) tell(b *notebook.Builder) {
	why := "not kept any more"
	if g.why == fault.Conflict {
		why = "running in another cellblock process"
	}
	if g.from > 0 {
		b.Missing(g.from, g.to, why)
	}
	*g = gap{}
}

// bookOf is what a notebook says of its session.
func bookOf(m *sessions.Manager, a sessions.Account) notebook.Session {
	book := notebook.Session{ID: a.ID, Generation: len(a.Generations), Kernelspec: m.Config().Runtimes[a.Language].Kernelspec,
		Language: m.LanguageInfo(a.Language)}
	if book.Kernelspec.Language == "" { // a language that is not configured any more, or has not said much
		book.Kernelspec = kernels.Kernelspec{Name: a.Language, DisplayName: a.Language, Language: a.Language}
	}
	if a.State == sessions.Closed {
		book.Ended = a.Why
	}
	return book
}

// whyEnded says what ended a generation, "" if that is not known.
func whyEnded(a sessions.Account, generation int) string {
	for _, g := range a.Generations {
		if g.Number == generation {
			return g.Why
		}
	}
	return ""
}

func runOf(i sessions.ExecutionInfo) notebook.Run {
	run := notebook.Run{
		Number: i.Number, Generation: i.Generation, Code: i.Code, ExecutionCount: i.Result.ExecutionCount, Status: phaseText(i),
		Caller: i.Caller, Started: i.Started, Duration: i.Duration,
	}
	if i.File != "" {
		run.Remark = i.Title()
	}
	if death := i.Result.Death; death != nil && i.Result.Status == kernels.StatusDied {
		run.Failure = "… the cell did not end: " + terminal.Plain(death.Cause) + " …"
	}
	return run
}

// addOutputs adds what a cell has produced by now: its late output too, because it is that cell's.
func addOutputs(b *notebook.Builder, e *sessions.Execution) {
	for out := range e.SoFar(0) {
		b.Output(out.Output)
	}
}
