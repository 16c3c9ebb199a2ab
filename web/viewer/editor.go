package viewer

import "net/http"

// editorRoutes are the addresses of the session page's editor.
func (v *Viewer) editorRoutes() []route { return nil }

// editorPart is what templates/parts/editor.html shows.
func (v *Viewer) editorPart(*http.Request, visit, sessionView) (any, error) { return nil, nil }
