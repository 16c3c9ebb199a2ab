package main

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func TestSlotsAreTakenOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := takeSlot(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := takeSlot(dir)
	if err != nil {
		t.Fatal(err)
	}
	if first.name == second.name {
		t.Fatalf("both have %s", first.name)
	}
	for _, name := range []string{first.name, second.name} {
		if !slotTaken(dir, name) {
			t.Errorf("%s is free while it is held", name)
		}
	}
	if err := first.release(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{first.name, "s99", "../secret"} {
		if slotTaken(dir, name) {
			t.Errorf("%s is taken and nobody has it", name)
		}
	}
	third, err := takeSlot(dir)
	if err != nil || third.name != first.name {
		t.Errorf("the free slot %s was not taken again: %v, %v", first.name, third, err)
	}
}

// Item 10: kernels that an earlier process has left are stopped.
func TestSweepStopsWhatWasLeft(t *testing.T) {
	p := kernelstest.NewProvisioner()
	defer p.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, id := range []string{"aaaaaaaaaaaaaaaa", "bbbbbbbbbbbbbbbb"} {
		if _, err := p.Launch(ctx, kernels.Spec{ID: id, Kernelspec: kernelstest.Python, Workspace: t.TempDir()}); err != nil {
			t.Fatal(err)
		}
	}
	sweep(ctx, p, slog.New(slog.DiscardHandler))()
	if left, err := p.List(ctx); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
