package main

import (
	"log/slog"
	"slices"
	"sync"

	"cellblock/mcpserver"
)

// troublesTold are the problems that the log has been told of, by what is public of them: the rest may differ each time.
type troublesTold struct {
	mu   sync.Mutex
	told []string
}

// tell writes into the log which problems are new, and which are over. Those that are in it already would be there twice.
func (t *troublesTold) tell(logger *slog.Logger, problems []mcpserver.Problem) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var now []string
	for _, p := range problems {
		if p.Logged || slices.Contains(now, p.Public) {
			continue
		}
		if now = append(now, p.Public); !slices.Contains(t.told, p.Public) {
			logger.Warn("the server is not as it should be", "problem", p.What, "hint", p.Hint)
		}
	}
	for _, what := range t.told {
		if !slices.Contains(now, what) {
			logger.Info("a problem is over", "problem", what)
		}
	}
	t.told = now
}
