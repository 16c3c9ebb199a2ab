package htmltext

import (
	"slices"
	"strings"
)

// table is a table of which a row after the other is laid out (HTML, "Forming a table"): a cell stands under its heading, also
// where others reach over columns or rows.
type table struct {
	outer flow     // what the table stands in, while a cell is open
	row   []string // the texts of the open row's cells
	rows  int      // those that are closed
	until []int    // by column, the row that the last cell there does not reach into any more
	inRow bool
	open  bool // a cell is being laid out
	last  attributes
}

// table is the innermost one; nil outside of any, where rows and cells mean nothing.
func (w *writer) table() *table {
	if len(w.tables) == 0 {
		return nil
	}
	return w.tables[len(w.tables)-1]
}

const (
	// maxTables is how many tables may be open within each other: the text of a cell is copied for each.
	maxTables = 20
	// maxSpan is how many rows a cell reaches over at most, as in browsers.
	maxSpan = 65534
)

// openTable begins a table. Of one that is too deep, rows and cells are those of the one around it.
func (w *writer) openTable() {
	if len(w.tables) == maxTables {
		w.deeper++
		return
	}
	w.tables = append(w.tables, &table{})
}

func (w *writer) closeTable() {
	if w.deeper > 0 {
		w.deeper--
		return
	}
	w.closeTables(len(w.tables) - 1)
}

// openRow ends the row before, as HTML may leave that out.
func (w *writer) openRow() {
	w.closeRow()
	if t := w.table(); t != nil {
		t.inRow = true
	}
}

func (w *writer) openCell(a attributes) {
	w.closeCell()
	t := w.table()
	if t == nil {
		w.space = true
		return
	}
	t.inRow, t.open, t.last = true, true, a
	w.reach(t)
	t.outer, w.flow = w.flow, newFlow()
}

// closeCell puts the open cell into its row. What it spans stays blank, as in the tables that libraries print.
func (w *writer) closeCell() {
	t := w.table()
	if t == nil || !t.open {
		return
	}
	text := strings.TrimSpace(w.b.String())
	w.flow, t.open = t.outer, false
	t.add(text, t.last.rows)
	for range t.last.columns - 1 {
		if !w.blank() {
			return
		}
		t.add("", t.last.rows)
	}
}

// add puts a cell of so many rows at the end of the open row.
func (t *table) add(text string, rows int) {
	column := len(t.row)
	if column == len(t.until) {
		t.until = append(t.until, 0)
	}
	t.until[column] = t.rows + min(max(1, rows), maxSpan)
	t.row = append(t.row, text)
}

// reach leaves the next columns blank into which cells reach from above.
func (w *writer) reach(t *table) {
	for len(t.row) < len(t.until) && t.until[len(t.row)] > t.rows && w.blank() {
		t.add("", t.until[len(t.row)]-t.rows)
	}
}

// blank takes a column that is spanned from those that may be.
func (w *writer) blank() bool {
	w.blanks--
	return w.blanks >= 0
}

// closeRow writes the row as a line.
func (w *writer) closeRow() {
	w.closeCell()
	t := w.table()
	if t == nil || !t.inRow {
		return
	}
	w.reach(t)
	w.line()
	if row := t.text(); row != "" {
		w.write(row)
	}
	w.line()
	t.row, t.inRow = t.row[:0], false
	t.rows++
}

// text is the open row's. The lines of a cell are parts of the row's, unless it is the only one with text: pages are laid out so.
func (t *table) text() string {
	if all := strings.Join(t.row, ""); slices.Contains(t.row, all) && strings.Contains(all, "\n") {
		return all
	}
	for i, cell := range t.row {
		t.row[i] = strings.ReplaceAll(cell, "\n", " / ")
	}
	return strings.Join(t.row, " | ")
}

// closeTables closes all but the n outermost tables.
func (w *writer) closeTables(n int) {
	for len(w.tables) > max(n, 0) {
		w.closeRow()
		w.tables = w.tables[:len(w.tables)-1]
	}
}
