package notebook

import (
	"bytes"
	"testing"
	"time"
)

// A cell that was stopped is known as that when its export is read, with how long it had; nothing is believed that cannot be so.
func TestStopped(t *testing.T) {
	b := NewBuilder(Session{ID: "s"})
	for i, status := range []string{"ok", "error", StatusTimedOut, StatusInterrupted, StatusRestarted, StatusStopped} {
		b.Begin(Run{Number: i + 1, Code: "x", Status: status, Duration: 3200 * time.Millisecond})
	}
	var file bytes.Buffer
	if err := b.Notebook().Write(&file); err != nil {
		t.Fatal(err)
	}
	read, err := Parse(file.Bytes())
	if err != nil || len(read.Cells) != 6 {
		t.Fatalf("%+v, %v", read, err)
	}
	for i, c := range read.Cells {
		if after, stopped := c.Stopped(); stopped != (i >= 2) || stopped && after != 3200*time.Millisecond {
			t.Errorf("cell %d: %v, %v", i+1, after, stopped)
		}
	}
	for _, duration := range []string{"0", "-1", "1e300", "601", `"3"`, "null", "{}"} {
		read, err := Parse([]byte(`{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [{"cell_type": "code", "source": "x", "outputs": [],
			"metadata": {"cellblock": {"status": "timed out", "duration": ` + duration + `}}}]}`))
		if err != nil {
			t.Fatal(err)
		}
		if after, stopped := read.Cells[0].Stopped(); stopped {
			t.Errorf("%s: %v", duration, after)
		}
	}
}
