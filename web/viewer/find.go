package viewer

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

const (
	// maxWanted bounds a text that is looked for, in bytes, maxFound the cells in which it is found.
	maxWanted, maxFound = 200, 1000
	// foundAtOnce is how many cells are looked through at once, maxCodeAtOnce bounds their code and maxAtOnce their outputs that are read
	// together.
	foundAtOnce, maxCodeAtOnce, maxAtOnce = 200, 8 << 20, 2000
	// findTime bounds a search: what was not looked through by then is said to be left out.
	findTime = 15 * time.Second
)

// find answers with the numbers of the cells in whose code or texts something stands, in capitals or not. A page has but a few of
// its cells, and cannot tell.
func (v *Viewer) find(w http.ResponseWriter, r *http.Request, who visit) error {
	wanted := strings.ToLower(r.URL.Query().Get("text"))
	if wanted == "" || len(wanted) > maxWanted {
		return fault.New(fault.Invalid, "text is to be what is looked for, at most %d bytes", maxWanted)
	}
	info, _, err := v.describe(r.Context(), who.owner, r.PathValue("id"))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), findTime)
	defer cancel()
	end, err := v.searches.begin(ctx, who.owner)
	if err != nil {
		return err
	}
	defer end()
	found, partial := []int{}, false
	for to := info.Executions; to > 0 && !partial; to -= foundAtOnce { // the last first: they are what is most likely meant
		some, err := v.findIn(ctx, who.owner, info.ID, max(1, to-foundAtOnce+1), to, wanted)
		if err != nil && ctx.Err() == nil {
			return err
		}
		found = slices.Insert(found, 0, some...)
		partial = ctx.Err() != nil || len(found) >= maxFound
	}
	return writeJSON(w, http.StatusOK, map[string]any{"cells": found, "partial": partial})
}

// findIn returns those of the cells with numbers of from to to that have something. Where there is much code it is read in parts.
func (v *Viewer) findIn(ctx context.Context, o sessions.Owner, id string, from, to int, wanted string) (found []int, err error) {
	var stored map[int][]string
	var texts sync.WaitGroup // are read beside the cells, which takes as long
	texts.Go(func() { stored = v.storedTexts(ctx, o, id, from, to) })
	for from <= to {
		cells, err := v.Sessions.ExecutionsFrom(ctx, o, id, from, to-from+1, maxCodeAtOnce)
		texts.Wait()
		if err != nil || len(cells) == 0 {
			return found, err
		}
		for _, e := range cells {
			if ctx.Err() == nil && cellHas(e, stored[e.Number()], wanted) {
				found = append(found, e.Number())
			}
			from = e.Number() + 1
		}
	}
	return found, nil
}

// colours are what a terminal does not show of a text.
var colours = regexp.MustCompile("\x1b\\[[0-9;]*m")

// cellHas tells whether a text in small letters stands in a cell, as far as a page shows that.
func cellHas(e *sessions.Execution, stored []string, wanted string) bool {
	if info := e.Info(); strings.Contains(strings.ToLower(info.Title()), wanted) || strings.Contains(strings.ToLower(info.Code), wanted) {
		return true
	}
	var text string
	if len(stored) == e.Produced() {
		slices.Reverse(stored)
		text = strings.Join(stored, "")
	} else {
		text = textSoFar(e)
	}
	if strings.Contains(text, "\x1b") {
		text = colours.ReplaceAllString(text, "")
	}
	return strings.Contains(strings.ToLower(text), wanted)
}

// textSoFar is what a cell has put out, as far as a page shows that.
func textSoFar(e *sessions.Execution) string {
	var text strings.Builder
	may := budget{outputs: maxCellOutputs, bytes: maxCellBytes}
	for out := range e.SoFar(0) {
		if !may.takes(out.Output) {
			break
		}
		text.WriteString(textOf(out.Output))
	}
	return text.String()
}

// storedTexts are the texts of those outputs of cells in a row that are stored, by the cells' numbers, the last first. They are read at
// once, because one by one that takes ten times as long; there are none where the cells have put out much.
func (v *Viewer) storedTexts(ctx context.Context, o sessions.Owner, id string, from, to int) map[int][]string {
	texts, may := map[int][]string{}, budget{outputs: maxAtOnce, bytes: maxCellBytes}
	for f, err := range v.Sessions.FindOutputs(ctx, o, id, sessions.OutputQuery{From: from, To: to, Limit: maxAtOnce + 1}) {
		if err != nil || !may.takes(f.Output) {
			return nil
		}
		texts[f.Number] = append(texts[f.Number], textOf(f.Output))
	}
	return texts
}
