package viewer

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/notebook"
	"cellblock/sessions"
)

const (
	// maxCodeBody bounds a request that carries code, in bytes: as JSON, that has more than the code has.
	maxCodeBody = 4 * sessions.MaxCode
	// maxEarlier bounds the earlier cells that the editor gets to choose from.
	maxEarlier = 200
	// maxEarlierBytes bounds their code together.
	maxEarlierBytes = 1 << 20
)

// editorRoutes are the addresses of the session page's editor. What runs code needs the scope of the session's language, which
// mayRun asks for.
func (v *Viewer) editorRoutes() []route {
	return []route{
		{pattern: "POST /s/{id}/run", scope: signedIn, action: "run_cell", body: maxCodeBody, handle: v.runCell},
		{pattern: "POST /s/{id}/takeback", scope: signedIn, action: "take_back_cell", handle: v.takeBack},
		{pattern: "POST /s/{id}/cells/{number}/run", scope: signedIn, action: "run_cell", handle: v.runCellAgain},
		{pattern: "POST /s/{id}/restore", scope: signedIn, action: "restore_session", handle: v.restoreSession},
		{pattern: "POST /s/{id}/answer", scope: signedIn, action: "answer_input", handle: v.answer},
		{pattern: "POST /s/{id}/complete", scope: signedIn, body: maxCodeBody, handle: v.complete},
		{pattern: "POST /s/{id}/inspect", scope: signedIn, body: maxCodeBody, handle: v.inspect},
		{pattern: "GET /s/{id}/earlier", scope: mcpserver.ScopeRead, handle: v.earlier},
	}
}

// editorPart is what templates/parts/editor.html shows.
type editorPart struct {
	// Title is how people write the language; Scope is the one that running it needs.
	Title, Scope string
	// Indent is how many spaces a level has, Comment what begins a comment.
	Indent  int
	Comment string
}

func (v *Viewer) editorPart(_ *http.Request, _ visit, s sessionView) (any, error) {
	p := editorPart{
		Title: cmp.Or(v.Sessions.Config().Runtimes[s.Language].Title, s.Language), Scope: s.Language + ":execute", Indent: 2, Comment: notebook.Comment(s.Language),
	}
	if s.Language == "python" {
		p.Indent = 4
	}
	return p, nil
}

// mayRunIn describes a session, whether it runs or not, to who may run code there.
func (v *Viewer) mayRunIn(r *http.Request, who visit) (sessions.Info, error) {
	info, _, err := v.describe(r.Context(), who.owner, r.PathValue("id"))
	if err == nil && !who.mayRun(info.Language) {
		err = auth.NeedsScope("running "+info.Language, info.Language+":execute")
	}
	if err == nil {
		err = mcpserver.PermitProfiles(who.can)(info.Profile)
	}
	return info, err
}

// longest is how long a person's cell may run: a person sees that it does, and can interrupt it.
func (v *Viewer) longest(info sessions.Info) time.Duration {
	cfg := v.Sessions.Config()
	return cfg.Profiles[cmp.Or(info.Profile, sessions.DefaultProfile)].MaxTimeout
}

// runCell starts a cell, as a person's.
func (v *Viewer) runCell(w http.ResponseWriter, r *http.Request, who visit) error {
	var asked struct{ Code string }
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	info, err := v.mayRunIn(r, who)
	if err != nil {
		return err
	}
	return v.run(w, r, who, info, sessions.ExecutionInfo{Code: asked.Code})
}

// runCellAgain starts the code of a cell, or its script, once more, as a person's. The page offers it for what never ran.
func (v *Viewer) runCellAgain(w http.ResponseWriter, r *http.Request, who visit) error {
	info, err := v.mayRunIn(r, who)
	if err != nil {
		return err
	}
	e, err := v.cell(r, who)
	if err != nil {
		return err
	}
	return v.run(w, r, who, info, e.Info())
}

// run starts code, that of a script in a file or of a cell of its own, and answers with the number of its cell.
func (v *Viewer) run(w http.ResponseWriter, r *http.Request, who visit, info sessions.Info, cell sessions.ExecutionInfo) error {
	e, err := v.Sessions.Execute(r.Context(), who.owner, sessions.Request{
		SessionID: info.ID, Language: info.Language, Code: cell.Code, File: cell.File, Args: cell.Args, Caller: sessions.Person, Attended: true,
		Permit:  mcpserver.PermitProfiles(who.can),
		Timeout: v.longest(info),
	})
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusAccepted, map[string]any{"number": e.Number()})
}

// takeBack takes a cell back that waits: it never runs. One that no person has sent is taken back by who may stop what runs.
func (v *Viewer) takeBack(w http.ResponseWriter, r *http.Request, who visit) error {
	var asked struct{ Cell int }
	if err := readJSON(r, &asked); err != nil {
		return err
	}
	info, err := v.mayRunIn(r, who)
	if err != nil {
		return err
	}
	e, err := v.Sessions.Execution(r.Context(), who.owner, info.ID, asked.Cell)
	if err != nil {
		return err
	}
	if e.Info().Caller != sessions.Person && !who.can(scopeManage) {
		return auth.NeedsScope("taking back a cell that no person has sent", scopeManage)
	}
	if err := v.Sessions.TakeBack(r.Context(), who.owner, info.ID, asked.Cell, sessions.Person); err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, map[string]any{})
}

// answer gives a cell the line that it asks for.
func (v *Viewer) answer(w http.ResponseWriter, r *http.Request, who visit) error {
	var given struct {
		Cell   int
		Prompt string
		Line   string
	}
	if err := readJSON(r, &given); err != nil {
		return err
	}
	if _, err := v.mayRunIn(r, who); err != nil {
		return err
	}
	e, err := v.Sessions.Execution(r.Context(), who.owner, r.PathValue("id"), given.Cell)
	if err != nil {
		return err
	}
	if p := e.Prompt(); p == nil || p.ID != given.Prompt {
		return fault.New(fault.Conflict, "cell %d does not wait for this any more", given.Cell)
	}
	e.Answer(given.Prompt, given.Line)
	return writeJSON(w, http.StatusOK, map[string]any{})
}

// earlierCell is code that was run before.
type earlierCell struct {
	Number int    `json:"number"`
	Code   string `json:"code"`
}

// earlier answers with the code of a session's last cells, the newest first, each code once. What runs a script is nobody's to edit.
func (v *Viewer) earlier(w http.ResponseWriter, r *http.Request, who visit) error {
	infos, err := v.Sessions.Executions(r.Context(), who.owner, r.PathValue("id"), maxEarlier)
	if err != nil {
		return err
	}
	cells, size, seen := []earlierCell{}, 0, map[string]bool{}
	for i := len(infos) - 1; i >= 0 && size < maxEarlierBytes; i-- {
		if code := infos[i].Code; !seen[code] && infos[i].File == "" {
			seen[code] = true
			size += len(code)
			cells = append(cells, earlierCell{infos[i].Number, code})
		}
	}
	return writeJSON(w, http.StatusOK, cells)
}

// number is a whole number of a query, at least 0.
func number(r *http.Request, name string) (int64, error) {
	n, err := strconv.ParseInt(r.URL.Query().Get(name), 10, 64)
	if err != nil || n < 0 {
		return 0, fault.New(fault.Invalid, "%s: is no whole number", name)
	}
	return n, nil
}
