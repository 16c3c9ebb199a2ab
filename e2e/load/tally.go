package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"
)

// tally counts what came of the work.
type tally struct {
	mu             sync.Mutex
	jobs           int
	errors, losses int
	took           []time.Duration // since the last line
	all            []time.Duration
	failures       map[string]int // what was said, and how often
	first          string         // of them
}

// maxFailures bounds how many kinds of failures are told apart.
const maxFailures = 20

func newTally() *tally { return &tally{failures: map[string]int{}} }

// add counts one job.
func (t *tally) add(name string, took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.jobs++
	t.took, t.all = append(t.took, took), append(t.all, took)
	t.judge(name, err)
}

// start counts what went wrong with a session's first cell, whose kernel has to start: how long that takes is another matter.
func (t *tally) start(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.judge("start", err)
}

// judge notes what went wrong. The caller holds t.mu.
func (t *tally) judge(name string, err error) {
	if err == nil {
		return
	}
	var l lost
	if errors.As(err, &l) {
		t.losses++
	} else {
		t.errors++
	}
	said := name + ": " + err.Error()
	if t.first == "" {
		t.first = said
	}
	if len(t.failures) < maxFailures || t.failures[said] > 0 {
		t.failures[said]++
	}
}

// bad is how many jobs went wrong.
func (t *tally) bad() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.errors + t.losses
}

// quantile returns the q-quantile of some times, by the nearest rank; 0 of none.
func quantile(took []time.Duration, q float64) time.Duration {
	if len(took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(took))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}

func printHead(w io.Writer) {
	fmt.Fprintln(w, "|    time |    jobs | errors | losses |    p50 |    p95 |    p99 |    max | server MB | descriptors |")
	fmt.Fprintln(w, "|--------:|--------:|-------:|-------:|-------:|-------:|-------:|-------:|----------:|------------:|")
}

// printLine tells the state of things, and the latencies since the last time, in milliseconds.
func printLine(w io.Writer, t *tally, at time.Duration, p process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	fmt.Fprintf(w, "| %7s | %7d | %6d | %6d |", at.Round(time.Second), t.jobs, t.errors, t.losses)
	for _, q := range []float64{0.5, 0.95, 0.99, 1} {
		fmt.Fprintf(w, " %6.1f |", float64(quantile(t.took, q))/float64(time.Millisecond))
	}
	fmt.Fprintf(w, " %9s | %11s |\n", p.memory(), p.descriptors())
	t.took = nil
}

// printFailures names what went wrong, the most frequent first.
func (t *tally) printFailures(w io.Writer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	said := slices.SortedFunc(maps.Keys(t.failures), func(a, b string) int { return t.failures[b] - t.failures[a] })
	for _, s := range said {
		fmt.Fprintf(w, "- %d × %s\n", t.failures[s], s)
	}
}
