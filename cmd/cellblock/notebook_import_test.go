package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
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

// Why an import did not run all cells is said as it was, with how to go on.
func TestImportSaysWhyItStopped(t *testing.T) {
	var cells []*notebook.Cell
	for _, source := range []string{"1", "fails", "ends", "4"} {
		cells = append(cells, &notebook.Cell{Type: notebook.Code, Source: source})
	}
	for name, tt := range map[string]struct {
		options      importOptions
		code         string // of the cell in which somebody presses Ctrl-C
		said, unsaid string
		kind         fault.Kind
	}{
		"an error":            {importOptions{from: 1}, "", "error in cell 2; --session a --from 3 goes on with the next, --from 2 with the same, --keep-going", "interrupted", fault.Internal},
		"an interrupt":        {importOptions{from: 1, keepGoing: true}, "ends", "interrupted in cell 3; --session a --from 4 goes on with the next.", "stopped", fault.Cancelled},
		"in one that failed":  {importOptions{from: 1}, "fails", "interrupted in cell 2; --session a --from 3 goes", "stopped", fault.Cancelled},
		"after all went on":   {importOptions{from: 1, keepGoing: true}, "", "has run 4 of the notebook's 4", "goes on", fault.Internal},
		"from the next":       {importOptions{from: 4}, "", "has run 1 of the notebook's 4", "goes on", fault.Internal},
		"in the last of them": {importOptions{from: 4}, "4", "has run 1 of the notebook's 4", "--from", fault.Cancelled},
	} {
		ctx, interrupt := context.WithCancel(t.Context())
		gone := make(chan struct{}) // nobody waits for the answer any more
		c := clientOf(t, func(_ string, params object) (object, error) {
			args, _ := params["arguments"].(map[string]any)
			code, _ := args["code"].(string)
			if code != "" && code == tt.code {
				interrupt()
				<-gone
			}
			return object{"isError": code == "fails", "content": []any{object{"type": "text", "text": "session a · cell"}},
				"_meta": object{mcpserver.ExecutionMeta: object{"session_id": "a", "execution_id": 1, "phase": "ended"}}}, nil
		})
		var said strings.Builder
		tt.options.session, tt.options.language = "a", "python"
		err := tt.options.cells(ctx, c, &liveOutput{w: io.Discard}, cells, &said)
		close(gone)
		interrupt()
		if !strings.Contains(said.String(), tt.said) || strings.Contains(said.String(), tt.unsaid) {
			t.Errorf("%s: %s", name, said.String())
		}
		if stopped := err != nil && !errors.Is(err, errCellFailed); stopped != (tt.kind == fault.Cancelled) || stopped && fault.KindOf(err) != tt.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, from := range []int{0, 5} {
		if err := (importOptions{from: from}).run(t.Context(), nil, cells, io.Discard, io.Discard); fault.KindOf(err) != fault.Invalid {
			t.Errorf("from %d: %v", from, err)
		}
	}
}
