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

// Who works in a session is told of files that others bring and delete.
func TestDeskTellsOfFiles(t *testing.T) {
	p := newPages(t)
	ann := p.signIn("ann", all...)
	p.ran("ann", "s", "print 1")
	filed := func() int {
		info, err := p.sessions.Get(t.Context(), ann.who.owner, "s")
		if err != nil {
			t.Fatal(err)
		}
		return deskOf(info).Filed
	}
	for want, change := range []func(){
		func() {},
		func() { put(t, ann, "s", "a.txt", "a") },
		func() { ann.want(http.StatusOK, "POST", "/s/s/delete?path=a.txt", map[string]any{}) },
	} {
		changed := p.sessions.Changed(ann.who.owner, "s")
		change()
		if got := filed(); got != want {
			t.Errorf("%d changes are told, not %d", got, want)
		}
		if want == 0 {
			continue
		}
		select {
		case <-changed:
		default:
			t.Errorf("nobody is told of change %d", want)
		}
	}
}
