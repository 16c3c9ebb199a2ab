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
