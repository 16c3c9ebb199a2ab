package viewer

import (
	"net/http"
	"os"
	"strings"
	"testing"
)

// Whose sign-in was ended by somebody else is told so on the page to sign in; who has signed out himself, and who is new, is not.
func TestASignInThatWasEndedIsTold(t *testing.T) {
	p := newPages(t)
	const told = "Your sign-in has ended."
	check := func(b *browser, path string, status int, want bool) {
		t.Helper()
		w := b.page("GET", path, "same-origin", nil)
		if w.Code != status || strings.Contains(w.Body.String(), told) != want || !strings.Contains(w.Body.String(), "<h1>Sign in</h1>") {
			t.Errorf("%s: status %d, told: %v\n%s", path, w.Code, !want, w.Body)
		}
	}
	ann := p.signIn("ann", all...)
	if err := os.RemoveAll(p.codes); err != nil { // as an operator does
		t.Fatal(err)
	}
	check(ann, "/", http.StatusUnauthorized, true)
	check(ann, "/signin", http.StatusOK, true)
	out := &browser{pages: p} // a browser that signs out has no cookie any more
	check(out, "/", http.StatusUnauthorized, false)
	check(out, "/signin", http.StatusOK, false)
}
