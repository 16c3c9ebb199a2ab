package mcpserver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/jsontext"
	"cellblock/internal/request"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// readResource is what stands for a tool in the audit log where a resource was read.
const readResource = "resources/read"

// audited has every call of a tool told to the audit log: before anything of it is done if it may change something, and
// how it went.
func (s *service) audited(next server.ToolHandlerFunc) server.ToolHandlerFunc {
	if s.Audit == nil {
		return next
	}
	return func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		e := s.auditEntry(ctx)
		e.describe(r)
		if !s.readOnly[r.Params.Name] {
			e.Event = audit.Called
			if err := s.Audit.Require(ctx, e.Entry); err != nil {
				return toolError(err), nil
			}
		}
		e.Code = "" // once is enough
		began := time.Now()
		result, err := next(ctx, r)
		e.answer(result, err)
		e.Seconds = time.Since(began).Seconds()
		if e.Tool != showCell || e.Reason != "" || s.told.first(e.Entry, time.Now()) {
			s.Audit.Append(e.Entry)
		}
		return result, err
	}
}

// auditedResource is audited for the reading of a resource.
func (s *service) auditedResource(next server.ResourceHandlerFunc) server.ResourceHandlerFunc {
	if s.Audit == nil {
		return next
	}
	return func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		e := s.auditEntry(ctx)
		e.describeResource(r.Params.URI)
		began := time.Now()
		contents, err := next(ctx, r)
		e.Went(err)
		e.Seconds = time.Since(began).Seconds()
		s.Audit.Append(e.Entry)
		return contents, err
	}
}

// auditEntry is an entry for the audit log, about one call.
type auditEntry struct{ audit.Entry }

func (c *Config) auditEntry(ctx context.Context) auditEntry {
	info := request.FromContext(ctx)
	owner, _ := c.Owner(ctx)      // the call itself says what is wrong with it
	p, _ := auth.FromContext(ctx) // nobody, where nobody needs a token
	return auditEntry{audit.Entry{
		Event: audit.Answered, Request: info.ID, Address: info.Address, Issuer: owner.Issuer, Subject: owner.Subject,
		ClientID: p.ClientID, Client: clientName(ctx),
	}}
}

// RefusedEntry is the entry that tells the audit log of a request that was refused, with err, before a tool has seen it: who asked
// for what, with the digest of its code and not the code.
func (c *Config) RefusedEntry(ctx context.Context, call transport.Call, err error) audit.Entry {
	e := c.auditEntry(ctx)
	switch {
	case call.Tool != "":
		e.describe(mcp.CallToolRequest{Params: mcp.CallToolParams{Name: call.Tool, Arguments: call.Arguments}})
	case call.URI != "":
		e.describeResource(call.URI)
		e.Tool = call.Method
	default:
		e.Tool = call.Method
	}
	e.Code, e.Scope = "", strings.Join(auth.ScopesIn(err), " ")
	e.Failed(fault.KindOf(err), err.Error())
	return e.Entry
}

// describe adds what a call says. Arguments that are not in order are left to the call to refuse.
func (e *auditEntry) describe(r mcp.CallToolRequest) {
	e.Tool = r.Params.Name
	n, _ := needOf(e.Tool)
	e.Scope = n.scope
	if language, ok := strings.CutSuffix(e.Scope, executeSuffix); ok {
		e.Language = language
	}
	a := argumentsOf(r)
	text := func(name string) string {
		raw, _ := a.value(name)
		s, _ := jsontext.Text(raw)
		return s
	}
	e.Session, e.OfIssuer, e.OfSubject = text("session_id"), text("issuer"), text("subject")
	if path := text("path"); path != "" {
		e.Files = []string{path}
	}
	if e.Code = text("code"); e.Code != "" {
		e.CodeSHA256, e.CodeBytes = digest(e.Code), len(e.Code)
	}
}

// describeResource adds what a reading of a resource says.
func (e *auditEntry) describeResource(uri string) {
	e.Tool, e.Files = readResource, []string{uri}
	if rest, ok := strings.CutPrefix(uri, uriPrefix+"/"); ok {
		e.Session, _, _ = strings.Cut(rest, "/")
	}
}

func digest(code string) string {
	sum := sha256.Sum256([]byte(code))
	return hex.EncodeToString(sum[:])
}

// answer adds how a call of a tool went.
func (e *auditEntry) answer(result *mcp.CallToolResult, err error) {
	e.Event = audit.Answered
	if e.Went(err); err != nil || result == nil {
		return
	}
	meta := map[string]any{}
	if result.Meta != nil {
		meta = result.Meta.AdditionalFields
	}
	if said, ok := meta[ExecutionMeta].(map[string]any); ok {
		e.Session, _ = said["session_id"].(string)
		e.Execution, _ = said["execution_id"].(int)
		if phase, _ := said["phase"].(sessions.Phase); phase != sessions.PhaseEnded {
			e.Status = string(phase)
		}
	}
	if result.IsError {
		e.Status = "error"
		if failed, ok := meta[ErrorMeta].(map[string]any); ok {
			kind, _ := failed["kind"].(fault.Kind)
			e.Failed(kind, textOf(result))
		}
	}
}

// textOf is what an error says.
func textOf(result *mcp.CallToolResult) string {
	for _, block := range result.Content {
		if text, ok := block.(mcp.TextContent); ok && strings.HasPrefix(text.Text, "Error: ") {
			return strings.TrimPrefix(text.Text, "Error: ")
		}
	}
	return ""
}

// CellEnded is the entry that tells the audit log how a cell went.
func CellEnded(owner sessions.Owner, e *sessions.Execution) audit.Entry {
	info := e.Info()
	entry := audit.Entry{
		Event: audit.Ended, Issuer: owner.Issuer, Subject: owner.Subject, Client: info.Caller, Session: e.SessionID(), Execution: info.Number,
		Language: e.Language(), CodeSHA256: digest(info.Code), CodeBytes: len(info.Code), Seconds: info.Duration.Seconds(),
		CPUMillis: float64(info.Result.CPU.Microseconds()) / 1000, PeakMemoryBytes: info.Result.PeakMemory,
		Status: phaseText(info), MoreFiles: info.Result.MoreFiles,
	}
	for _, change := range info.Result.Files {
		entry.Files = append(entry.Files, change.Path)
	}
	if info.Err != nil {
		entry.Reason = info.Err.Error()
	}
	if death := info.Result.Death; death != nil {
		entry.Reason = death.Cause
	}
	return entry
}
