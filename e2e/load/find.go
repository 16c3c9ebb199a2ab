package main

import (
	"context"
	"fmt"
	"io"
	"time"
)

// find looks for the largest number of sessions that are held without an error, a loss or a slow answer: it doubles the
// number until something gives, then halves the distance. try holds so many.
func find(ctx context.Context, o options, out io.Writer, try func(context.Context, int) (*tally, error)) error {
	held, gave, why := 0, o.most+1, ""
	for n := 1; gave-held > 1; {
		t, err := try(ctx, n)
		if err != nil {
			return err
		}
		reason := tooMuch(t, o.slowest)
		fmt.Fprintf(out, "%d sessions: %d jobs, p50 %s, p99 %s: %s\n", n, t.jobs, quantile(t.all, 0.5).Round(time.Millisecond),
			quantile(t.all, 0.99).Round(time.Millisecond), orHeld(reason))
		if reason == "" {
			held = n
		} else {
			gave, why = n, reason
		}
		if why == "" {
			n = min(2*n, o.most)
			continue
		}
		n = held + (gave-held)/2
	}
	if why == "" {
		fmt.Fprintf(out, "%d sessions are held; more were not tried\n", held)
		return nil
	}
	fmt.Fprintf(out, "%d sessions are held. The first thing that gives with %d: %s\n", held, gave, why)
	return nil
}

// tooMuch says what gave; empty if nothing did.
func tooMuch(t *tally, slowest time.Duration) string {
	switch p99 := quantile(t.all, 0.99); {
	case t.bad() > 0:
		return fmt.Sprintf("%d errors, %d losses, the first of them: %s", t.errors, t.losses, t.first)
	case t.jobs == 0:
		return "nothing was answered at all"
	case p99 > slowest:
		return fmt.Sprintf("the slowest hundredth of the answers takes %s and more", p99.Round(time.Millisecond))
	}
	return ""
}

func orHeld(reason string) string {
	if reason == "" {
		return "held"
	}
	return reason
}
