package mcpserver

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/sessions"
)

// readLog is what happened to a session's kernels: one line for each, and the log of the one that was launched last.
func (s *service) readLog(ctx context.Context, o sessions.Owner, a address) ([]mcp.ResourceContents, error) {
	account, err := s.Sessions.Account(ctx, o, a.session)
	if err != nil {
		return nil, err
	}
	log, err := s.Sessions.Log(ctx, o, a.session)
	if err != nil && fault.KindOf(err) != fault.NotFound {
		return nil, err
	}
	lines := historyOf(account)
	if log = strings.TrimSpace(terminal.Plain(log)); log != "" {
		lines = append(lines, "", "The log of the last kernel:", log)
	}
	return []mcp.ResourceContents{mcp.TextResourceContents{URI: a.uri, MIMEType: "text/plain", Text: strings.Join(lines, "\n")}}, nil
}

// maxKernels bounds the kernels of which a log tells.
const maxKernels = 100

// historyOf says what became of a session and of its kernels.
func historyOf(a sessions.Account) []string {
	lines := []string{fmt.Sprintf("%s · %s · %s · %s · since %s", a.ID, a.Language, a.State.Plain(), words.Count(int64(a.Executions), "cell"), stamp(a.Created))}
	if a.State == sessions.Closed {
		lines[0] += fmt.Sprintf(", ended %s: %s", stamp(a.Ended), terminal.Plain(a.Why))
	}
	generations := a.Generations
	if more := len(generations) - maxKernels; more > 0 {
		lines = append(lines, fmt.Sprintf("… %s before …", words.Count(int64(more), "generation")))
		generations = generations[more:]
	}
	for _, g := range generations {
		line := fmt.Sprintf("generation %d · started %s", g.Number, stamp(g.Started))
		if !g.Ended.IsZero() {
			line += fmt.Sprintf(" · ended %s: %s", stamp(g.Ended), terminal.Plain(g.Why))
		}
		lines = append(lines, line)
	}
	return lines
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }
