package viewer

import (
	"context"
	"net/http"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

// sessionView is what the session page and its parts show.
type sessionView struct {
	sessions.Info
	// Running tells whether the session runs; one that has ended has its history only.
	Running bool
	// MayRun, MayManage, MayReadFiles and MayWriteFiles are what the visitor may do here.
	MayRun, MayManage, MayReadFiles, MayWriteFiles bool
	// Cells, Editor and Panel are each part's own.
	Cells, Editor, Panel any
}

// sessionPage shows one session: cells, editor and side panel.
func (v *Viewer) sessionPage(w http.ResponseWriter, r *http.Request, who visit) error {
	id := r.PathValue("id")
	if err := sessionid.Validate(id); err != nil {
		return err
	}
	s, err := v.sessionView(r, who, id)
	if err != nil {
		return err
	}
	return v.show(w, http.StatusOK, "session", page{Title: id, Who: who, Parts: []string{"session", "cells", "editor", "panel"}, Body: s})
}

// sessionElsewhere leads who has typed an address by heart to the page of a session, whether there is one or not: that page says so to
// whom may know. Ids have nothing in them that could lead elsewhere.
func (v *Viewer) sessionElsewhere(w http.ResponseWriter, r *http.Request, who visit) error {
	page := "/s/" + r.PathValue("id")
	if !ownPage(page) {
		return v.notFound(w, r, who)
	}
	http.Redirect(w, r, page, http.StatusSeeOther)
	return nil
}

// sessionView describes a session, and has each part describe its own.
func (v *Viewer) sessionView(r *http.Request, who visit, id string) (s sessionView, err error) {
	if s.Info, s.Running, err = v.describe(r.Context(), who.owner, id); err != nil {
		return s, err
	}
	s.MayRun, s.MayManage = who.mayRun(s.Language), who.can(scopeManage)
	s.MayReadFiles, s.MayWriteFiles = who.can(scopeFilesRead), who.can(scopeFilesWrite)
	for _, part := range []struct {
		into *any
		make func(*http.Request, visit, sessionView) (any, error)
	}{{&s.Cells, v.cellsPart}, {&s.Editor, v.editorPart}, {&s.Panel, v.panelPart}} {
		if *part.into, err = part.make(r, who, s); err != nil {
			return s, err
		}
	}
	return s, nil
}

// gone is what pages are told of a session of which nothing is kept.
var gone = sessionState{State: sessions.Closed, Plain: "deleted", Lost: "nothing of it is kept, and this page is all that shows it"}

// stateTopic tells of a session's state, also that it is gone, and of the next one of its name.
func (v *Viewer) stateTopic(who visit, id string) live.Topic {
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		var sent sessionState
		for {
			changed := v.Sessions.Changed(who.owner, id)
			info, _, err := v.describe(ctx, who.owner, id)
			now := stateOf(info)
			if fault.KindOf(err) == fault.NotFound {
				now = gone
			} else if err != nil {
				return err
			}
			if now != sent {
				sent = now
				if err := send(live.Event{Name: "state", Data: now}); err != nil {
					return err
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// sessionState is what pages are told of a session's state.
type sessionState struct {
	State      sessions.State `json:"state"`
	Plain      string         `json:"plain"`
	Queue      int            `json:"queue"`
	Generation int            `json:"generation"`
	// Running is the number of the cell that runs, 0 for none, and Since when it began.
	Running int    `json:"running"`
	Since   string `json:"since"`
	// Asks tells that it waits for a line of input, and Failed, where none runs, that the last one has failed.
	Asks   bool `json:"asks,omitempty"`
	Failed bool `json:"failed,omitempty"`
	// Lost says why there is no kernel.
	Lost string `json:"lost"`
	// Began is when the session did, empty where nothing of it is kept: one that began at another time is another one.
	Began string `json:"began,omitempty"`
}

func stateOf(info sessions.Info) sessionState {
	s := sessionState{State: info.State, Plain: info.State.Plain(), Queue: info.Queue, Generation: info.Generation, Lost: info.Lost, Began: rfc3339(info.Created)}
	if info.Last == nil {
		return s
	}
	switch last := info.Last.Info(); last.Phase {
	case sessions.PhaseRunning:
		s.Running, s.Since = last.Number, last.Started.UTC().Format(time.RFC3339Nano)
		s.Asks = info.Last.Prompt() != nil
	case sessions.PhaseEnded:
		status, _ := statusOf(last)
		s.Failed = status == "failed"
	}
	return s
}
