package viewer

import (
	"net/http"
	"strings"
	"testing"
)

func TestHintsForPeople(t *testing.T) {
	for hint, want := range map[string]string{
		"": "",
		"list_sessions names the ones there are; executing code with a session_id starts it": "",
		"wait a minute; close_session makes room":                                            "wait a minute",
		"set images_build.ca_file":                                                           "set images_build.ca_file",
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
