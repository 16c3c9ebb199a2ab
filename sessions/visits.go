package sessions

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Person is the Request.Caller of cells that a person has typed in the viewer. No MCP client is called so.
const Person = "a person in the viewer"

// visits are whose a session's last cells were, oldest first. A model that comes back to a session in which a person has worked
// meanwhile is told so, because its variables may not be what it has left. Guarded by the session's lock.
type visits struct {
	cells []visit
	// unheard is what was told to a person's cells, and not to those of clients yet.
	unheard []string
}

// visit is one cell, and who asked for it.
type visit struct {
	number int
	caller string
}

// maxVisits bounds how many cells are remembered. What a person did before is in the history only.
const maxVisits = 200

func (v *visits) clone() visits {
	return visits{cells: slices.Clone(v.cells), unheard: slices.Clone(v.unheard)}
}

// note remembers whose a cell is; one that is run once more is known already.
func (v *visits) note(number int, caller string) {
	i, known := slices.BinarySearchFunc(v.cells, number, func(c visit, n int) int { return cmp.Compare(c.number, n) })
	if known {
		return
	}
	v.cells = slices.Insert(v.cells, i, visit{number, caller})
	v.cells = v.cells[max(0, len(v.cells)-maxVisits):]
}

// recall is note for cells of an earlier process.
func (v *visits) recall(cells []StoredExecution) {
	for _, e := range cells {
		if !e.Started.IsZero() {
			v.note(e.Number, e.Caller)
		}
	}
}

// between returns the cells that a person ran since a caller's last one before a number.
func (v *visits) between(caller string, number int) (cells []int) {
	for _, c := range v.cells {
		switch {
		case c.number >= number:
			return cells
		case c.caller == caller:
			cells = nil
		case c.caller == Person:
			cells = append(cells, c.number)
		}
	}
	return cells
}

// hear returns the news of a cell: a client also hears what so far only a person was told.
func (v *visits) hear(caller string, news []string) []string {
	if caller == Person {
		for _, one := range news {
			if !slices.Contains(v.unheard, one) { // the cell may be run once more
				v.unheard = append(v.unheard, one)
			}
		}
		v.unheard = v.unheard[max(0, len(v.unheard)-maxNews):]
		return news
	}
	news = append(v.unheard, news...)
	v.unheard = nil
	return news
}

// visited tells a client's cell that a person ran cells since its last one; empty if none did.
func (v *visits) visited(e *Execution) string {
	if e.caller == Person {
		return ""
	}
	switch cells := v.between(e.caller, e.number); len(cells) {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("Before this cell a person ran %s here in the viewer; get_execution reads it.", cellsText(cells))
	default:
		return fmt.Sprintf("Before this cell a person ran %s here in the viewer; get_execution reads them.", cellsText(cells))
	}
}

// cellsText names several cells: "cells 4–6 and 9". Of many it names the last.
func cellsText(cells []int) string {
	var spans []string
	for i := 0; i < len(cells); {
		j := i
		for j+1 < len(cells) && cells[j+1] == cells[j]+1 {
			j++
		}
		span := strconv.Itoa(cells[i])
		if j > i {
			span += "–" + strconv.Itoa(cells[j])
		}
		spans = append(spans, span)
		i = j + 1
	}
	const most = 6
	if more := len(spans) - most; more > 0 {
		spans = append([]string{"…"}, spans[more:]...)
	}
	last := len(spans) - 1
	switch {
	case len(cells) == 1:
		return "cell " + spans[0]
	case last == 0:
		return "cells " + spans[0]
	}
	return "cells " + strings.Join(spans[:last], ", ") + " and " + spans[last]
}
