package render

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

// Columns of numbers are marked, with their heads, whatever cells reach over several columns or rows; those with any text are not.
func TestNumbersInTables(t *testing.T) {
	for name, tt := range map[string]struct {
		table string
		want  string
	}{
		"text":                 {`<tr><th>name</th></tr><tr><td>Ada</td></tr>`, ""},
		"numbers":              {`<tr><th>n</th></tr><tr><td>-1,234.5</td></tr><tr><td>1e-05</td></tr><tr><td>7 %</td></tr><tr><td>inf</td></tr>`, "n,-1,234.5,1e-05,7 %,inf"},
		"numbers in bold":      {`<tr><td><b>1</b></td></tr>`, "1"},
		"numbers and text":     {`<tr><td>1</td></tr><tr><td>b</td></tr>`, ""},
		"what is missing":      {`<tr><td>1</td><td>NaN</td></tr><tr><td>...</td><td>None</td></tr><tr><td>NaN</td><td></td></tr>`, "1,...,NaN"},
		"dates":                {`<tr><td>2026-01-02</td></tr>`, ""},
		"an index":             {`<thead><tr><th></th><th>city</th></tr></thead><tbody><tr><th>0</th><td>Bern</td></tr></tbody>`, ",0"},
		"heads of two levels":  {`<thead><tr><th></th><th colspan="2">age</th><th>x</th></tr><tr><th></th><th>min</th><th>max</th><th></th></tr></thead><tr><th>a</th><td>1</td><td>2</td><td>3</td></tr>`, "x,min,max,,1,2,3"},
		"an index of two":      {`<tr><th rowspan="2">Bern</th><th>a</th><td>1</td></tr><tr><th>b</th><td>2</td></tr><tr><th>Rome</th><th>c</th><td>3</td></tr>`, "1,2,3"},
		"a table in another":   {`<tr><td>a<table><tr><td>1</td></tr></table></td><td>2</td></tr>`, "1,2"},
		"more columns than is": {`<tr><td colspan="99999999">a</td><td>1</td></tr>`, ""},
	} {
		made, ok := HTML("<table>" + tt.table + "</table>")
		root, err := html.ParseFragment(strings.NewReader(string(made)), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
		if !ok || err != nil {
			t.Fatalf("%s: %v %v", name, ok, err)
		}
		var got []string
		for n := range root[0].Descendants() {
			if slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "class" && a.Val == "number" }) {
				got = append(got, contentOf(n))
			}
		}
		if strings.Join(got, ",") != tt.want {
			t.Errorf("%s: %q are marked, want %q in\n%s", name, got, tt.want, made)
		}
	}
}

// The columns that name rows are marked by their number, with their heads, at all levels of both; what only looks like them is not.
func TestIndexOfTables(t *testing.T) {
	for name, tt := range map[string]struct{ table, want string }{
		"none":                {`<thead><tr><th>a</th></tr></thead><tr><td>1</td></tr>`, ""},
		"one level":           {`<thead><tr><th></th><th>a</th></tr></thead><tr><th>x</th><td>1</td></tr>`, "0: 0:x"},
		"two levels":          {`<thead><tr><th>i</th><th>j</th><th>a</th></tr></thead><tr><th rowspan="2">x</th><th>1</th><td>5</td></tr><tr><th>2</th><td>6</td></tr>`, "0:i 1:j 0:x 1:1 1:2"},
		"columns of two":      {`<thead><tr><th></th><th colspan="2">a</th></tr><tr><th></th><th>b</th><th>c</th></tr></thead><tr><th>x</th><td>1</td><td>2</td></tr>`, "0: 0: 0:x"},
		"names in some rows":  {`<tr><th>x</th><td>1</td></tr><tr><td>y</td><td>2</td></tr>`, ""},
		"names at the end":    {`<tr><td>1</td><th>x</th></tr>`, ""},
		"nothing but heads":   {`<tr><th>a</th><th>b</th></tr>`, ""},
		"more levels than is": {`<tr>` + strings.Repeat(`<th>x</th>`, maxIndex+1) + `<td>1</td></tr>`, "0:x 1:x 2:x 3:x"},
	} {
		made, _ := HTML("<table>" + tt.table + "</table>")
		root, err := html.ParseFragment(strings.NewReader(string(made)), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for n := range root[0].Descendants() {
			if i := slices.IndexFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "data-index" }); i >= 0 {
				got = append(got, n.Attr[i].Val+":"+contentOf(n))
			}
		}
		if strings.Join(got, " ") != tt.want {
			t.Errorf("%s: %q are marked, want %q in\n%s", name, got, tt.want, made)
		}
	}
}
