package main

import (
	"fmt"
	"io"
	"slices"
)

// report is what was measured.
type report struct {
	rows  []row
	costs []cost
	notes []string
}

// row compares two ways of one thing, measured in turn in one run.
type row struct {
	what         string
	ours, theirs string // names
	a, b         []float64
	unit         string
	goal         float64 // the most that ours may be of theirs; 0: none
}

// cost is one number.
type cost struct {
	what  string
	value float64
	unit  string
	goal  float64 // the most that it may be; 0: none
}

// quantile returns the q-quantile of values, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func median(values []float64) float64 { return quantile(values, 0.5) }

func (r row) ratio() float64 { return median(r.a) / median(r.b) }

func (r *report) add(more report) {
	r.rows, r.costs, r.notes = append(r.rows, more.rows...), append(r.costs, more.costs...), append(r.notes, more.notes...)
}

func (r *report) print(w io.Writer) {
	printRows(w, r.rows)
	printCosts(w, r.costs)
	for _, note := range r.notes {
		fmt.Fprintln(w, "-", note)
	}
}

func printRows(w io.Writer, rows []row) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(w, "| what | ours: p50 / p99 | beside it: p50 / p99 | ratio of medians | goal |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, r := range rows {
		fmt.Fprintf(w, "| %s | %s: %.2f / %.2f %s | %s: %.2f / %.2f %s | %.2f | %s |\n", r.what,
			r.ours, median(r.a), quantile(r.a, 0.99), r.unit, r.theirs, median(r.b), quantile(r.b, 0.99), r.unit, r.ratio(), atMost(r.goal, r.ratio(), ""))
	}
	fmt.Fprintln(w)
}

func printCosts(w io.Writer, costs []cost) {
	if len(costs) == 0 {
		return
	}
	fmt.Fprintln(w, "| cost | measured | goal |")
	fmt.Fprintln(w, "|---|---|---|")
	for _, c := range costs {
		fmt.Fprintf(w, "| %s | %.4g %s | %s |\n", c.what, c.value, c.unit, atMost(c.goal, c.value, c.unit))
	}
	fmt.Fprintln(w)
}

// atMost names a goal, and whether it was missed.
func atMost(goal, got float64, unit string) string {
	if goal == 0 {
		return "–"
	}
	text := fmt.Sprintf("≤ %g", goal)
	if unit != "" {
		text += " " + unit
	}
	if got > goal {
		text += " **missed**"
	}
	return text
}
