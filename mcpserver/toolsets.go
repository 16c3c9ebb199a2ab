package mcpserver

import (
	"slices"
	"strings"

	"cellblock/internal/fault"
)

// The toolsets: groups of tools that a server offers or not. Every tool that is listed costs a model's context with every
// call, so that a server should list what its callers use.
const (
	// ToolsetExecute runs cells, reads their results and stops them.
	ToolsetExecute = "execute"
	// ToolsetSessions lists, inspects, restarts, restores and closes sessions.
	ToolsetSessions = "sessions"
	// ToolsetFiles lists, reads, writes, deletes and runs files of workspaces.
	ToolsetFiles = "files"
	// ToolsetImages builds what kernels run in, with packages.
	ToolsetImages = "images"
)

// toolsets are all that there are, in the order in which their tools are listed.
var toolsets = []string{ToolsetExecute, ToolsetSessions, ToolsetFiles, ToolsetImages}

// Toolsets returns all that there are.
func Toolsets() []string { return slices.Clone(toolsets) }

// DefaultToolsets returns those that a server has that names none.
func DefaultToolsets() []string { return []string{ToolsetExecute, ToolsetSessions, ToolsetFiles} }

// CheckToolsets returns an Invalid error that lists the toolsets when a name is none of them.
func CheckToolsets(names []string) error {
	for _, name := range names {
		if !slices.Contains(toolsets, name) {
			return fault.New(fault.Invalid, "there is no toolset %q", name).WithHint("Use some of: %s.", strings.Join(toolsets, ", "))
		}
	}
	return nil
}

// tools are those of the server's toolsets; health is always among them.
func (s *service) tools() []toolSpec {
	enabled := s.Toolsets
	if enabled == nil {
		enabled = DefaultToolsets()
	}
	var all []toolSpec
	for _, set := range toolsets {
		if slices.Contains(enabled, set) {
			all = append(all, s.toolset(set)...)
		}
	}
	return append(all, s.healthTool())
}

func (s *service) toolset(name string) []toolSpec {
	switch name {
	case ToolsetExecute:
		var tools []toolSpec
		for _, language := range s.Languages {
			tools = append(tools, s.executeTool(language))
		}
		return append(append(tools, s.getTool(), s.interruptTool()), s.appToolSpecs()...)
	case ToolsetSessions:
		return []toolSpec{s.listTool(), s.listExecutionsTool(), s.variablesTool(), s.restartTool(), s.restoreTool(), s.closeTool(), s.listAllTool(), s.stopAnyTool(), s.showOwnerTool(), s.forgetTool()}
	case ToolsetFiles:
		return []toolSpec{s.listFilesTool(), s.readFileTool(), s.writeFileTool(), s.deleteFileTool(), s.executeFileTool()}
	case ToolsetImages:
		return []toolSpec{s.createImageTool(), s.installTool(), s.listImagesTool(), s.deleteImageTool()}
	}
	return nil
}
