package viewer

import (
	"net/http"
	"slices"
	"strings"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// The scopes of routes that are no scopes of tokens.
const (
	anybody  = "anybody"
	signedIn = "signed in"
)

const (
	homePattern    = "GET /{$}"
	everythingElse = "GET /"
	// maxBody bounds the body of a request whose route says nothing else, in bytes.
	maxBody = 1 << 20
	// csrfHeader carries the CSRF token of requests that a module makes, csrfField that of forms.
	csrfHeader = "X-CSRF-Token"
	csrfField  = "csrf"
)

// route is one address of the viewer.
type route struct {
	pattern string // of http.ServeMux
	// scope is what a visitor must have. The handler may ask for more.
	scope  string
	handle func(w http.ResponseWriter, r *http.Request, who visit) error
	// action names what the route changes, as the audit log knows it; empty: nothing.
	action string
	// reads names what the route shows, as the audit log knows it; empty: nothing that is told of, such as what an open page fetches.
	reads string
	// body bounds the request's body in bytes; 0: maxBody.
	body int64
}

// routes is all that there is.
func (v *Viewer) routes() []route {
	return slices.Concat(
		[]route{
			{pattern: everythingElse, scope: anybody, handle: v.notFound},
			{pattern: assetPattern, scope: anybody, handle: v.asset},
			{pattern: "GET /live", scope: signedIn, handle: v.live},
			{pattern: "POST /live", scope: signedIn, handle: v.changeLive},
			{pattern: "GET /live/state", scope: signedIn, handle: v.liveState},
			{pattern: "GET /{$}", scope: signedIn, handle: v.sessionsPage},
			{pattern: "GET /server", scope: signedIn, handle: v.serverPage},
			{pattern: "GET /s/{id}", scope: mcpserver.ScopeRead, reads: "open_session", handle: v.sessionPage},
			{pattern: "GET /sessions/{id}", scope: anybody, handle: v.sessionElsewhere},
		},
		v.signInRoutes(), v.actionRoutes(), v.cellsRoutes(), v.editorRoutes(), v.panelRoutes(),
	)
}

// serve is a route behind all that stands before its handler.
func (v *Viewer) serve(rt route, gates func(http.Handler) http.Handler) http.Handler {
	inner := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := v.follow(rt, w, r); err != nil {
			v.fail(w, r, err)
		}
	})
	bounded := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			most := rt.body
			if most == 0 {
				most = maxBody
			}
			r.Body = http.MaxBytesReader(w, r.Body, most)
			next.ServeHTTP(w, r)
		})
	}
	if rt.scope == anybody {
		return v.identified(false, bounded(inner))
	}
	return v.identified(true, gates(bounded(inner)))
}

// follow checks what a route demands, goes there, and has the audit log told what it is to hear of that.
func (v *Viewer) follow(rt route, w http.ResponseWriter, r *http.Request) error {
	who := visitOf(r.Context())
	err := v.admit(rt, r, who)
	if err == nil && looksOnly(r) {
		r = r.WithContext(sessions.Looking(r.Context())) // what a person does is use, what his page shows is not
	}
	switch {
	case err != nil:
	case rt.action != "":
		return v.act(rt, w, r, who)
	case rt.reads != "":
		return v.look(rt, w, r, who)
	default:
		err = rt.handle(w, r, who)
	}
	if rt.scope != anybody {
		v.tellRefused(rt, r, who, err)
	}
	return err
}

func looksOnly(r *http.Request) bool {
	return r.Method == http.MethodGet || r.Method == http.MethodHead
}

// admit checks what a route demands.
func (v *Viewer) admit(rt route, r *http.Request, who visit) error {
	if rt.scope != anybody && rt.scope != signedIn && !who.can(rt.scope) {
		return auth.NeedsScope("this", rt.scope)
	}
	if looksOnly(r) {
		return nil
	}
	return v.checkOrigin(rt, r, who)
}

// checkOrigin refuses what does not come from a page of ours: by what the browser says of where it comes from and, where somebody
// must be signed in, by the token that only our pages have. A page for anybody has none: its strict cookie may have stayed back.
func (v *Viewer) checkOrigin(rt route, r *http.Request, who visit) error {
	foreign := fault.New(fault.Forbidden, "this did not come from a page of this server").WithHint("Load the page again, then try again.")
	if v.origin.Check(r) != nil {
		return foreign
	}
	if rt.scope == anybody {
		return nil
	}
	sent := r.Header.Get(csrfHeader)
	if sent == "" && strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		sent = r.PostFormValue(csrfField)
	}
	if !who.signIn.CheckCSRF(sent) {
		return foreign
	}
	return nil
}
