package viewer

import (
	"cmp"
	"net/http"
	"time"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/request"
	"cellblock/sessions"
)

// caller is what the audit log calls the client that people use here.
const caller = "viewer"

const (
	// looksPerMinute and looksAtOnce bound how often an owner opens what the audit log tells of. It is a bound of its own: however
	// often a model calls, its person can look at what it does.
	looksPerMinute, looksAtOnce = 600, 200
	// strayPerMinute and strayAtOnce bound what the log is told of those whom nobody knows, who might fill it.
	strayPerMinute, strayAtOnce = 10, 20
)

// auditEntry is a line of the audit log about a request, without how it went.
func auditEntry(r *http.Request, who auth.Principal, tool string) audit.Entry {
	info := request.FromContext(r.Context())
	return audit.Entry{
		Event: audit.Answered, Request: info.ID, Address: info.Address, Issuer: who.Issuer, Subject: who.Subject, ClientID: who.ClientID,
		Client: caller, Tool: tool,
	}
}

// auditEntry is a line about a request that follows the route. What only its address names has that for its tool.
func (rt route) auditEntry(r *http.Request, who visit) audit.Entry {
	e := auditEntry(r, who.Principal, cmp.Or(rt.action, rt.reads, rt.pattern))
	e.Session = r.PathValue("id")
	if rt.scope != signedIn && rt.scope != anybody {
		e.Scope = rt.scope
	}
	if path := r.URL.Query().Get("path"); path != "" {
		e.Files = []string{path}
	}
	return e
}

// act follows a route that changes something: within the visitor's rate, and with the audit log told before and after.
func (v *Viewer) act(rt route, w http.ResponseWriter, r *http.Request, who visit) error {
	if err := v.Limiter.Count(who.owner); err != nil {
		return err
	}
	e := rt.auditEntry(r, who)
	e.Event = audit.Called
	if err := v.Audit.Require(r.Context(), e); err != nil {
		return err
	}
	e.Event = audit.Answered
	return v.told(rt, w, r, who, e)
}

// look follows a route that shows what the audit log tells of: within a rate, and with the log told afterwards.
func (v *Viewer) look(rt route, w http.ResponseWriter, r *http.Request, who visit) error {
	if err := v.looks.Count(who.owner); err != nil {
		return err
	}
	return v.told(rt, w, r, who, rt.auditEntry(r, who))
}

// told goes where a route leads, and tells the audit log how that went.
func (v *Viewer) told(rt route, w http.ResponseWriter, r *http.Request, who visit, e audit.Entry) error {
	began := time.Now()
	err := rt.handle(w, r, who)
	e.Went(err)
	e.Seconds = time.Since(began).Seconds()
	v.Audit.Append(e)
	return err
}

// tellRefused tells the audit log of a request that it has not been told of, if it was for what its visitor may not have, or what is
// not there for him. Of those that come too often it hears of the first.
func (v *Viewer) tellRefused(rt route, r *http.Request, who visit, err error) {
	kind := fault.KindOf(err)
	if err == nil || kind != fault.Forbidden && kind != fault.NotFound || !v.looks.Tells(who.owner) {
		return
	}
	e := rt.auditEntry(r, who)
	e.Went(err)
	v.Audit.Append(e)
}

// tellSignIn tells the audit log who has signed in, or that somebody could not.
func (v *Viewer) tellSignIn(r *http.Request, p auth.Principal, err error) {
	if err != nil && !v.strays.Tells(sessions.Owner{}) {
		return
	}
	e := auditEntry(r, p, "sign_in")
	e.Went(err)
	v.Audit.Append(e)
}
