package viewer

import (
	"net/http"

	"cellblock/sessions"
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
	if err := sessions.ValidateID(id); err != nil {
		return err
	}
	s, err := v.sessionView(r, who, id)
	if err != nil {
		return err
	}
	return v.show(w, http.StatusOK, "session", page{Title: id, Who: who, Parts: []string{"session", "cells", "editor", "panel"}, Body: s})
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
