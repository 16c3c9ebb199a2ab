package render

import (
	"iter"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
)

var (
	// numberForm is a number as tables have them, with a point or a comma, thousands apart, or in per cent.
	numberForm = regexp.MustCompile(`^[-+−]?((\d+|\d{1,3}([, ]\d{3})+)?([.,]?\d+)([eE][-+]?\d+)?( ?%)?|inf)$`)
	// missingForm is a field of which nothing is known, or one that stands for those that are left out.
	missingForm = regexp.MustCompile(`^(|NA|N/A|<NA>|[Nn]a[Nn]|NaT|null|NULL|None|-|\.{3}|…)$`)
)

// Numeric tells whether a column of a table has numbers and nothing else: they stand one under the other at the right. Text begins at
// the left.
func Numeric(column iter.Seq[string]) bool {
	some := false
	for field := range column {
		field = strings.TrimSpace(field)
		if missingForm.MatchString(field) {
			continue
		}
		if !numberForm.MatchString(field) {
			return false
		}
		some = true
	}
	return some
}

// maxColumns bounds the columns of a table whose content is looked at; those beyond are shown as text.
const maxColumns = 1000

// cellOf is a cell of a table in its column. One over several columns belongs to none.
type cellOf struct {
	node   *html.Node
	column int
	head   bool
}

// markColumns marks the cells of a table's numeric columns, and those of its index, with those in their heads.
func markColumns(table *html.Node) {
	columns := map[int][]cellOf{}
	for _, c := range cellsOf(table) {
		columns[c.column] = append(columns[c.column], c)
	}
	markNumbers(columns)
	markIndex(columns)
}

// maxIndex bounds the levels of an index that are marked.
const maxIndex = 4

// markIndex gives the cells of the first columns that name rows, and nothing else, the number of their column.
func markIndex(columns map[int][]cellOf) {
	for n := range maxIndex {
		names := 0
		for _, c := range columns[n] {
			switch {
			case c.head:
			case c.node.DataAtom == atom.Th:
				names++
			default:
				return
			}
		}
		if names == 0 {
			return
		}
		for _, c := range columns[n] {
			c.node.Attr = append(c.node.Attr, html.Attribute{Key: "data-index", Val: strconv.Itoa(n)})
		}
	}
}

// markNumbers gives the cells of numeric columns their class.
func markNumbers(columns map[int][]cellOf) {
	for _, column := range columns {
		numeric := Numeric(func(yield func(string) bool) {
			for _, c := range column {
				if !c.head && !yield(contentOf(c.node)) {
					return
				}
			}
		})
		if !numeric {
			continue
		}
		for _, c := range column {
			c.node.Attr = append(c.node.Attr, html.Attribute{Key: "class", Val: "number"})
		}
	}
}

// cellsOf are the cells of a table that are as wide as a column.
func cellsOf(table *html.Node) []cellOf {
	var cells []cellOf
	var taken []int // for how many more rows a cell from above has a column
	for row := range rowsOf(table) {
		column, head := 0, isHead(row)
		free := func() {
			for column < len(taken) && taken[column] > 0 {
				taken[column]--
				column++
			}
		}
		for cell := range row.ChildNodes() {
			if cell.DataAtom != atom.Td && cell.DataAtom != atom.Th {
				continue
			}
			if free(); column >= maxColumns {
				break
			}
			wide := min(span(cell, "colspan"), maxColumns-column)
			if wide == 1 {
				cells = append(cells, cellOf{cell, column, head})
			}
			for below := span(cell, "rowspan") - 1; wide > 0; wide-- {
				if column == len(taken) {
					taken = append(taken, 0)
				}
				taken[column] = below
				column++
			}
		}
		free()
	}
	return cells
}

// rowsOf are the rows of a table, without those of tables in it. One that was parsed has them all in sections.
func rowsOf(table *html.Node) iter.Seq[*html.Node] {
	return func(yield func(*html.Node) bool) {
		for section := range table.ChildNodes() {
			for row := range section.ChildNodes() {
				if row.DataAtom == atom.Tr && !yield(row) {
					return
				}
			}
		}
	}
}

// isHead tells whether a row names columns.
func isHead(row *html.Node) bool {
	for cell := range row.ChildNodes() {
		if cell.DataAtom == atom.Td {
			return false
		}
	}
	return true
}

// span is how many columns or rows a cell takes.
func span(cell *html.Node, name string) int {
	for _, a := range cell.Attr {
		if n, err := strconv.Atoi(a.Val); a.Key == name && err == nil && n > 0 {
			return n
		}
	}
	return 1
}

// maxNumber is more than a number has, in bytes.
const maxNumber = 100

// contentOf is the text of a node, as far as it might be a number.
func contentOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if b.Len() > maxNumber {
			break
		}
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}
