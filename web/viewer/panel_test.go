package viewer

import (
	"strings"
	"testing"

	"cellblock/sessions"
)

// Data comes first, the newest before the others, then what was defined or imported to work with it.
func TestDataComesFirst(t *testing.T) {
	rows := []variableRow{{Name: "np", Type: "module"}, {Name: "sales", Type: "DataFrame"}, {Name: "Shop", Type: "type"}, {Name: "clean", Type: "function"}, {Name: "n", Type: "int"}}
	dataFirst(rows)
	var names []string
	for _, row := range rows {
		names = append(names, row.Name)
	}
	if got := strings.Join(names, " "); got != "sales n clean Shop np" {
		t.Errorf("the variables are %s", got)
	}
}

// A page says how many cells are no longer kept.
func TestDroppedCellsAreTold(t *testing.T) {
	for dropped, want := range map[int]string{0: "", 1: "The first cell is no longer kept", 120: "The first 120 cells are no longer kept"} {
		html, err := partial("cells", sessionView{Cells: cellsView{First: dropped + 1, Dropped: dropped}})
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(html, want) || (want == "") == strings.Contains(html, "no longer kept") {
			t.Errorf("%d dropped: %s", dropped, html)
		}
	}
}

// The parts of a size are not torn apart, and a text has characters.
func TestSizesOfVariables(t *testing.T) {
	n, bytes := int64(1116), int64(1127)
	row := rowOfVariable(sessions.Variable{Name: "text", Type: "str", Length: &n, Bytes: &bytes})
	if row.Size != "1,116\u00a0characters · 1.1\u00a0KiB" {
		t.Errorf("%q", row.Size)
	}
}

// A long name is broken where its words are, and a function's value does not say it once more.
func TestNamesOfVariables(t *testing.T) {
	row := rowOfVariable(sessions.Variable{Name: "set_matplotlib_close", Type: "function", Preview: "set_matplotlib_close(close)"})
	html, err := partial("variables", struct {
		Rows []variableRow
		More int
	}{Rows: []variableRow{row}})
	if err != nil || !strings.Contains(html, "set_<wbr>matplotlib_<wbr>close</code>") || !strings.Contains(html, `title="(close)"`) {
		t.Errorf("%v: %s", err, html)
	}
}
