package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"cellblock/notebook"
)

// A cell that never ended when its session ran it gets no longer this time, and does not hold up those behind it; who names a timeout has it.
func TestImportBoundsWhatWasStopped(t *testing.T) {
	about := func(status string, seconds string) *notebook.Cell {
		return &notebook.Cell{Metadata: notebook.Object{"cellblock": map[string]any{"status": status, "duration": json.Number(seconds)}}}
	}
	for name, tt := range map[string]struct {
		cell        *notebook.Cell
		given, want time.Duration
	}{
		"it timed out":       {about(notebook.StatusTimedOut, "3.01"), 0, 3010 * time.Millisecond},
		"it was short":       {about(notebook.StatusInterrupted, "0.2"), 0, time.Second},
		"a timeout":          {about(notebook.StatusTimedOut, "3"), time.Minute, time.Minute},
		"it ended":           {about("ok", "3"), 0, 0},
		"another's notebook": {&notebook.Cell{}, 0, 0},
	} {
		var said strings.Builder
		got := importOptions{execOptions: execOptions{timeout: tt.given}}.within(tt.cell, &said)
		if told := strings.Contains(said.String(), "--timeout"); got.timeout != tt.want || told != (tt.want != tt.given) {
			t.Errorf("%s: %v, told %q", name, got.timeout, said.String())
		}
	}
}
