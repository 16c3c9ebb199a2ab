package viewer

import (
	"context"

	"cellblock/kernels"
	"cellblock/sessions"
)

// maxUpdates bounds how many updates of displays are looked through for the last of each, the last ones first.
const maxUpdates = 500

// updates are the last updates of displays that cells behind some cell have made, by the display's name.
type updates struct {
	last map[string]*item
}

// findUpdates looks for updates that cells from a number on have made.
func (v *Viewer) findUpdates(ctx context.Context, o sessions.Owner, id string, from int) *updates {
	u := &updates{last: map[string]*item{}}
	of := map[int]int{}
	for f, err := range v.Sessions.FindOutputs(ctx, o, id, sessions.OutputQuery{Kind: kernels.OutputUpdate, From: from, To: 1 << 30, Limit: maxUpdates}) {
		if err != nil {
			break // what was shown first is better than nothing
		}
		if _, known := of[f.Number]; !known {
			if e, err := v.Sessions.Execution(ctx, o, id, f.Number); err == nil {
				of[f.Number] = e.Generation()
			}
		}
		name := displayName(of[f.Number], f.Output.DisplayID)
		if u.last[name] == nil {
			u.last[name] = &item{out: f.Output, number: f.Number, index: f.Index}
		}
	}
	return u
}

// update gives the displays of a cell the content that later cells gave them.
func (b *block) update(ctx context.Context, s *shown) {
	for _, it := range s.items {
		if it.Display == "" {
			continue
		}
		if b.updates == nil {
			b.updates = b.v.findUpdates(ctx, b.owner, b.id, b.from+1)
		}
		if later := b.updates.last[it.Display]; later != nil && later.number > s.number {
			s.fill(it, later.out, later.number, later.index)
		}
	}
}
