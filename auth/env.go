package auth

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// The environment variables that configure who may call.
const (
	EnvJWKSURI       = "MCP_JWKS_URI"
	EnvIssuer        = "MCP_ISSUER"
	EnvAudience      = "MCP_AUDIENCE"
	EnvAlgorithm     = "MCP_ALGORITHM"
	EnvPublicKeyPath = "MCP_PUBLIC_KEY_PATH"
	EnvScopeClaim    = "MCP_SCOPE_CLAIM"
	EnvScopePrefix   = "MCP_SCOPE_PREFIX"
)

const envPrefix = "MCP_"

var envNames = []string{EnvJWKSURI, EnvIssuer, EnvAudience, EnvAlgorithm, EnvPublicKeyPath, EnvScopeClaim, EnvScopePrefix}

// clientNames are variables of MCP clients, which a server that is started beside one inherits: Claude Code's time limits,
// and the port of a client's sign-in. They say nothing to us.
var clientNames = []string{"MCP_TIMEOUT", "MCP_TOOL_TIMEOUT", "MCP_OAUTH_CALLBACK_PORT"}

// EnvConfig is what the MCP_* variables say.
type EnvConfig struct {
	// PublicKeyPath is MCP_PUBLIC_KEY_PATH: the key that tokens are verified with (see LoadPublicKey). Without one the keys
	// are fetched.
	PublicKeyPath string
	// JWKSURI is MCP_JWKS_URI: where keys are fetched. Empty: where the issuer's metadata say.
	JWKSURI string
	// Issuer is MCP_ISSUER: the iss that tokens must carry. With a key of one's own it may be left out; iss is then not
	// checked, because a key belongs to one issuer anyway.
	Issuer string
	// Audiences is MCP_AUDIENCE, a list with commas or spaces between. Empty: the public URL of /mcp, which is the
	// caller's to know (see Open).
	Audiences []string
	// Algorithms is MCP_ALGORITHM, such a list too; DefaultAlgorithm where it is not set.
	Algorithms []string
	// ScopeClaims is MCP_SCOPE_CLAIM, such a list too: where tokens say what they may do, if not in scope or scp.
	ScopeClaims []ClaimPath
	// ScopePrefix is MCP_SCOPE_PREFIX: what clients must write before a scope when they ask the issuer for it, such as
	// "api://cells/". Tokens may carry it or not.
	ScopePrefix string

	dev bool
}

// ConfigFromEnv reads the MCP_* variables among environ (as os.Environ returns them). Its error is Invalid: a name that
// nobody knows (but those of clients), a variable that is set but empty, variables that do not go together. No slip in a name or value leads to dev
// mode.
func ConfigFromEnv(environ []string) (EnvConfig, error) {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if len(name) < len(envPrefix) || !strings.EqualFold(name[:len(envPrefix)], envPrefix) {
			continue
		}
		if slices.Contains(clientNames, name) {
			continue
		}
		if !slices.Contains(envNames, name) {
			return EnvConfig{}, unknownName(name)
		}
		if value = strings.TrimSpace(value); value == "" {
			return EnvConfig{}, fault.New(fault.Invalid, "%s is set but empty", name).WithHint("Give it a value or unset it.")
		}
		values[name] = value
	}
	if len(values) == 0 {
		return EnvConfig{dev: true}, nil
	}
	return configFrom(values)
}

func unknownName(name string) error {
	err := fault.New(fault.Invalid, "unknown environment variable %s", name)
	upper := strings.ToUpper(name)
	bare := make([]string, len(envNames))
	for i, known := range envNames {
		if known == upper {
			return err.WithHint("Did you mean %s? Names are in capitals.", known)
		}
		bare[i] = strings.TrimPrefix(known, envPrefix)
	}
	if near := nearest.Of(strings.TrimPrefix(upper, envPrefix), bare); near != "" {
		return err.WithHint("Did you mean %s%s? Known are %s.", envPrefix, near, strings.Join(envNames, ", "))
	}
	return err.WithHint("Unset it. Known are %s.", strings.Join(envNames, ", "))
}

func configFrom(values map[string]string) (EnvConfig, error) {
	c := EnvConfig{
		PublicKeyPath: values[EnvPublicKeyPath], JWKSURI: values[EnvJWKSURI], Issuer: values[EnvIssuer],
		Audiences: list(values[EnvAudience]), Algorithms: list(values[EnvAlgorithm]),
		ScopePrefix: values[EnvScopePrefix],
	}
	for _, name := range []string{EnvAudience, EnvAlgorithm, EnvScopeClaim} {
		if values[name] != "" && len(list(values[name])) == 0 {
			return EnvConfig{}, fault.New(fault.Invalid, "%s names nothing", name).WithHint("Give it a value or unset it.")
		}
	}
	if err := c.checkSource(); err != nil {
		return EnvConfig{}, err
	}
	for _, text := range list(values[EnvScopeClaim]) {
		path, err := ParseClaimPath(text)
		if err != nil {
			return EnvConfig{}, err
		}
		c.ScopeClaims = append(c.ScopeClaims, path)
	}
	if c.ScopePrefix != "" && !isScope(c.ScopePrefix) {
		return EnvConfig{}, fault.New(fault.Invalid, "%s is %.100q", EnvScopePrefix, c.ScopePrefix).
			WithHint("Write it without spaces, such as api://cells/.")
	}
	if len(c.Algorithms) == 0 {
		c.Algorithms = []string{DefaultAlgorithm}
	}
	for _, a := range c.Algorithms {
		if err := checkAlgorithm(a); err != nil {
			return EnvConfig{}, err
		}
	}
	return c, nil
}

func list(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ' ' })
}

// checkSource refuses variables from which it does not follow where keys come from.
func (c EnvConfig) checkSource() error {
	switch {
	case c.JWKSURI != "" && c.PublicKeyPath != "":
		return fault.New(fault.Invalid, "%s and %s are both set", EnvJWKSURI, EnvPublicKeyPath).
			WithHint("Set the one that your issuer's keys come from.")
	case c.JWKSURI == "" && c.PublicKeyPath == "" && c.Issuer == "":
		return fault.New(fault.Invalid, "MCP_* variables are set, but none says where the keys are").
			WithHint("Set %s for an issuer that publishes its metadata, %s, or %s; or unset all MCP_* variables for dev mode.",
				EnvIssuer, EnvJWKSURI, EnvPublicKeyPath)
	case c.PublicKeyPath != "":
		return nil
	}
	return IssuerConfig{Rules: Rules{Issuer: c.Issuer}, JWKSURI: c.JWKSURI}.checkAddresses()
}

// Dev tells whether no MCP_* variable was set at all: dev mode, on loopback addresses only (see EnsureDev).
func (c EnvConfig) Dev() bool { return c.dev }

// AuthorizationServer returns where clients can ask for tokens, as far as is known: the issuer, if it has an address.
func (c EnvConfig) AuthorizationServer() string {
	if _, err := parseURL(c.Issuer); err != nil {
		return ""
	}
	return c.Issuer
}

// AsksForScopes tells whether a token's scopes are those that its client has asked the issuer for. Else they are roles or
// permissions that somebody has given to its user, and a client that asked for them would be refused.
func (c EnvConfig) AsksForScopes() bool {
	return len(c.ScopeClaims) == 0 || slices.ContainsFunc(c.ScopeClaims, func(p ClaimPath) bool {
		return slices.ContainsFunc(standardScopes, func(s ClaimPath) bool { return slices.Equal(p, s) })
	})
}

// Authority is what vouches for tokens.
type Authority struct {
	Verifier Verifier
	// Health tells whether tokens can be verified now, and what is wrong, if anything.
	Health func() (serving bool, problem error)
	// Close ends what it does in the background, and waits for it.
	Close func()
}

// AlwaysThere is the authority of a verifier that depends on nobody.
func AlwaysThere(v Verifier) Authority {
	return Authority{Verifier: v, Health: func() (bool, error) { return true, nil }, Close: func() {}}
}

// Open loads or fetches the keys and returns what verifies tokens as c describes. defaultAudience is accepted where
// MCP_AUDIENCE is not set. It is not for dev mode. Its error is Invalid; an issuer that cannot be reached is none (OpenIssuer).
func (c EnvConfig) Open(ctx context.Context, defaultAudience string, logger *slog.Logger) (Authority, error) {
	rules := Rules{
		Issuer: c.Issuer, Audiences: c.AudiencesOr(defaultAudience), Algorithms: c.Algorithms, ScopeClaims: c.ScopeClaims,
		ScopePrefix: c.ScopePrefix,
	}
	if c.PublicKeyPath == "" {
		i, err := OpenIssuer(ctx, IssuerConfig{Rules: rules, JWKSURI: c.JWKSURI, Logger: logger})
		if err != nil {
			return Authority{}, err
		}
		return Authority{Verifier: i.Verify, Health: i.Health, Close: i.Close}, nil
	}
	key, err := LoadPublicKey(c.PublicKeyPath)
	if err != nil {
		return Authority{}, err
	}
	v, err := NewKeyVerifier(KeyConfig{PublicKey: key, Rules: rules})
	return AlwaysThere(v), err
}

// AudiencesOr returns whom tokens must be meant for: MCP_AUDIENCE, or defaultAudience where that is not set.
func (c EnvConfig) AudiencesOr(defaultAudience string) []string {
	if len(c.Audiences) == 0 && defaultAudience != "" {
		return []string{defaultAudience}
	}
	return c.Audiences
}
