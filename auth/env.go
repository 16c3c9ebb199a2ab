package auth

import (
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
)

const envPrefix = "MCP_"

var envNames = []string{EnvJWKSURI, EnvIssuer, EnvAudience, EnvAlgorithm, EnvPublicKeyPath}

// EnvConfig is what the MCP_* variables say.
type EnvConfig struct {
	// PublicKeyPath is MCP_PUBLIC_KEY_PATH: the key that tokens are verified with (see LoadPublicKey).
	PublicKeyPath string
	// Issuer is MCP_ISSUER: the iss that tokens must carry. With a key of one's own it may be left out; iss is then not
	// checked, because a key belongs to one issuer anyway.
	Issuer string
	// Audiences is MCP_AUDIENCE, a list with commas or spaces between. Empty: the public URL of /mcp, which is the
	// caller's to know (see Verifier).
	Audiences []string
	// Algorithm is MCP_ALGORITHM, DefaultAlgorithm where it is not set.
	Algorithm string

	dev bool
}

// ConfigFromEnv reads the MCP_* variables among environ (as os.Environ returns them). Its error is Invalid: a name that
// nobody knows, a variable that is set but empty, variables that do not go together; or Unavailable: keys from a URL
// (MCP_JWKS_URI, or MCP_ISSUER alone), which this version cannot fetch. No slip in a name or value leads to dev mode.
func ConfigFromEnv(environ []string) (EnvConfig, error) {
	values := map[string]string{}
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if len(name) < len(envPrefix) || !strings.EqualFold(name[:len(envPrefix)], envPrefix) {
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
		PublicKeyPath: values[EnvPublicKeyPath], Issuer: values[EnvIssuer], Algorithm: values[EnvAlgorithm],
		Audiences: strings.FieldsFunc(values[EnvAudience], func(r rune) bool { return r == ',' || r == ' ' }),
	}
	switch {
	case values[EnvAudience] != "" && len(c.Audiences) == 0:
		return EnvConfig{}, fault.New(fault.Invalid, "%s names nobody", EnvAudience).WithHint("Give it a value or unset it.")
	case values[EnvJWKSURI] != "" && c.PublicKeyPath != "":
		return EnvConfig{}, fault.New(fault.Invalid, "%s and %s are both set", EnvJWKSURI, EnvPublicKeyPath).
			WithHint("Set the one that your issuer's keys come from.")
	case values[EnvJWKSURI] != "":
		return EnvConfig{}, fetched("keys from " + EnvJWKSURI + " are not supported by this version")
	case c.PublicKeyPath == "" && c.Issuer != "":
		return EnvConfig{}, fetched("finding the keys of " + EnvIssuer + " by discovery is not supported by this version")
	case c.PublicKeyPath == "":
		return EnvConfig{}, fault.New(fault.Invalid, "MCP_* variables are set, but none says where the key is").
			WithHint("Set %s, or unset all MCP_* variables for dev mode.", EnvPublicKeyPath)
	}
	if c.Algorithm == "" {
		c.Algorithm = DefaultAlgorithm
	}
	return c, checkAlgorithm(c.Algorithm)
}

func fetched(message string) error {
	return fault.New(fault.Unavailable, "%s", message).
		WithHint("Save the issuer's public key as a PEM file and name it in %s.", EnvPublicKeyPath)
}

// Dev tells whether no MCP_* variable was set at all: dev mode, on loopback addresses only (see EnsureDev).
func (c EnvConfig) Dev() bool { return c.dev }

// Verifier loads the key and returns the verifier that c describes. defaultAudience is accepted where MCP_AUDIENCE is not
// set. It is not for dev mode.
func (c EnvConfig) Verifier(defaultAudience string) (Verifier, error) {
	key, err := LoadPublicKey(c.PublicKeyPath)
	if err != nil {
		return nil, err
	}
	return NewKeyVerifier(KeyConfig{
		PublicKey: key, Issuer: c.Issuer, Audiences: c.AudiencesOr(defaultAudience), Algorithms: []string{c.Algorithm},
	})
}

// AudiencesOr returns whom tokens must be meant for: MCP_AUDIENCE, or defaultAudience where that is not set.
func (c EnvConfig) AudiencesOr(defaultAudience string) []string {
	if len(c.Audiences) == 0 && defaultAudience != "" {
		return []string{defaultAudience}
	}
	return c.Audiences
}
