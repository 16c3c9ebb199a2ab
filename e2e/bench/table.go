package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
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
	goal         float64 // the most that the ratio of medians may be; 0: none
	tail         float64 // the most that the ratio of the 99th percentiles may be; 0: none
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

// spread is how far the middle half of values lies apart, as a part of their median.
func spread(values []float64) float64 {
	return (quantile(values, 0.75) - quantile(values, 0.25)) / median(values)
}

func (r row) ratio() float64 { return median(r.a) / median(r.b) }

func (r row) tailRatio() float64 { return quantile(r.a, 0.99) / quantile(r.b, 0.99) }

func (r *report) add(more report) {
	r.rows, r.costs, r.notes = append(r.rows, more.rows...), append(r.costs, more.costs...), append(r.notes, more.notes...)
}

// print writes the tables as Markdown.
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
	fmt.Fprintln(w, "| what | ours: p50 / p99 ± spread | beside it: p50 / p99 ± spread | ratio of medians | goal |")
	fmt.Fprintln(w, "|---|---|---|---|---|")
	for _, r := range rows {
		goal := atMost(r.goal, r.ratio(), "")
		if r.tail > 0 {
			goal += "; p99 " + atMost(r.tail, r.tailRatio(), "")
		}
		fmt.Fprintf(w, "| %s | %s: %s | %s: %s | %.3g | %s |\n", r.what, r.ours, figures(r.a, r.unit), r.theirs, figures(r.b, r.unit), r.ratio(), goal)
	}
	fmt.Fprintln(w)
}

func figures(values []float64, unit string) string {
	return fmt.Sprintf("%.2f / %.2f %s ± %.0f %%", median(values), quantile(values, 0.99), unit, 100*spread(values))
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

// atMost names a goal, and whether it was met.
func atMost(goal, got float64, unit string) string {
	if goal == 0 {
		return "–"
	}
	text := fmt.Sprintf("≤ %.3g", goal)
	if unit != "" {
		text += " " + unit
	}
	if got > goal {
		return text + " **missed**"
	}
	return text + " met"
}

// summary is a row or a cost as JSON.
type summary struct {
	What   string   `json:"what"`
	Ours   *series  `json:"ours,omitempty"`
	Beside *series  `json:"beside,omitempty"`
	Ratio  *float64 `json:"ratio,omitempty"`
	Value  *float64 `json:"value,omitempty"`
	Unit   string   `json:"unit,omitempty"`
	Goal   float64  `json:"goal,omitempty"`
	Met    *bool    `json:"met,omitempty"`
}

// series is what was measured of one way.
type series struct {
	Name   string  `json:"name"`
	Median float64 `json:"median"`
	P99    float64 `json:"p99"`
	Spread float64 `json:"spread"`
	Count  int     `json:"count"`
}

func seriesOf(name string, values []float64) *series {
	return &series{name, median(values), quantile(values, 0.99), spread(values), len(values)}
}

// met tells whether a goal was reached; nil where there is none.
func met(goal, got float64) *bool {
	if goal == 0 {
		return nil
	}
	ok := got <= goal
	return &ok
}

// MarshalJSON writes what print does.
func (r report) MarshalJSON() ([]byte, error) {
	doc := struct {
		Rows  []summary `json:"rows"`
		Costs []summary `json:"costs"`
		Notes []string  `json:"notes"`
	}{[]summary{}, []summary{}, append([]string{}, r.notes...)}
	for _, row := range r.rows {
		ratio := row.ratio()
		ok := met(row.goal, ratio)
		if tail := met(row.tail, row.tailRatio()); tail != nil && !*tail {
			ok = tail
		}
		doc.Rows = append(doc.Rows, summary{
			What: row.what, Ours: seriesOf(row.ours, row.a), Beside: seriesOf(row.theirs, row.b), Ratio: &ratio, Unit: row.unit, Goal: row.goal, Met: ok,
		})
	}
	for _, c := range r.costs {
		doc.Costs = append(doc.Costs, summary{What: c.what, Value: &c.value, Unit: c.unit, Goal: c.goal, Met: met(c.goal, c.value)})
	}
	return json.MarshalIndent(doc, "", "  ")
}

// save writes the tables to files, where such are wanted.
func (r *report) save(markdown, asJSON string) error {
	if markdown != "" {
		f, err := os.Create(markdown)
		if err != nil {
			return err
		}
		r.print(f)
		if err := f.Close(); err != nil {
			return err
		}
	}
	if asJSON == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(asJSON, append(text, '\n'), 0o644)
}
