package viewer

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

const (
	// sessionsTopic tells of an owner's sessions.
	sessionsTopic = "sessions"
	// maxPast bounds the sessions that are listed though they do not run.
	maxPast = 200
	// maxLast bounds what is shown of a session's last cell, in bytes.
	maxLast = 120
)

const (
	scopeManage     = mcpserver.ScopeManage
	scopeFilesRead  = mcpserver.ScopeFilesRead
	scopeFilesWrite = mcpserver.ScopeFilesWrite
)

// sessionRow is one session as the list shows it.
type sessionRow struct {
	sessions.Info
	// Running tells whether it runs; one that has ended has files and its history.
	Running bool
	// Since is when the running cell began, zero when none runs, and Cell its number.
	Since time.Time
	Cell  int
	// Code is the first line of its last cell, and Caller who ran that.
	Code, Caller string
	// Why says why it has no kernel, or is closed.
	Why string
	// MayManage tells whether the visitor may stop things.
	MayManage bool
	// MayDelete tells whether he may delete all that is kept of a session that has ended.
	MayDelete bool
}

// sessionList is what the sessions page shows.
type sessionList struct {
	Rows      []sessionRow
	Languages []language
	// Profiles are those that the visitor may use.
	Profiles []string
	// ListImages tells whether the visitor may choose from the images that there are, NameImage whether he can but name one.
	ListImages, NameImage bool
	MCPURL                string
	// Others is how many sessions of others run, for who may see those: 0 for anybody else.
	Others int
}

// language is one that the visitor may run.
type language struct{ Name, Title string }

func (v *Viewer) sessionsPage(w http.ResponseWriter, r *http.Request, who visit) error {
	list := sessionList{Languages: v.languages(who), Profiles: v.profiles(who), ListImages: who.can(mcpserver.ScopeImages), NameImage: v.nameImage(who), MCPURL: v.PublicURL + "/mcp"}
	if who.can(mcpserver.ScopeRead) {
		rows, err := v.rows(r.Context(), who)
		if err != nil {
			return err
		}
		list.Rows = rows
	}
	if v.operates(who) {
		list.Others = v.othersRun(who)
	}
	return v.show(w, http.StatusOK, "sessions", page{Title: "Sessions", Here: "/", Who: who, Parts: []string{"sessions"}, Body: list})
}

// othersRun is how many sessions of others than the visitor run.
func (v *Viewer) othersRun(who visit) (n int) {
	for _, s := range v.Sessions.All() {
		if s.Owner != who.owner {
			n++
		}
	}
	return n
}

// languages are those that the visitor may run, by name.
func (v *Viewer) languages(who visit) (may []language) {
	for name, runtime := range v.Sessions.Config().Runtimes {
		if who.mayRun(name) {
			may = append(may, language{name, cmp.Or(runtime.Title, name)})
		}
	}
	slices.SortFunc(may, func(a, b language) int { return cmp.Compare(a.Title, b.Title) })
	if i := slices.IndexFunc(may, func(l language) bool { return l.Name == "python" }); i > 0 { // most want it
		python := may[i]
		may = slices.Insert(slices.Delete(may, i, i+1), 0, python)
	}
	return may
}

// profiles are those that the visitor may use for a session that stays, the default one first.
func (v *Viewer) profiles(who visit) []string {
	names := []string{sessions.DefaultProfile}
	for _, name := range slices.Sorted(maps.Keys(v.Sessions.Config().Profiles)) {
		if name != sessions.DefaultProfile && !v.Sessions.Config().Profiles[name].Once && who.permit(name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// rows are the visitor's sessions, those that run first, the last used of each before the others.
func (v *Viewer) rows(ctx context.Context, who visit) ([]sessionRow, error) {
	running, err := v.Sessions.List(ctx, who.owner)
	if err != nil {
		return nil, err
	}
	past, err := v.Sessions.Known(ctx, who.owner)
	if err != nil {
		return nil, err
	}
	last := map[string]sessions.StoredCell{}
	for _, s := range past {
		last[s.ID] = s.Last
	}
	var rows []sessionRow
	runs := map[string]bool{}
	for _, info := range running {
		runs[info.ID] = true
		row := rowOf(v.named(who.owner, info), who)
		if info.Last == nil { // no cell has run since the server started
			row.tellLast(last[info.ID])
		}
		rows = append(rows, row)
	}
	for _, s := range past[:min(len(past), maxPast)] {
		if !runs[s.ID] {
			rows = append(rows, pastRow(s, v.named(who.owner, infoOf(s)), who))
		}
	}
	return rows, nil
}

// rowOf is the row of a session that runs.
func rowOf(info sessions.Info, who visit) sessionRow {
	row := sessionRow{Info: info, Running: true, Why: info.Lost, MayManage: who.can(scopeManage)}
	if info.Last != nil {
		last := info.Last.Info()
		row.Code, row.Caller = firstLine(last.Title()), whoRan(last.Caller)
		if last.Phase == sessions.PhaseRunning {
			row.Since, row.Cell = last.Started, last.Number
		}
	}
	return row
}

// named is what is known of a session, with its image called as its owner calls it.
func (v *Viewer) named(o sessions.Owner, info sessions.Info) sessions.Info {
	info.Image = v.Sessions.Config().NameOfImage(o, info.Image)
	return info
}

// pastRow is the row of a session that does not run.
func pastRow(s sessions.StoredSession, info sessions.Info, who visit) sessionRow {
	row := sessionRow{Info: info, Why: s.Why, MayManage: who.can(scopeManage), MayDelete: who.can(scopeManage) && who.can(scopeFilesWrite) && !s.Held}
	row.tellLast(s.Last)
	if s.Held {
		row.Why = "it runs in another process"
	}
	return row
}

// tellLast tells of the session's last cell as it is kept.
func (r *sessionRow) tellLast(last sessions.StoredCell) {
	r.Code, r.Caller = firstLine(last.Title()), whoRan(last.Caller)
}

// infoOf describes a session that does not run.
func infoOf(s sessions.StoredSession) sessions.Info {
	return sessions.Info{
		ID: s.ID, Choice: sessions.Choice{Language: s.Language, Profile: s.Profile, Image: s.Image}, State: sessions.Closed, Generation: s.Generations, Executions: s.Executions,
		Created: s.Created, LastUsed: s.Used, Lost: s.Why,
	}
}

// describe describes a session, whether it runs or not, with its image called as its owner calls it. Its error is NotFound only where
// the store has been heard: one that fails may well have the session.
func (v *Viewer) describe(ctx context.Context, o sessions.Owner, id string) (info sessions.Info, running bool, err error) {
	info, err = v.Sessions.Get(ctx, o, id)
	if err == nil {
		return v.named(o, info), true, nil
	}
	past, storeErr := v.Sessions.KnownSession(ctx, o, id)
	switch {
	case fault.KindOf(storeErr) == fault.NotFound:
		return info, false, err
	case storeErr != nil:
		return info, false, storeErr
	}
	return v.named(o, infoOf(past)), false, nil
}

// firstLine is the first line of code that says something.
func firstLine(code string) string {
	for line := range strings.Lines(code) {
		if line = strings.TrimSpace(line); line != "" {
			if len(line) > maxLast {
				return strings.ToValidUTF8(line[:maxLast], "") + "…"
			}
			return line
		}
	}
	return ""
}
