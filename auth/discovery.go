package auth

import (
	"context"
	"net/http"
	"strings"

	"cellblock/internal/fault"
)

// discover asks an issuer where its keys are: OpenID Connect Discovery 1.0 first, then RFC 8414, whose paths differ for
// issuers that have one.
func (f *fetcher) discover(ctx context.Context, issuer string) (jwksURI string, err error) {
	addresses, err := metadataAddresses(issuer)
	if err != nil {
		return "", err
	}
	for _, address := range addresses {
		var metadata struct {
			Issuer  string `json:"issuer"`
			JWKSURI string `json:"jwks_uri"`
		}
		status, err := f.get(ctx, address, &metadata)
		switch {
		case status >= http.StatusBadRequest && status < http.StatusInternalServerError:
			continue // not here: some say so by 403 or 400
		case err != nil:
			return "", err
		case metadata.Issuer != issuer: // OpenID Connect Discovery 1.0, section 4.3
			return "", otherIssuer(address, issuer, metadata.Issuer)
		case metadata.JWKSURI == "":
			return "", fault.New(fault.Unavailable, "%s names no jwks_uri", address).WithHint("Set %s.", EnvJWKSURI)
		}
		return metadata.JWKSURI, checkJWKSURI(address, metadata.JWKSURI)
	}
	return "", fault.New(fault.Unavailable, "the issuer publishes no metadata at %s", strings.Join(addresses, " or ")).
		WithHint("Check %s, or name the keys in %s.", EnvIssuer, EnvJWKSURI)
}

func checkJWKSURI(metadata, keys string) error {
	from, err := parseURL(metadata)
	if err != nil {
		return err
	}
	to, err := parseURL(keys)
	if err != nil {
		return err
	}
	return checkNext(from, to)
}

// metadataAddresses are where an issuer's metadata may lie.
func metadataAddresses(issuer string) ([]string, error) {
	u, err := parseURL(issuer)
	if err != nil {
		return nil, err
	}
	if u.RawQuery != "" {
		return nil, fault.New(fault.Invalid, "the issuer %.200q has a query", issuer).WithHint("Check %s.", EnvIssuer)
	}
	path := strings.TrimSuffix(u.EscapedPath(), "/")
	origin := u.Scheme + "://" + u.Host
	addresses := []string{
		origin + path + "/.well-known/openid-configuration",
		origin + "/.well-known/oauth-authorization-server" + path,
	}
	if path != "" {
		addresses = append(addresses, origin+"/.well-known/openid-configuration"+path)
	}
	return addresses, nil
}

func otherIssuer(address, issuer, found string) error {
	err := fault.New(fault.Unavailable, "%s is the metadata of another issuer (%.200q, not %q)", address, found, issuer)
	if strings.TrimSuffix(found, "/") == strings.TrimSuffix(issuer, "/") {
		return err.WithHint("Set %s=%s: tokens carry it exactly so.", EnvIssuer, found)
	}
	return err.WithHint("Check %s.", EnvIssuer)
}
