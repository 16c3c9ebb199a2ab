package viewer

import (
	"context"
	"net/http"

	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

// cellsRoutes are the addresses of the session page's cells.
func (v *Viewer) cellsRoutes() []route { return nil }

// cellsPart is what templates/parts/cells.html shows.
func (v *Viewer) cellsPart(r *http.Request, who visit, s sessionView) (any, error) {
	return v.Sessions.Executions(r.Context(), who.owner, s.ID, 100)
}

// cellsTopic tells of a session's cells and its state.
func (v *Viewer) cellsTopic(who visit, id string) live.Topic {
	return func(ctx context.Context, _ string, send func(live.Event) error) error {
		for {
			changed := v.Sessions.Changed(who.owner, id)
			info, _, err := v.describe(ctx, who.owner, id)
			if err != nil {
				return err
			}
			if err := send(live.Event{Name: "state", Data: stateOf(info)}); err != nil {
				return err
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
	}
}

// stateOf is what pages are told of a session's state.
func stateOf(info sessions.Info) map[string]any {
	return map[string]any{"state": info.State, "busy": info.Busy.Seconds(), "queue": info.Queue, "generation": info.Generation}
}
