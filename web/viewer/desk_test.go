package viewer

import (
	"net/http"
	"testing"
)

// Who works in a session is told that its kernel is another one than that of the cells above.
func TestDeskTellsOfAFreshKernel(t *testing.T) {
	p := newPages(t)
	ann := p.signIn("ann", all...)
	fresh := func() bool {
		info, err := p.sessions.Get(t.Context(), ann.who.owner, "s")
		if err != nil {
			t.Fatal(err)
		}
		return deskOf(info).Fresh
	}
	p.ran("ann", "s", "print 1")
	if fresh() {
		t.Error("the first kernel is called fresh after its first cell")
	}
	ann.want(http.StatusOK, "POST", "/s/s/restart", nil)
	if !fresh() {
		t.Error("nothing tells that the kernel was restarted")
	}
	p.ran("ann", "s", "print 2")
	if fresh() {
		t.Error("it is still called fresh after a cell")
	}
}
