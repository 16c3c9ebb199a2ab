package viewer

import (
	"encoding/json"
	"net/http"
	"strings"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

func (v *Viewer) actionRoutes() []route {
	return []route{
		{pattern: "GET /images", scope: mcpserver.ScopeImages, handle: v.imageChoices},
		{pattern: "POST /sessions", scope: signedIn, action: "begin_session", handle: v.beginSession},
		{pattern: "POST /s/{id}/interrupt", scope: scopeManage, action: "interrupt_session", handle: v.interrupt},
		{pattern: "POST /s/{id}/restart", scope: scopeManage, action: "restart_session", handle: v.restart},
		{pattern: "POST /s/{id}/close", scope: scopeManage, action: "close_session", handle: v.closeSession},
	}
}

// beginSession makes a session, for its page to be opened.
func (v *Viewer) beginSession(w http.ResponseWriter, r *http.Request, who visit) error {
	var asked struct {
		ID       string `json:"session_id"`
		Language string `json:"language"`
		Profile  string `json:"profile"`
		Image    string `json:"image"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		return fault.New(fault.Invalid, "the request is no JSON: %w", err)
	}
	if !who.mayRun(asked.Language) {
		return auth.NeedsScope("this", asked.Language+":execute")
	}
	info, err := v.Sessions.Begin(r.Context(), who.owner, sessions.Request{
		SessionID: strings.TrimSpace(asked.ID), Language: asked.Language, Profile: asked.Profile, Image: strings.TrimSpace(asked.Image), Permit: who.permit,
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"session_id": info.ID})
}

// interrupt stops the cell that the visitor saw run, or, where none is named, the one that runs, unless that would cost the variables.
func (v *Viewer) interrupt(w http.ResponseWriter, r *http.Request, who visit) error {
	var asked struct{ Cell int }
	if r.ContentLength != 0 {
		if err := readJSON(r, &asked); err != nil {
			return err
		}
	}
	report, err := v.Sessions.TryInterrupt(r.Context(), who.owner, r.PathValue("id"), asked.Cell)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"ran": report.Ran, "rung": report.Rung, "variables_kept": report.VariablesKept, "runs_on": report.RunsOn})
}

func (v *Viewer) restart(w http.ResponseWriter, r *http.Request, who visit) error {
	info, err := v.Sessions.RestartBy(r.Context(), who.owner, r.PathValue("id"), sessions.Person)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{"generation": info.Generation})
}

func (v *Viewer) closeSession(w http.ResponseWriter, r *http.Request, who visit) error {
	deletes := r.URL.Query().Get("files") == "delete"
	if deletes && !who.can(scopeFilesWrite) {
		return auth.NeedsScope("deleting files", mcpserver.ScopeFilesWrite)
	}
	if err := v.Sessions.Close(r.Context(), who.owner, r.PathValue("id"), sessions.CloseOptions{DeleteFiles: deletes}); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{})
}

// operates tells whether a visitor may see how the server is: who has the scope for it and, in dev mode, everybody.
func (v *Viewer) operates(who visit) bool {
	return who.Subject != "" && (v.Dev || who.can(mcpserver.ScopeAdmin))
}
