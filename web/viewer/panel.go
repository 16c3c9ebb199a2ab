package viewer

import "net/http"

// panelRoutes are the addresses of the session page's side panel.
func (v *Viewer) panelRoutes() []route { return nil }

// panelPart is what templates/parts/panel.html shows.
func (v *Viewer) panelPart(*http.Request, visit, sessionView) (any, error) { return nil, nil }
