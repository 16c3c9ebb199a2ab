package main

import (
	"fmt"
	"io"
	"slices"
)

// row compares two ways of one thing, measured in turn in one run.
type row struct {
	what         string
	ours, theirs string // names
	a, b         []float64
	unit         string
	goal         float64 // the most that ours may be of theirs; 0: none
}

// quantile returns the q-quantile of values, by the nearest rank.
func quantile(values []float64, q float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func (r row) ratio() float64 { return quantile(r.a, 0.5) / quantile(r.b, 0.5) }

func printTable(w io.Writer, rows []row) {
	fmt.Fprintln(w, "| what | ours: p50 / p99 | beside it: p50 / p99 | ratio of medians | goal |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, r := range rows {
		goal := "–"
		if r.goal > 0 {
			goal = fmt.Sprintf("≤ %.2f", r.goal)
		}
		fmt.Fprintf(w, "| %s | %s: %.2f / %.2f %s | %s: %.2f / %.2f %s | %.2f | %s |\n", r.what,
			r.ours, quantile(r.a, 0.5), quantile(r.a, 0.99), r.unit, r.theirs, quantile(r.b, 0.5), quantile(r.b, 0.99), r.unit, r.ratio(), goal)
	}
}
