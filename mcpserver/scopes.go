package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/auth"
	"cellblock/mcpserver/transport"
)

// The scopes that are needed beside "<language>:execute".
const (
	// ScopeRead is for reading of sessions and their cells, ScopeManage for stopping what runs in them and for ending them.
	ScopeRead   = "sessions:read"
	ScopeManage = "sessions:manage"
	// ScopeAdmin is for operators: to list and stop sessions of anybody's, and to read nothing of them. It is in no metadata,
	// because clients ask for what is there.
	ScopeAdmin = auth.ScopeAdmin
	// ScopeFilesRead is for reading files of workspaces, ScopeFilesWrite for writing and deleting them.
	ScopeFilesRead  = "files:read"
	ScopeFilesWrite = "files:write"
	// ScopeImages is for making images with packages, and for deleting them.
	ScopeImages = "images:manage"
)

const (
	executePrefix  = "execute_"
	executeSuffix  = ":execute"
	getExecution   = "get_execution"
	restoreSession = "restore_session"
)

// need is what a caller must have to use a tool.
type need struct {
	scope string
	// andLanguage asks for the scope of a language too: which one, the call's session or script says. orLanguage is content
	// with that of any language instead.
	andLanguage, orLanguage bool
	// everybody is for tools that every caller may use whose token holds.
	everybody bool
}

// needs is the one table of what tools need, but for those that execute a language, whose scope carries its name.
var needs = map[string]need{
	getExecution:        {scope: ScopeRead, orLanguage: true}, // who may run a cell may read its result
	showCell:            {scope: ScopeRead, orLanguage: true},
	interruptCell:       {scope: ScopeManage},
	"list_sessions":     {scope: ScopeRead},
	"list_executions":   {scope: ScopeRead},
	"inspect_variables": {scope: ScopeRead},
	"interrupt_session": {scope: ScopeManage},
	"restart_session":   {scope: ScopeManage},
	"close_session":     {scope: ScopeManage},
	restoreSession:      {andLanguage: true},
	listAllSessions:     {scope: ScopeAdmin},
	stopAnySession:      {scope: ScopeAdmin},
	showOwner:           {scope: ScopeAdmin},
	forgetOwner:         {scope: ScopeAdmin},
	"list_files":        {scope: ScopeFilesRead},
	"read_file":         {scope: ScopeFilesRead},
	"write_file":        {scope: ScopeFilesWrite},
	"delete_file":       {scope: ScopeFilesWrite},
	ExecuteFile:         {scope: ScopeFilesRead, andLanguage: true},
	"create_image":      {scope: ScopeImages},
	"install_package":   {scope: ScopeImages},
	"list_images":       {scope: ScopeImages},
	"delete_image":      {scope: ScopeImages},
	"health":            {everybody: true},
}

// needOf returns what a tool needs, and whether there can be a tool of that name.
func needOf(tool string) (n need, known bool) {
	if n, known = needs[tool]; known {
		return n, true
	}
	language, ok := strings.CutPrefix(tool, executePrefix)
	return need{scope: language + executeSuffix}, ok && language != ""
}

// resourceScope returns what reading a resource needs, by its address or its template; empty: nothing.
func resourceScope(uri string) string {
	if uri == appURI {
		return "" // it is the same for everybody, and has nothing of anybody's
	}
	_, part, _ := strings.Cut(strings.TrimPrefix(uri, uriPrefix+"/"), "/")
	if strings.HasPrefix("/"+part, filesPath) {
		return ScopeFilesRead
	}
	return ScopeRead
}

// Access says who may use what of a server.
type Access struct {
	languages, profiles []string
	tools               map[string]need
}

// NewAccess returns the access to what New makes of the same configuration.
func NewAccess(cfg Config) *Access { return newService(cfg).newAccess() }

func (s *service) newAccess() *Access {
	a := &Access{languages: s.Languages, profiles: s.profileNames(), tools: map[string]need{}}
	for _, t := range s.tools() {
		n, known := needOf(t.name)
		if !known || n == (need{}) {
			panic("mcpserver: nobody has said what a caller of " + t.name + " needs")
		}
		a.tools[t.name] = n
	}
	return a
}

// Authorize returns nil for a call that a caller who has some scopes may make, and else the error of auth.NeedsScope. A tool
// that there is not is for the server to refuse: no token could be got that allows it. What only the call's own session or
// script can tell, its language, is left to the tool.
func (a *Access) Authorize(c transport.Call, has func(scope string) bool) error {
	switch {
	case c.Tool != "":
		if missing := a.missing(c.Tool, has); len(missing) > 0 {
			return auth.NeedsScope(c.Tool, missing...)
		}
		profile := a.profileIn(c.Tool, c.Arguments)
		if scope := ProfileScope(profile); scope != "" && !has(scope) {
			return auth.NeedsScope("the profile "+profile, scope)
		}
	case c.URI != "":
		if scope := resourceScope(c.URI); scope != "" && !has(scope) {
			return auth.NeedsScope("reading this resource", scope)
		}
	}
	return nil
}

// missing returns the scopes that a tool needs and the caller does not have.
func (a *Access) missing(tool string, has func(scope string) bool) (scopes []string) {
	n := a.tools[tool]
	runs := slices.ContainsFunc(a.languages, func(l string) bool { return has(l + executeSuffix) })
	if n.scope != "" && !has(n.scope) && !(n.orLanguage && runs) {
		scopes = append(scopes, n.scope)
	}
	if n.andLanguage && !runs && len(a.languages) > 0 {
		scopes = append(scopes, a.languages[0]+executeSuffix)
	}
	return scopes
}

// ProfileScopes returns the scopes of profiles, in order. Like ScopeAdmin they are in no metadata: clients ask for what is there,
// and hear of another when they need it.
func (a *Access) ProfileScopes() (scopes []string) {
	for _, profile := range a.profiles {
		if scope := ProfileScope(profile); scope != "" {
			scopes = append(scopes, scope)
		}
	}
	return scopes
}

// Scopes returns all that callers of the server can make use of, in order, but for those of profiles.
func (a *Access) Scopes() []string {
	scopes := []string{ScopeRead} // for resources
	for _, language := range a.languages {
		scopes = append(scopes, language+executeSuffix)
	}
	for _, n := range a.tools {
		if n.scope != "" && n.scope != ScopeAdmin {
			scopes = append(scopes, n.scope)
		}
	}
	slices.Sort(scopes)
	return slices.Compact(scopes)
}

// filterList takes from a list the tools that the caller may not call.
func (s *service) filterList(ctx context.Context, _ any, _ *mcp.ListToolsRequest, result *mcp.ListToolsResult) {
	result.Tools = slices.DeleteFunc(result.Tools, func(t mcp.Tool) bool { return s.refusal(ctx, t.Name) != nil })
	for i, t := range result.Tools {
		result.Tools[i] = s.filterProfiles(ctx, t)
	}
	result.Tools = s.forApps(ctx, result.Tools)
}

// filterTemplates takes from a list what the caller may not read.
func (s *service) filterTemplates(ctx context.Context, _ any, _ *mcp.ListResourceTemplatesRequest, result *mcp.ListResourceTemplatesResult) {
	result.ResourceTemplates = slices.DeleteFunc(result.ResourceTemplates, func(t mcp.ResourceTemplate) bool {
		return !s.Allowed(ctx, resourceScope(t.URITemplate.Raw()))
	})
}

func (s *service) refusal(ctx context.Context, tool string) error {
	return s.access.Authorize(transport.Call{Tool: tool}, func(scope string) bool { return s.Allowed(ctx, scope) })
}

// guarded refuses calls that the caller's scopes do not allow, for transports that have not done so before. A tool filter of
// mcp-go would say that there is no such tool; this says what is missing.
func (s *service) guarded(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if err := s.refusal(ctx, r.Params.Name); err != nil {
			return toolError(err), nil
		}
		return next(ctx, r)
	}
}
