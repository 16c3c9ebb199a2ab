package viewer

import (
	"net/http"
	"strings"

	"cellblock/internal/sessionid"
)

// wayBackCookie is the name of the cookie that has the page that somebody asked for before signing in.
func (v *Viewer) wayBackCookie() string { return v.cookie + "-to" }

// remember notes in the browser what page it asked for, for when its person has signed in, by a link or at the provider.
func (v *Viewer) remember(w http.ResponseWriter, path string) {
	if !ownPage(path) {
		return
	}
	http.SetCookie(w, &http.Cookie{
		Name: v.wayBackCookie(), Value: path, Path: "/", MaxAge: int(flowLifetime.Seconds()), HttpOnly: true,
		Secure: secure(v.PublicURL), SameSite: http.SameSiteLaxMode, // the provider leads back by a link of its own
	})
}

// wayBack is the page where who has signed in goes on: the one that was remembered, which is forgotten, or the list of sessions.
func (v *Viewer) wayBack(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(v.wayBackCookie())
	if err != nil {
		return "/"
	}
	v.forgetWay(w)
	if !ownPage(cookie.Value) {
		return "/" // cookies come from other servers of the host, too
	}
	return cookie.Value
}

// forgetWay has the browser forget what page it asked for: its person has come there, has signed out, or begins somewhere else.
func (v *Viewer) forgetWay(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: v.wayBackCookie(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: secure(v.PublicURL)})
}

// ownPage tells whether a path is that of a page of ours, and so leads to no other server, however browsers read it.
func ownPage(path string) bool {
	id, ok := strings.CutPrefix(path, "/s/")
	return path == "/server" || ok && sessionid.Validate(id) == nil
}
