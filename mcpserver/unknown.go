package mcpserver

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
	"cellblock/mcpserver/transport"
)

// refuseUnknown says, of a call of a tool that there is not, which one may be meant. mcp-go refuses it.
func (s *service) refuseUnknown(ctx context.Context, _ any, r *mcp.CallToolRequest) {
	if _, known := s.access.tools[r.Params.Name]; known {
		return
	}
	err := fault.New(fault.Invalid, "there is no tool %q", clean(r.Params.Name))
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.access.tools)), func(tool string) bool {
		return s.refusal(ctx, tool) != nil || slices.Contains(appTools, tool)
	})
	var runs []string // a language's tool each
	for _, language := range s.access.languages {
		if tool := executePrefix + language; slices.Contains(names, tool) {
			runs = append(runs, tool)
		}
	}
	meant := nearest.Of(r.Params.Name, names)
	switch asksFor, ok := strings.CutPrefix(r.Params.Name, executePrefix); {
	case ok && asksFor != "" && !slices.Contains(runs, meant) && len(runs) > 0:
		if meant != "" {
			runs = append(runs, meant) // a language that is not here is near to anything
		}
		err = err.WithHint("code runs by %s", strings.Join(runs, ", "))
	case meant != "":
		err = err.WithHint("did you mean %s?", meant)
	}
	transport.Fail(ctx, err)
}
