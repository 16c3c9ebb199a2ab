package auth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"slices"
	"strconv"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/nearest"
)

// DefaultAlgorithm is what tokens are signed with unless the operator says otherwise.
const DefaultAlgorithm = "RS256"

// MinRSABits is the smallest RSA modulus that is accepted (RFC 7518, section 3.3).
const MinRSABits = 2048

// algorithms are all that can be configured (RFC 7518, section 3.1; RFC 8037). What is symmetric, and "none", is not
// among them and so cannot be reached by any configuration.
var algorithms = []string{
	"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
}

// curves are those that RFC 7518, section 3.4, ties to each ECDSA algorithm.
var curves = map[string]elliptic.Curve{
	"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521(),
}

// checkAlgorithm returns an error unless name is an algorithm that may be used.
func checkAlgorithm(name string) error {
	if slices.Contains(algorithms, name) {
		return nil
	}
	err := fault.New(fault.Invalid, "signature algorithm %q cannot be used", name)
	switch {
	case strings.HasPrefix(strings.ToUpper(name), "HS"):
		return err.WithHint("Shared secrets (HS*) are never accepted; sign with a key pair, for example %s.", DefaultAlgorithm)
	case strings.EqualFold(name, "none"):
		return err.WithHint("Unsigned tokens are never accepted; use one of %s.", strings.Join(algorithms, ", "))
	}
	if near := nearest.Of(strings.ToUpper(name), algorithms); near != "" {
		return err.WithHint("Did you mean %s? Known are %s.", near, strings.Join(algorithms, ", "))
	}
	return err.WithHint("Use one of %s.", strings.Join(algorithms, ", "))
}

// checkFit returns an error unless key can verify algorithm's signatures.
func checkFit(algorithm string, key crypto.PublicKey) error {
	fits := false
	switch k := key.(type) {
	case *rsa.PublicKey:
		fits = strings.HasPrefix(algorithm, "RS") || strings.HasPrefix(algorithm, "PS")
	case *ecdsa.PublicKey:
		fits = curves[algorithm] == k.Curve
	case ed25519.PublicKey:
		fits = algorithm == "EdDSA"
	}
	if fits {
		return nil
	}
	return fault.New(fault.Invalid, "algorithm %s does not go with %s", algorithm, describeKey(key)).
		WithHint("Use %s.", suitable(key))
}

// checkKey returns an error unless key is of a kind and size that may be used.
func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k != nil && k.N != nil && k.N.BitLen() >= MinRSABits {
			return nil
		}
		return fault.New(fault.Invalid, "%s is too small", describeKey(key)).
			WithHint("Use a key of %d bits or more.", MinRSABits)
	case *ecdsa.PublicKey:
		if k != nil && suitable(key) != "" {
			return nil
		}
	case ed25519.PublicKey:
		if len(k) == ed25519.PublicKeySize {
			return nil
		}
	}
	return fault.New(fault.Invalid, "%s cannot verify tokens", describeKey(key)).
		WithHint("Use an RSA key (%d bits or more), an EC key on P-256, P-384 or P-521, or an Ed25519 key.", MinRSABits)
}

// describeKey names a key for people.
func describeKey(key crypto.PublicKey) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		if k != nil && k.N != nil {
			return "an RSA key of " + strconv.Itoa(k.N.BitLen()) + " bits"
		}
	case *ecdsa.PublicKey:
		if k != nil && k.Curve != nil {
			return "an EC key on " + k.Curve.Params().Name
		}
	case ed25519.PublicKey:
		return "an Ed25519 key"
	case nil:
		return "no key"
	}
	return "a key of an unknown kind"
}

// suitable names the algorithm to use with key, or "".
func suitable(key crypto.PublicKey) string {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return DefaultAlgorithm
	case *ecdsa.PublicKey:
		for name, curve := range curves {
			if curve == k.Curve {
				return name
			}
		}
	case ed25519.PublicKey:
		return "EdDSA"
	}
	return ""
}
