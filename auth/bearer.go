package auth

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/request"
)

// BearerOptions say how RequireBearer and InsufficientScope answer.
type BearerOptions struct {
	// ResourceMetadata is the URL of the protected-resource metadata (RFC 9728, section 5.1). Empty: not named.
	ResourceMetadata string
	// Scopes are what a client without a token should ask for (MCP, "Authorization", "Scope selection").
	Scopes []string
	// ScopePrefix stands before each scope that a client is told to ask for (EnvConfig.ScopePrefix).
	ScopePrefix string
	// Logger gets the reason of every refusal, never a token. Nil: slog.Default.
	Logger *slog.Logger
}

func (o BearerOptions) logger() *slog.Logger {
	if o.Logger != nil {
		return o.Logger
	}
	return slog.Default()
}

// The error codes of RFC 6750, section 3.1.
const (
	codeInvalidRequest    = "invalid_request"
	codeInvalidToken      = "invalid_token"
	codeInsufficientScope = "insufficient_scope"
)

// retryAfter is when a client may ask again, in seconds, while tokens cannot be verified.
const retryAfter = "5"

var (
	errNoToken = fault.New(fault.Unauthenticated, "this needs a bearer token").
			WithHint("Send it in a header, as Authorization: Bearer TOKEN.")
	errEmptyToken = fault.New(fault.Unauthenticated, "the bearer token is empty").
			WithHint("Send it in a header, as Authorization: Bearer TOKEN; perhaps a variable that should hold it is not set.")
	errTokenSyntax = fault.New(fault.Unauthenticated, "the bearer token holds characters that no token has").
			WithHint("Send the token alone after Bearer, without quotes.")
	errManyHeaders = fault.New(fault.Invalid, "there are several Authorization headers").
			WithHint("Send exactly one.")
)

// RequireBearer lets only requests through whose Authorization header carries a token that v accepts (RFC 6750, section
// 2.1; a token in the query or body is not looked for). The handler finds the Principal with FromContext, and finds no
// Authorization header: nothing behind this point has a use for the token.
//
// Without a token, or with one that does not hold, the answer is 401 with WWW-Authenticate; several headers are 400; a
// verifier that cannot decide now is answered with its error's status. The body is JSON: error, kind, message, hint.
func RequireBearer(v Verifier, o BearerOptions) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			p, err := authenticate(r.Context(), v, r.Header.Values("Authorization"))
			if err != nil {
				o.refuse(w, r, err)
				return
			}
			inner := r.WithContext(NewContext(r.Context(), p))
			inner.Header = r.Header.Clone()
			inner.Header.Del("Authorization")
			next.ServeHTTP(w, inner)
		})
	}
}

func authenticate(ctx context.Context, v Verifier, headers []string) (Principal, error) {
	token, err := bearerToken(headers)
	if err != nil {
		return Principal{}, err
	}
	return v(ctx, token)
}

// bearerToken takes the token out of the values of the Authorization header. Another scheme counts as no token.
func bearerToken(headers []string) (string, error) {
	switch len(headers) {
	case 0:
		return "", errNoToken
	case 1:
	default:
		return "", errManyHeaders
	}
	scheme, token, _ := strings.Cut(strings.Trim(headers[0], " \t"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", errNoToken
	}
	token = strings.TrimLeft(token, " ")
	if token == "" {
		return "", errEmptyToken
	}
	if strings.TrimRight(token, "=") == "" || strings.ContainsFunc(strings.TrimRight(token, "="), notB64) {
		return "", errTokenSyntax
	}
	return token, nil
}

// notB64 tells whether r cannot stand in a b64token (RFC 6750, section 2.1).
func notB64(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return false
	}
	return !strings.ContainsRune("-._~+/", r)
}

// refuse answers r with err and logs why.
func (o BearerOptions) refuse(w http.ResponseWriter, r *http.Request, err error) {
	level := slog.LevelWarn
	if errors.Is(err, errNoToken) {
		level = slog.LevelInfo // how every client starts
	}
	kind := fault.KindOf(err)
	o.log(r, level, err)

	code := ""
	switch {
	case errors.Is(err, errNoToken): // RFC 6750, section 3.1: no code for a client that did not know
	case kind == fault.Unauthenticated:
		code = codeInvalidToken
	case kind == fault.Invalid:
		code = codeInvalidRequest
	}
	if kind == fault.Unavailable {
		w.Header().Set("Retry-After", retryAfter)
	}
	if kind == fault.Unauthenticated || kind == fault.Invalid {
		w.Header().Set("WWW-Authenticate", o.challenge(code, err, o.Scopes))
	}
	writeError(w, kind.HTTPStatus(), code, err)
}

// log writes why a request is refused, under the name that it has in other lines, and whose it is: behind a proxy, the
// client's address (request.Info).
func (o BearerOptions) log(r *http.Request, level slog.Level, err error, more ...any) {
	info, client := request.FromContext(r.Context()), r.RemoteAddr
	if info.Address != "" {
		client = info.Address
	}
	o.logger().Log(r.Context(), level, "request refused", append([]any{
		"request", info.ID, "client", client, "path", r.URL.Path, "reason", logged(err), "kind", fault.KindOf(err).String()}, more...)...)
}

// RequireScope lets only requests through, behind RequireBearer, whose token carries a scope.
func RequireScope(scope string, o BearerOptions) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := FromContext(r.Context()); !ok || !p.Has(scope) {
				InsufficientScope(w, r, o, NeedsScope("this", scope))
				return
			}
			next.ServeHTTP(w, r)
		})
	}
}

// InsufficientScope answers a request whose token holds but lacks scopes, as the error of NeedsScope says: 403 with
// WWW-Authenticate, so that a client can ask its user for more (RFC 6750, section 3.1; MCP, "Authorization", "Scope
// challenge").
func InsufficientScope(w http.ResponseWriter, r *http.Request, o BearerOptions, err error) {
	scopes := ScopesIn(err)
	o.log(r, slog.LevelInfo, err, "scopes", scopes)
	w.Header().Set("WWW-Authenticate", o.challenge(codeInsufficientScope, err, scopes))
	writeError(w, fault.Forbidden.HTTPStatus(), codeInsufficientScope, err)
}

// challenge is the value of WWW-Authenticate (RFC 6750, section 3; RFC 9728, section 5.1).
func (o BearerOptions) challenge(code string, err error, scopes []string) string {
	var params []string
	add := func(name, value string) {
		if value != "" {
			params = append(params, name+`="`+quotable(value)+`"`)
		}
	}
	if code != "" {
		add("error", code)
		add("error_description", err.Error())
	}
	add("scope", strings.Join(Prefixed(o.ScopePrefix, scopes), " "))
	add("resource_metadata", o.ResourceMetadata)
	if len(params) == 0 {
		return "Bearer"
	}
	return "Bearer " + strings.Join(params, ", ")
}

// quotable replaces what may not stand inside the quotes of a parameter (RFC 6750, section 3).
func quotable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"':
			return '\''
		case r < ' ' || r > '~' || r == '\\':
			return '?'
		}
		return r
	}, s)
}

func writeError(w http.ResponseWriter, status int, code string, err error) {
	body, failed := json.Marshal(struct {
		Error string `json:"error,omitempty"`
		fault.Body
	}{code, fault.BodyOf(err)})
	if failed != nil {
		panic("auth: " + failed.Error()) // texts only: cannot fail
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	w.Write(append(body, '\n')) // a client that has gone away does not read why
}
