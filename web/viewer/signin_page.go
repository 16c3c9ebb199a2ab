package viewer

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/internal/words"
)

func (v *Viewer) signInRoutes() []route {
	return []route{
		{pattern: "GET /signin", scope: anybody, handle: v.signInByLink},
		{pattern: "POST /signin", scope: anybody, handle: v.signInByCode},
		{pattern: "GET /signin/start", scope: anybody, handle: v.startFlow},
		{pattern: "GET " + callbackPath, scope: anybody, handle: v.endFlow},
		{pattern: "POST /signout", scope: signedIn, handle: v.signOut},
	}
}

// signInForm is what the page to sign in shows.
type signInForm struct {
	// Code waits for its person to confirm it.
	Code string
	// Problem says what went wrong before, and Hint what to do.
	Problem, Hint string
	MCPURL        string
	Dev           bool
	// Command is what makes a link that signs in.
	Command string
	// Provider is where people sign in; empty: by a link of the command line's only.
	Provider string
	// To is the page of ours where they go on from there; empty: the list of sessions.
	To string
}

func (v *Viewer) signInForm() signInForm {
	form := signInForm{MCPURL: v.PublicURL + "/mcp", Dev: v.Dev, Command: "cellblock open"}
	switch {
	case !v.Dev:
		form.Command += " --token-file FILE"
	case v.DataDir != "":
		form.Command += " --data-dir " + words.Shell(v.DataDir)
	}
	if v.provider != nil {
		form.Provider = v.provider.Issuer
		if u, err := url.Parse(form.Provider); err == nil {
			form.Provider = u.Host
		}
	}
	return form
}

// showSignIn shows how to sign in, and what went wrong before.
func (v *Viewer) showSignIn(w http.ResponseWriter, r *http.Request, status int, form signInForm, problem fault.Body) {
	form.Problem, form.Hint = problem.Message, problem.Hint
	if err := v.show(w, status, "signin", page{Title: "Sign in", Body: form}); err != nil {
		v.fail(w, r, err)
	}
}

// askToSignIn shows how to sign in to who wanted a page, where the sign-in then leads.
func (v *Viewer) askToSignIn(w http.ResponseWriter, r *http.Request, status int, to string) {
	v.remember(w, to)
	form := v.signInForm()
	if ownPage(to) {
		form.To = to
	}
	v.showSignIn(w, r, status, form, v.whyStrange(r))
}

// signInByLink signs in who follows a link from a terminal. Who comes from another site's page is asked first, and what only
// looks ahead uses up no code.
func (v *Viewer) signInByLink(w http.ResponseWriter, r *http.Request, who visit) error {
	code, left := r.URL.Query().Get("code"), r.URL.Query().Get("to") // left is the page that has found its sign-in ended
	if !ownPage(left) {
		left = ""
	}
	from := r.Header.Get("Sec-Fetch-Site")
	switch {
	case code == "" && who.signIn.ID != "":
		http.Redirect(w, r, cmp.Or(left, "/"), http.StatusSeeOther)
		return nil
	case code == "":
		if v.whyStrange(r).Message == "" {
			left = "" // he has signed out: who signs in next does not come to the page that one of his tabs had
		}
		v.askToSignIn(w, r, http.StatusOK, left)
		return nil
	case r.Method == http.MethodHead || strings.Contains(r.Header.Get("Sec-Purpose"), "prefetch") || from != "" && from != "none" && from != "same-origin":
		form := v.signInForm()
		form.Code = code
		return v.show(w, http.StatusOK, "signin", page{Title: "Sign in", Body: form})
	}
	return v.redeem(w, r, code)
}

// signInByCode signs in who has confirmed a code.
func (v *Viewer) signInByCode(w http.ResponseWriter, r *http.Request, _ visit) error {
	return v.redeem(w, r, r.PostFormValue("code"))
}

func (v *Viewer) redeem(w http.ResponseWriter, r *http.Request, code string) error {
	var p auth.Principal
	token, err := v.SignIns.Redeem(code)
	if err == nil {
		p, err = v.begin(w, r, token)
	}
	unknown := fault.KindOf(err) == fault.Unauthenticated
	again := unknown && visitOf(r.Context()).signIn.ID != "" // a link that is followed again does no harm
	if !again {
		v.tellSignIn(r, p, err)
	}
	switch {
	case err == nil, again:
	case unknown:
		v.showSignIn(w, r, http.StatusUnauthorized, v.signInForm(), bodyForPeople(err))
		return nil
	default:
		return err
	}
	http.Redirect(w, r, v.wayBack(w, r), http.StatusSeeOther)
	return nil
}

// begin signs a browser in with a token, and returns whom it speaks for. A sign-in that the browser had before ends.
func (v *Viewer) begin(w http.ResponseWriter, r *http.Request, token string) (auth.Principal, error) {
	p, err := v.Verifier(r.Context(), token)
	if err != nil {
		return p, err
	}
	if before := visitOf(r.Context()); before.signIn.ID != "" {
		if err := v.SignIns.End(before.signIn); err != nil {
			v.Logger.Warn("a sign-in could not be ended", "error", err)
		}
	}
	secret, err := v.SignIns.Begin(token, p.Expires)
	if err == nil {
		v.setCookie(w, secret, p.Expires)
	}
	return p, err
}

func (v *Viewer) signOut(w http.ResponseWriter, r *http.Request, who visit) error {
	if err := v.SignIns.End(who.signIn); err != nil {
		return fault.New(fault.Unavailable, "the sign-in could not be ended: %w", err)
	}
	v.setCookie(w, "", who.Expires)
	v.forgetWay(w)
	http.Redirect(w, r, "/signin", http.StatusSeeOther)
	return nil
}

// bounce loads a page once more, from a page of ours. Browsers keep a strict cookie back on the first request after a link on
// another site.
func (v *Viewer) bounce(w http.ResponseWriter, r *http.Request, to string) {
	if err := v.show(w, http.StatusOK, "bounce", page{Title: "cellblock", Body: to}); err != nil {
		v.fail(w, r, err)
	}
}
