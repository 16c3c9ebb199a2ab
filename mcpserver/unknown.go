package mcpserver

import (
	"context"
	"maps"
	"slices"

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
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(s.access.tools)), func(tool string) bool { return s.refusal(ctx, tool) != nil })
	if meant := nearest.Of(r.Params.Name, names); meant != "" {
		err = err.WithHint("did you mean %s?", meant)
	}
	transport.Fail(ctx, err)
}
