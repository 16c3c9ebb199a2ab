package mcpserver

import (
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/words"
	"cellblock/mcpserver/terminal"
	"cellblock/notebook"
	"cellblock/sessions"
)

// maxListed is how many sessions one page of the list of resources is about.
const maxListed = 100

// listResources lists the notebook of each session, and the output of its last cell while it runs, those used last first, page
// by page.
func (s *service) listResources(ctx context.Context, _ any, r *mcp.ListResourcesRequest, result *mcp.ListResourcesResult) {
	if !s.Allowed(ctx, ScopeRead) {
		return
	}
	owner, err := s.Owner(ctx)
	if err != nil {
		return
	}
	accounts, err := s.Sessions.Accounts(ctx, owner)
	if err != nil {
		s.Logger.Warn("sessions could not be listed as resources", slog.Any("error", err))
		return
	}
	page, next := pageOf(accounts, r.Params.Cursor)
	for _, a := range page {
		if a.State != sessions.Closed {
			result.Resources = append(result.Resources, mcp.NewResource(outputURI(a.ID, a.Executions),
				fmt.Sprintf("Output of cell %d in session %s", a.Executions, a.ID), mcp.WithMIMEType("text/plain")))
		}
		result.Resources = append(result.Resources, s.notebookResource(a))
	}
	result.NextCursor = next
}

// pageOf returns the sessions that have a notebook and come behind a cursor, and the cursor behind them; that is empty when
// they are the last. A cursor that is none of these has nothing behind it.
func pageOf(accounts []sessions.Account, cursor mcp.Cursor) (page []sessions.Account, next mcp.Cursor) {
	accounts = slices.DeleteFunc(accounts, func(a sessions.Account) bool { return a.Executions == 0 })
	if cursor != "" {
		used, id := readCursor(cursor)
		accounts = slices.DeleteFunc(accounts, func(a sessions.Account) bool {
			order := a.Used.Compare(used)
			return order > 0 || order == 0 && a.ID <= id
		})
	}
	if len(accounts) <= maxListed {
		return accounts, ""
	}
	page = accounts[:maxListed]
	last := page[maxListed-1]
	return page, mcp.Cursor(base64.StdEncoding.EncodeToString([]byte(last.Used.UTC().Format(time.RFC3339Nano) + " " + last.ID)))
}

// readCursor returns what the last session of a page was: mcp-go has made sure of the encoding.
func readCursor(cursor mcp.Cursor) (used time.Time, id string) {
	text, _ := base64.StdEncoding.DecodeString(string(cursor))
	at, id, _ := strings.Cut(string(text), " ")
	used, _ = time.Parse(time.RFC3339Nano, at)
	return used, id
}

// SessionMeta is the key in the _meta of a notebook in a list under which clients of ours find what is known of its session,
// alive or not.
const SessionMeta = "cellblock/session"

// notebookResource is the entry of a session's notebook in a list.
func (s *service) notebookResource(a sessions.Account) mcp.Resource {
	entry := map[string]any{
		"language": a.Language, "executions": a.Executions, "created": stamp(a.Created), "last_used": stamp(a.Used),
	}
	about := fmt.Sprintf("%s, %s", s.titleOf(a.Language), words.Count(int64(a.Executions), "cell"))
	if a.State == sessions.Closed {
		entry["ended"], entry["why"] = stamp(a.Ended), terminal.Plain(a.Why)
		about += fmt.Sprintf("; the session ended at %s: %s", stamp(a.Ended), terminal.Plain(a.Why))
	}
	r := mcp.NewResource(notebookURI(a.ID), fmt.Sprintf("Notebook of session %s", a.ID), mcp.WithMIMEType(notebook.MIMEType),
		mcp.WithResourceDescription(about), mcp.WithLastModified(stamp(a.Used)))
	r.Meta = &mcp.Meta{AdditionalFields: map[string]any{SessionMeta: entry}}
	return r
}
