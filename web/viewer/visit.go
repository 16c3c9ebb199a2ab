package viewer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/sessions"
	"cellblock/web/viewer/signin"
)

// visit is who asks for a page. Its zero value is nobody.
type visit struct {
	auth.Principal
	signIn signin.SignIn
	owner  sessions.Owner
}

// CSRF is what pages of the visitor send back; empty for nobody.
func (who visit) CSRF() string {
	if who.signIn.ID == "" {
		return ""
	}
	return who.signIn.CSRF()
}

// Mark tells visitors apart, and the same visitor with other scopes; it tells nothing else.
func (who visit) Mark() string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", who.Issuer, who.Subject, slices.Sorted(slices.Values(who.Scopes))))
	return hex.EncodeToString(sum[:8])
}

// Left is how long the sign-in lasts from now on, in seconds.
func (who visit) Left() int64 { return int64(time.Until(who.signIn.Expires).Seconds()) }

// can tells whether the visitor has a scope.
func (who visit) can(scope string) bool { return who.Has(scope) }

// mayRun tells whether the visitor may run code of a language.
func (who visit) mayRun(language string) bool { return who.can(language + ":execute") }

// permit refuses a profile that the visitor may not use.
func (who visit) permit(profile string) error {
	if scope := mcpserver.ProfileScope(profile); scope != "" && !who.can(scope) {
		return auth.NeedsScope("the profile "+profile, scope)
	}
	return nil
}

type visitKey struct{}

func visitOf(ctx context.Context) visit {
	who, _ := ctx.Value(visitKey{}).(visit)
	return who
}

// cookieName is the name of the cookie. Servers of one host share their cookies, whatever their ports, so each has its own.
func cookieName(publicURL string) string {
	if secure(publicURL) {
		return "__Host-cellblock"
	}
	sum := sha256.Sum256([]byte(publicURL))
	return "cellblock-" + hex.EncodeToString(sum[:4])
}

func secure(publicURL string) bool { return strings.HasPrefix(publicURL, "https:") }

// setCookie gives a browser the secret of its sign-in, or takes it away when there is none.
func (v *Viewer) setCookie(w http.ResponseWriter, secret string, expires time.Time) {
	c := &http.Cookie{
		Name: v.cookie, Value: secret, Path: "/", Expires: expires, HttpOnly: true, Secure: secure(v.PublicURL), SameSite: http.SameSiteStrictMode,
	}
	if secret == "" {
		c.MaxAge = -1
	}
	http.SetCookie(w, c)
}

// identified finds out who asks, and refuses nobody where somebody must be signed in.
func (v *Viewer) identified(must bool, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who, err := v.identify(r)
		if err != nil && must {
			v.refuseStranger(w, r, err)
			return
		}
		ctx := context.WithValue(r.Context(), visitKey{}, who)
		if err == nil {
			ctx = auth.NewContext(ctx, who.Principal)
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// identify finds the sign-in of a request's cookie and has its token verified.
func (v *Viewer) identify(r *http.Request) (visit, error) {
	cookie, err := r.Cookie(v.cookie)
	if err != nil {
		return visit{}, fault.New(fault.Unauthenticated, "nobody is signed in").WithHint("Sign in; cellblock open prints a link.")
	}
	in, err := v.SignIns.Find(cookie.Value)
	if err != nil {
		return visit{}, err
	}
	p, err := v.Verifier(r.Context(), in.Token)
	if err != nil {
		return visit{}, err
	}
	return visit{Principal: p, signIn: in, owner: sessions.Owner{Issuer: p.Issuer, Subject: p.Subject}}, nil
}

// whyStrange says why somebody must sign in who was signed in before: his browser still has the secret. It is empty for who was not, or has
// signed out.
func (v *Viewer) whyStrange(r *http.Request) fault.Body {
	if cookie, err := r.Cookie(v.cookie); err != nil || cookie.Value == "" {
		return fault.Body{}
	}
	return fault.Body{Message: "Your sign-in has ended.", Hint: "Sign in again to go on. Sessions have gone on meanwhile."}
}

// refuseStranger answers who is not signed in: with the page to sign in, a status that ends a stream for good, or an error.
func (v *Viewer) refuseStranger(w http.ResponseWriter, r *http.Request, err error) {
	switch {
	case fault.KindOf(err) != fault.Unauthenticated:
		v.fail(w, r, err)
	case strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		w.WriteHeader(http.StatusNoContent) // EventSource does not come back after it
	case wantsPage(r) && r.Header.Get("Sec-Fetch-Site") == "cross-site":
		v.bounce(w, r, r.URL.Path)
	case wantsPage(r):
		v.askToSignIn(w, r, http.StatusUnauthorized, r.URL.Path)
	default:
		v.fail(w, r, err)
	}
}
