package viewer

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/zitadel/oidc/v3/pkg/client/rp"
	"github.com/zitadel/oidc/v3/pkg/oidc"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/web/viewer/signin"
)

const (
	callbackPath = "/signin/callback"
	// flowLifetime is how long a person may take to sign in at the provider.
	flowLifetime = 10 * time.Minute
	// providerTimeout bounds each question to the provider.
	providerTimeout = 10 * time.Second
)

// ProviderConfig says how people sign in at an identity provider (OpenID Connect Core 1.0, authorization code with PKCE).
type ProviderConfig struct {
	// Issuer is the provider's; ClientID and ClientSecret are what this server is registered as there, with the redirect address
	// PublicURL/signin/callback. A public client has no secret.
	Issuer, ClientID, ClientSecret string
	// Scopes are what is asked for beside "openid".
	Scopes []string
	// Resource is whom the token must be meant for (RFC 8707).
	Resource string
}

// provider signs people in. It gets to know the issuer when somebody first wants to.
type provider struct {
	ProviderConfig
	redirect string
	client   *http.Client

	mu    sync.Mutex
	party rp.RelyingParty
}

func newProvider(cfg ProviderConfig, publicURL string) *provider {
	if cfg.Issuer == "" || cfg.ClientID == "" {
		return nil
	}
	return &provider{ProviderConfig: cfg, redirect: publicURL + callbackPath, client: &http.Client{Timeout: providerTimeout}}
}

type nonceKey struct{}

// known returns the party that this server is at the issuer. While that does not answer the error is Unavailable.
func (p *provider) known(ctx context.Context) (rp.RelyingParty, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.party != nil {
		return p.party, nil
	}
	nonce := func(ctx context.Context) string { n, _ := ctx.Value(nonceKey{}).(string); return n }
	party, err := rp.NewRelyingPartyOIDC(ctx, p.Issuer, p.ClientID, p.ClientSecret, p.redirect, append([]string{oidc.ScopeOpenID}, p.Scopes...),
		rp.WithHTTPClient(p.client), rp.WithSigningAlgsFromDiscovery(), rp.WithVerifierOpts(rp.WithNonce(nonce)))
	if err != nil {
		return nil, fault.New(fault.Unavailable, "the identity provider cannot be asked now: %w", err).WithHint("Try again in a minute.")
	}
	p.party = party
	return party, nil
}

// begin is the address at the provider where a flow goes on.
func (p *provider) begin(ctx context.Context, flow signin.Flow) (string, error) {
	party, err := p.known(ctx)
	if err != nil {
		return "", err
	}
	return rp.AuthURL(flow.State(), party, rp.WithCodeChallenge(oidc.NewSHACodeChallenge(flow.Verifier())),
		rp.AuthURLOpt(rp.WithURLParam("nonce", flow.Nonce())), rp.AuthURLOpt(rp.WithURLParam("resource", p.Resource))), nil
}

// end exchanges the code that a flow has ended with for an access token. The ID token beside it must be of the same flow.
func (p *provider) end(ctx context.Context, flow signin.Flow, code string) (token string, err error) {
	party, err := p.known(ctx)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, nonceKey{}, flow.Nonce()), providerTimeout)
	defer cancel()
	tokens, err := rp.CodeExchange[*oidc.IDTokenClaims](ctx, code, party, rp.WithCodeVerifier(flow.Verifier()))
	if err != nil {
		return "", fault.New(fault.Unauthenticated, "the identity provider did not confirm the sign-in").WithHint("Sign in again.")
	}
	return tokens.AccessToken, nil
}

// flowCookie is the name of the cookie that binds a flow to its browser.
func (v *Viewer) flowCookie() string { return v.cookie + "-flow" }

// startFlow sends a browser to the provider.
func (v *Viewer) startFlow(w http.ResponseWriter, r *http.Request, _ visit) error {
	if v.provider == nil {
		return v.notFound(w, r, visit{})
	}
	flow := signin.NewFlow()
	where, err := v.provider.begin(r.Context(), flow)
	if err != nil {
		return err
	}
	if to := r.URL.Query().Get("to"); ownPage(to) {
		v.remember(w, to)
	} else {
		v.forgetWay(w) // who signs in comes to the page that the link to here stood on, and to none that another tab wanted
	}
	// Lax: the browser comes back by a link of the provider's.
	http.SetCookie(w, &http.Cookie{
		Name: v.flowCookie(), Value: string(flow), Path: "/", MaxAge: int(flowLifetime.Seconds()), HttpOnly: true,
		Secure: secure(v.PublicURL), SameSite: http.SameSiteLaxMode,
	})
	http.Redirect(w, r, where, http.StatusSeeOther)
	return nil
}

// endFlow signs in a browser that comes back from the provider.
func (v *Viewer) endFlow(w http.ResponseWriter, r *http.Request, _ visit) error {
	if v.provider == nil {
		return v.notFound(w, r, visit{})
	}
	p, err := v.finishFlow(w, r)
	v.tellSignIn(r, p, err)
	if err != nil {
		return err
	}
	v.bounce(w, r, v.wayBack(w, r)) // not a redirect: browsers would keep the strict cookie back
	return nil
}

// finishFlow signs a browser in with what the provider sends it back with, if it is the browser that began.
func (v *Viewer) finishFlow(w http.ResponseWriter, r *http.Request) (p auth.Principal, err error) {
	query := r.URL.Query()
	cookie, err := r.Cookie(v.flowCookie())
	http.SetCookie(w, &http.Cookie{Name: v.flowCookie(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: secure(v.PublicURL)})
	iss := query.Get("iss") // RFC 9207
	switch {
	case err != nil || !signin.Flow(cookie.Value).Is(query.Get("state")) || iss != "" && iss != v.provider.Issuer:
		return p, fault.New(fault.Unauthenticated, "this sign-in was not begun in this browser, or too long ago").WithHint("Sign in again.")
	case query.Get("code") == "":
		return p, fault.New(fault.Unauthenticated, "the identity provider refused: %.200q", strings.TrimSpace(query.Get("error")+" "+query.Get("error_description"))).
			WithHint("Sign in again, or ask whoever runs the identity provider.")
	}
	token, err := v.provider.end(r.Context(), signin.Flow(cookie.Value), query.Get("code"))
	if err != nil {
		return p, err
	}
	return v.begin(w, r, token)
}
