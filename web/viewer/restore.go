package viewer

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// restoreSession runs the cells of a lost kernel again, and answers when that is done. It goes on when the page that asked for it has
// gone. When the server stops, or the sign-in has ended, no further cell is sent, and the one that runs goes on.
func (v *Viewer) restoreSession(w http.ResponseWriter, r *http.Request, who visit) error {
	info, err := v.mayRunIn(r, who)
	if err != nil {
		return err
	}
	report, err := v.Sessions.RestoreSession(context.WithoutCancel(r.Context()), who.owner, info.ID, sessions.RestoreOptions{
		Caller: sessions.Person, Permit: v.permitSignedIn(r, who), Timeout: v.longest(info), Leave: v.draining,
	})
	if err != nil {
		return err
	}
	said, complete := restored(report)
	return writeJSON(w, http.StatusOK, map[string]any{"ran": report.Ran(), "said": said, "complete": complete})
}

// permitSignedIn permits the profiles that the visitor may use, while the sign-in holds.
func (v *Viewer) permitSignedIn(r *http.Request, who visit) func(profile string) error {
	return func(profile string) error {
		if !v.holds(r, who) {
			return fault.New(fault.Unauthenticated, "the sign-in has ended")
		}
		return mcpserver.PermitProfiles(who.can)(profile)
	}
}

// restored says what became of a restoration, and whether all cells ran that there were, those of kernels before the last among them.
func restored(r sessions.RestoreReport) (said string, complete bool) {
	if r.Loaded != "" && len(r.Cells)+r.Left+r.Done == 0 {
		return "The variables that the last kernel had saved are back: no cell was run again.", true
	}
	var parts []string
	if r.Loaded != "" {
		parts = append(parts, "The variables that the last kernel had saved are back.")
	}
	parts = append(parts, words.Count(int64(r.Ran()), "cell")+" ran again.")
	if r.Done > 0 {
		parts = append(parts, words.Count(int64(r.Done), "cell")+" had been run again before.")
	}
	skipped, whys := map[string][]int{}, []string{}
	for _, c := range r.Cells {
		if c.Skipped != "" && skipped[c.Skipped] == nil {
			whys = append(whys, c.Skipped)
		}
		if c.Skipped != "" {
			skipped[c.Skipped] = append(skipped[c.Skipped], c.Original)
		}
	}
	for _, why := range whys {
		parts = append(parts, leftOut(skipped[why], why))
	}
	if r.Stopped != "" {
		parts = append(parts, "It stopped: "+strings.TrimSuffix(r.Stopped, ".")+".")
	}
	if r.Left > 0 {
		parts = append(parts, words.Count(int64(r.Left), "cell")+" not reached.")
	}
	if r.Missing > 0 {
		parts = append(parts, words.Count(int64(r.Missing), "earlier cell")+" no longer kept.")
	}
	if r.Earlier > 0 {
		parts = append(parts, "Only the last kernel's cells: those of kernels before it did not run again.")
	}
	return strings.Join(parts, " "), len(whys) == 0 && r.Stopped == "" && r.Left == 0 && r.Missing == 0 && r.Earlier == 0
}

// maxNamed bounds the cells that are named one by one.
const maxNamed = 10

// leftOut names cells that were left out for the same reason: "Cells 3 and 4 were left out: each reads input()."
func leftOut(cells []int, why string) string {
	if len(cells) == 1 {
		return fmt.Sprintf("Cell %d was left out: %s.", cells[0], why)
	}
	why = "each " + strings.TrimPrefix(why, "it ")
	var named []string
	for _, n := range cells[:min(len(cells), maxNamed)] {
		named = append(named, fmt.Sprint(n))
	}
	last := len(named) - 1
	if more := len(cells) - len(named); more > 0 {
		return fmt.Sprintf("Cells %s and %d others were left out: %s.", strings.Join(named, ", "), more, why)
	}
	return fmt.Sprintf("Cells %s and %s were left out: %s.", strings.Join(named[:last], ", "), named[last], why)
}
