package viewer

import (
	"net/http"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/sessions"
)

func TestHintsForPeople(t *testing.T) {
	for hint, want := range map[string]string{
		"": "",
		"list_sessions names the ones there are; executing code with a session_id starts it":          "",
		"wait a minute; close_session makes room":                                                     "wait a minute",
		"close_session makes room; or try again later":                                                "try again later",
		"set images_build.ca_file":                                                                    "set images_build.ca_file",
		"close_session one that you do not need; idle: a, b; or try again later":                      "close one that you do not need; idle: a, b; or try again later",
		"close_session one that you do not need; or try again later":                                  "close one that you do not need; or try again later",
		"use another session_id, or close_session this one first: its files stay":                     "use another session, or close this one first: its files stay",
		"wait for them, use another session_id for work that can run beside it, or interrupt_session": "wait for them, use another session for work that can run beside it, or interrupt it",
		"make it again from the same packages (create_image). Or close the session (close_session keeps its files), and name another image in its next call.": "make it again from the same packages. Or close the session, and name another image in its next call.",
		"call again later, its variables may be there still; restart_session gives it up for a fresh kernel":                                                  "try again later, its variables may be there still",
	} {
		if got := hintForPeople(hint); got != want {
			t.Errorf("%q became %q, want %q", hint, got, want)
		}
	}
	page := newPages(t).signIn("ann", all...).page("GET", "/s/nosuch", "same-origin", nil)
	if text := page.Body.String(); page.Code != http.StatusNotFound || strings.Contains(text, "list_sessions") || strings.Contains(text, "session_id") {
		t.Errorf("%d: %s", page.Code, text)
	}
}

// A cell that never ran, and one that cannot be read, are told of as the page's own errors are.
func TestHintsOfCells(t *testing.T) {
	never := fault.New(fault.Unavailable, "the cell did not run").WithHint("call again; restart_session gives the session a fresh kernel")
	if view := viewOf(sessions.ExecutionInfo{Phase: sessions.PhaseEnded, Err: never}); view.Failure != "the cell did not run" || view.Hint != "try again" {
		t.Errorf("the cell that never ran says %q, %q", view.Failure, view.Hint)
	}
	p := newPages(t)
	p.ran("ann", "s", "print 1")
	b := block{v: p.viewer, owner: p.signIn("ann", all...).who.owner, id: "s"}
	if view := b.view(t.Context(), sessions.ExecutionInfo{Number: 9}); view.Failure == "" || toolWords.MatchString(view.Hint) {
		t.Errorf("the cell that is not there says %q, %q", view.Failure, view.Hint)
	}
}
