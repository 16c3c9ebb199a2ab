package viewer

import (
	"net/http"
	"strings"
	"testing"

	"cellblock/kernels"
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

// What a session uses stands before what it may use, and only while it has a kernel.
func TestUsedOf(t *testing.T) {
	limits := kernels.Limits{Memory: 2 << 30, CPUs: 1.5}
	samples := []sessions.Sample{{Memory: 1 << 20}, {Memory: 3 << 20, CPU: 0.5}}
	for state, want := range map[sessions.State][2]string{sessions.Busy: {"3 MiB of 2 GiB", "50 % of 150 %"}, sessions.Died: {"2 GiB", "150 %"}} {
		got := usedOf(limits, sessions.Info{State: state}, samples)
		if got[0].Value != want[0] || got[1].Value != want[1] {
			t.Errorf("%s: %+v", state, got)
		}
	}
	if got := usedOf(kernels.Limits{}, sessions.Info{State: sessions.Idle}, nil); got[0].Value != "" || got[1].Value != "" {
		t.Errorf("of what is not known: %+v", got)
	}
}

// What is measured every few seconds is not read out each time: an <output> is, if nothing else is said.
func TestSamplesAreNotReadOut(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	page := p.signIn("ann", all...).want(http.StatusOK, "GET", "/s/s", nil)
	for _, id := range []string{"memory-now", "cpu-now"} {
		if !strings.Contains(page, `<output id="`+id+`" aria-live="off">`) {
			t.Errorf("%s is read out", id)
		}
	}
}
