package mcpserver

import (
	"encoding/json"
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

func TestRestoreSession(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print one")
		w.run("s", "input who?")
		w.run("s", "print two")
		args := map[string]any{"session_id": "s"}
		w.call("restore_session", args).expect(t, true, "lives")
		w.run("s", "exit 3")
		got := w.call("restore_session", args)
		got.expect(t, false, "exited with status 3", "earlier cells are run again", "in generation 2", "1 → 5 · ok", "print two", "→ 6 · ok")
		got.expect(t, false, "What it had in memory was lost with it", "What these cells define is there again")
		if strings.Contains(got.String(), "restore_session") || strings.Contains(got.String(), "are lost") {
			t.Errorf("it advises what was just done, or says that it was not: %s", got)
		}
		w.run("s", "print three")
		w.run("s", "exit 3")
		w.call("restore_session", map[string]any{"session_id": "s", "generation": 1}).expect(t, false, "3 of 3 cells from generations 1 to 2 ran again")
		w.call("list_executions", args).expect(t, false, "cell 1 run again", "cell 3 run again")
		listed := w.call("list_executions", args)
		var structured struct{ Executions []executionEntry }
		if err := json.Unmarshal(listed.structured, &structured); err != nil || structured.Executions[4].Restores != 1 {
			t.Errorf("%v: %s", err, listed.structured)
		}
	})
}

func TestRestoreSessionSaysWhereItStopped(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print one")
		w.run("s", "sleep 40s")
		w.run("s", "print three")
		w.run("s", "exit 3")
		w.callWith(t.Context(), map[string]any{
			"name": "restore_session", "arguments": map[string]any{"session_id": "s", "timeout_seconds": 20},
			"_meta": map[string]any{"progressToken": "t"},
		}).expect(t, true, "1 of 3 cells", "Stopped: the time of 20 seconds for all cells was over. 1 cell not restored.", "execution_id=6", "goes on where this stopped")
		last := 0.0
		for _, n := range w.notes {
			if n.value <= last {
				t.Errorf("progress goes back: %v after %v", n.value, last)
			}
			last = n.value
		}
		if len(w.notes) == 0 {
			t.Error("no progress was told")
		}
	})
}

func TestRestoreSessionNeedsTheScopeOfItsLanguage(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print one")
		w.scopes = []string{"ruby:execute", ScopeManage, ScopeRead}
		w.call("restore_session", map[string]any{"session_id": "s"}).expect(t, true, "restore_session needs the scope", "python:execute")
		w.service.Languages = []string{"python", "ruby"}
		w.service.access = w.service.newAccess()
		w.call("restore_session", map[string]any{"session_id": "s"}).expect(t, true, "restoring a python session needs the scope")
	})
}

// Who has forgotten that a kernel was lost is told where a variable was set, until it is there again.
func TestHintOfALostVariable(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const hint = `Hint: print seems to have been set by cell 1, on a kernel that is no more, and lost with it: restore_session(session_id="s", generation=1) runs`
		silent := func(code string) {
			t.Helper()
			got := w.run("s", code)
			if got.expect(t, true, "is not defined"); strings.Contains(got.String(), "been set by") {
				t.Error(got)
			}
		}
		w.run("s", "print = 1") // which assigns nothing to the fake kernel
		silent("get print")     // no kernel was lost
		w.run("s", "exit 3")
		silent("get print") // the first cell after that is told of it
		w.run("s", "get print").expect(t, true, "name 'print' is not defined", hint)
		silent("get other")
		w.get("s", 5, nil).expect(t, true, hint)
		all := w.scopes
		w.scopes = []string{ScopeRead}
		if got := w.get("s", 5, nil); strings.Contains(got.String(), "restore_session") {
			t.Errorf("to whom may not restore: %s", got)
		}
		w.scopes = all
		w.call("restore_session", map[string]any{"session_id": "s"}).expect(t, false, "ran again")
		silent("get print") // it was set on this kernel
		if got := w.get("s", 5, nil); strings.Contains(got.String(), "been set by") {
			t.Errorf("it is there again: %s", got)
		}
	})
}

// A cell that failed may have set what is missed, and no restoration runs it again: that is told before one and after it.
func TestHintOfAVariableThatAFailedCellSet(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const hint = "Hint: print may have been set by cell 1, on a kernel that is no more. That cell did not succeed, so that restore_session does not run it again"
		w.run("s", "print = 1\nerror ValueError x")
		w.run("s", "print well")
		w.run("s", "exit 3")
		w.run("s", "get print") // the first cell after that is told of it
		w.run("s", "get print").expect(t, true, "name 'print' is not defined", hint)
		w.call("restore_session", map[string]any{"session_id": "s"}).expect(t, false, "ran again")
		w.run("s", "get print").expect(t, true, "name 'print' is not defined", hint)
		w.run("s", "print = 1\nerror ValueError x")
		if got := w.run("s", "get print"); strings.Contains(got.String(), "been set by") {
			t.Errorf("it failed to be set on this kernel: %s", got)
		}
	})
}

// Of many cells the last are listed, and all that are not there again.
func TestRestoreSessionNamesWhatIsMissing(t *testing.T) {
	var cells []sessions.RestoredCell
	for n := 1; n <= 100; n++ {
		c := sessions.RestoredCell{Original: n, Number: 100 + n, Title: "x", Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}}
		if n == 7 {
			c.Number, c.Skipped = 0, "it reads input()"
		}
		cells = append(cells, c)
	}
	lines := restoredLines(cells)
	if len(lines) != 32 || lines[0] != "7 · skipped: it reads input() · x" || lines[1] != "(69 cells before these ran again and ended well)" || !strings.HasPrefix(lines[2], "71 → 171 · ok") {
		t.Errorf("%q", lines)
	}
	for i := range 40 {
		cells[10+i].Number, cells[10+i].Skipped = 0, "it reads input()"
	}
	lines = restoredLines(cells)
	if len(lines) != 62 || lines[30] != "Not run again to their end either: 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50" || !strings.HasPrefix(lines[31], "(29 cells") {
		t.Errorf("%q", lines)
	}
	if lines := restoredLines(cells[70:]); len(lines) != maxRestoredLines {
		t.Errorf("%q", lines)
	}
}

// A script that is gone fails the cell that ran it; the rest can still be had.
func TestRestoreSessionOfAMissingScript(t *testing.T) {
	failed := kernels.Result{Status: kernels.StatusError, Error: &kernels.ExecError{Name: "FileNotFoundError", Value: "No such file or directory: '/workspace/load.py'"}}
	expectText(t, restoreText("s", sessions.RestoreReport{
		Cells: []sessions.RestoredCell{{Original: 1, Number: 4, Title: "exec(…)", Result: sessions.Result{Result: failed}}}, Left: 2,
		Stopped: "the cell failed: FileNotFoundError: No such file or directory: '/workspace/load.py'",
	}), "2 cells not restored.", "write it into the workspace again (write_file). Calling again goes on where this stopped, with that cell.")
	expectText(t, restoreText("s", sessions.RestoreReport{
		Cells:   []sessions.RestoredCell{{Original: 7, Number: 8, Title: "plt.plot()", Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusError}}}},
		Stopped: "the cell failed: NameError: name 'plt' is not defined", Absent: "plt", SetBy: 6,
	}), "plt was set by cell 6, which did not succeed and so did not run again: run what is needed of it first. Calling again")
}
