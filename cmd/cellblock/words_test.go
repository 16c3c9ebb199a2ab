package main

import (
	"strings"
	"testing"

	"cellblock/mcpserver"
)

func TestOwnHint(t *testing.T) {
	for hint, want := range map[string]string{
		"": "",
		"pass recursive=true to delete it with all that is in it":                                           "give --recursive (-r) to delete it with all that is in it",
		"list_files names what there is":                                                                    "cellblock files ls names what there is",
		"list_sessions names the ones there are; executing code with a session_id starts it":                "cellblock sessions ls names the ones there are; cellblock exec --session starts it",
		"call again; restart_session gives the session a fresh kernel if this goes on":                      "call again",
		"list_all_sessions names the ones that run":                                                         "cellblock admin ls names the ones that run",
		"close_session with delete_files deletes all of it":                                                 "cellblock sessions rm --delete-files deletes all of it",
		`when the server is back, get_execution(session_id="a", execution_id=3, since=4) reads how it goes`: "when the server is back, `cellblock sessions show a 3` reads how it goes",
		"you have made none; create_image makes one":                                                        "you have made none; cellblock images create makes one",
		"use another session_id for bash, or call execute_python on this one":                               "use another --session for bash, or give --language python",
		"use another session_id, or the server at http://127.0.0.1:8787/mcp, where it runs":                 "use another --session, or give --url http://127.0.0.1:8787/mcp, where it runs",
		"get_execution waits for it":                                                                        "",
	} {
		if got := ownHint(hint); got != want {
			t.Errorf("%q became %q, want %q", hint, got, want)
		}
	}
}

// Only the server's own words are changed, never what a cell has printed or named.
func TestOwnWordsLeaveOutputAlone(t *testing.T) {
	for text, want := range map[string]string{
		"files: list_files.py\nsession a · cell 1 · ok":                            "files: list_files.py\nsession a · cell 1 · ok",
		"Error: no list_files\nHint: list_files names them":                        "Error: no list_files\nHint: cellblock files ls names them",
		"Error: late\nHint: restart_session gives a new one":                       "Error: late",
		"Error: timeout_seconds: must be between 1 and 43200, got 356400":          "Error: --timeout: must be between 1 second and 12 hours, got 99 hours",
		`running: get_execution(session_id="a", execution_id=1)`:                   "running: `cellblock sessions show a 1`",
		"[session s-1 (new: pass this session_id to go on with it) · cell 1 · ok]": "[session s-1 (new: --session s-1 goes on with it) · cell 1 · ok]",
	} {
		if got := ownClosing(text); got != want {
			t.Errorf("%q became %q", text, got)
		}
	}
	printed := "mine" + restoring
	if got := ownNote(printed); got != printed {
		t.Errorf("output became %q", got)
	}
	if got := ownNote("Note: define again what you need" + restoring + "."); got != "Note: define again what you need." {
		t.Errorf("the note became %q", got)
	}
	for note, want := range map[string]string{
		"Note: Before this cell a person ran cell 2 here in the viewer; get_execution reads it.": "Note: Before this cell a person ran cell 2 here in the viewer; cellblock sessions show reads it.",
		"[2 more cells went on in the background; get_execution reads what they produced]":       "[2 more cells went on in the background; cellblock sessions show reads what they produced]",
		"get_execution reads it": "get_execution reads it",
	} {
		if got := ownNote(note); got != want {
			t.Errorf("%q became %q", note, got)
		}
	}
	for line, want := range map[string]string{
		"Hint: The kernel sees the files of its session: " + mcpserver.WrittenFirst: "Hint: The kernel sees the files of its session: what it reads must be written there first: cellblock files put SESSION FILE.",
		"mine: " + mcpserver.WrittenFirst:                                           "mine: " + mcpserver.WrittenFirst,
	} {
		var out strings.Builder
		if (&liveOutput{w: &out}).rest("FileNotFoundError\n" + line); out.String() != "FileNotFoundError\n"+want+"\n" {
			t.Errorf("%q became %q", line, out.String())
		}
	}
	var out strings.Builder
	(&liveOutput{w: &out}).rest(`… 4 characters left out here; get_execution(session_id="a", execution_id=1, offset=2) …` + "\nlist_files")
	if want := "… 4 characters left out here; `cellblock notebook export a` …\nlist_files\n"; out.String() != want {
		t.Errorf("printed %q", out.String())
	}
}
