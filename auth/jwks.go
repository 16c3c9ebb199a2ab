package auth

import (
	"context"
	"crypto"
	"encoding/json"
	"slices"
	"strings"

	"github.com/MicahParks/jwkset"
	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"

	"cellblock/internal/fault"
)

// maxKeys bounds the keys of a set: a token without a kid is tried with each.
const maxKeys = 100

// keySet is what an issuer publishes, as far as tokens may be verified with it.
type keySet struct {
	keyring
	// prints tells one set from another: kid, algorithm and key of each, in the issuer's order.
	prints []string
	// unused says of each key that is left out why.
	unused []string
}

// parseKeys reads a JSON Web Key Set (RFC 7517, section 5). Keys that no algorithm goes with are left out, among them those
// for encryption and those of kinds that nobody knew when this was written.
func parseKeys(set []json.RawMessage, algorithms []string) (*keySet, error) {
	if len(set) > maxKeys {
		return nil, fault.New(fault.Unavailable, "the issuer publishes %d keys, at most %d are read", len(set), maxKeys)
	}
	var all layers
	ks := &keySet{}
	for _, raw := range set {
		key, kid, err := parseKey(raw, algorithms)
		if err != nil {
			ks.unused = append(ks.unused, strings.TrimSpace(kid+" "+err.Error()))
			continue
		}
		if all, err = all.with(key); err != nil {
			return nil, fault.New(fault.Internal, "cannot make a key set: %w", err)
		}
		text, _ := json.Marshal(key.Marshal())
		ks.prints = append(ks.prints, string(text))
	}
	ks.find = all.find
	return ks, nil
}

// layers are the keys of a set. Each holds one key of a name at most: issuers do publish several of one, though they should
// not (RFC 7517, section 4.5), or without any.
type layers []keyfunc.Keyfunc

// with returns the layers with another key.
func (l layers) with(key jwkset.JWK) (layers, error) {
	ctx, kid := context.Background(), key.Marshal().KID
	for _, layer := range l {
		if _, err := layer.Storage().KeyRead(ctx, kid); err != nil { // there is none
			return l, layer.Storage().KeyWrite(ctx, key)
		}
	}
	layer, err := keyfunc.New(keyfunc.Options{Storage: jwkset.NewMemoryStorage()})
	if err != nil {
		return l, err
	}
	return append(l, layer), layer.Storage().KeyWrite(ctx, key)
}

// parseKey reads one key. Only the members that make a public key are looked at: no address in it is followed, and a private
// half that an issuer publishes by mistake is not kept.
func parseKey(raw json.RawMessage, algorithms []string) (key jwkset.JWK, kid string, err error) {
	var all jwkset.JWKMarshal
	if err := json.Unmarshal(raw, &all); err != nil {
		return key, "", fault.New(fault.Invalid, "is no key")
	}
	public := jwkset.JWKMarshal{KTY: all.KTY, KID: all.KID, ALG: all.ALG, CRV: all.CRV, X: all.X, Y: all.Y, N: all.N, E: all.E}
	if all.USE != "" && all.USE != jwkset.UseSig || len(all.KEYOPS) > 0 && !slices.Contains(all.KEYOPS, jwkset.KeyOpsVerify) {
		return key, all.KID, fault.New(fault.Invalid, "is not for signatures")
	}
	key, err = jwkset.NewJWKFromMarshal(public, jwkset.JWKMarshalOptions{}, jwkset.JWKValidateOptions{SkipAll: true})
	if err != nil {
		return key, all.KID, fault.New(fault.Invalid, "is no public key that is known here")
	}
	if err := checkKey(key.Key()); err != nil {
		return key, all.KID, err
	}
	if !slices.ContainsFunc(algorithms, func(a string) bool { return goesWith(key, a) }) {
		return key, all.KID, fault.New(fault.Invalid, "is for %s", algorithmOf(key))
	}
	return key, all.KID, nil
}

// goesWith tells whether an algorithm's signatures can be verified with a key, and whether its issuer wants that.
func goesWith(key jwkset.JWK, algorithm string) bool {
	wanted := key.Marshal().ALG.String()
	return (wanted == "" || wanted == algorithm) && checkFit(algorithm, key.Key()) == nil
}

func algorithmOf(key jwkset.JWK) string {
	if wanted := key.Marshal().ALG.String(); wanted != "" {
		return wanted
	}
	return suitable(key.Key())
}

// errUnknownKey is the error for a token whose key is not among those that were fetched last: its issuer may have begun to
// use it since.
var errUnknownKey = refused("the token is signed with a key that its issuer does not publish").
	WithHint("Get a new token from the issuer that this server trusts.")

// find finds the keys of a token: by its kid, or all that go with its algorithm where it names none.
func (l layers) find(t *jwt.Token) (any, error) {
	kid, named := t.Header["kid"]
	name, isText := kid.(string)
	switch {
	case !named:
		return l.keysFor(t.Method.Alg())
	case !isText:
		return nil, refused("the token's kid is not text")
	}
	var fit jwt.VerificationKeySet
	known := false
	for _, layer := range l {
		if _, err := layer.Storage().KeyRead(context.Background(), name); err != nil {
			continue
		}
		known = true
		if key, err := layer.Keyfunc(t); err == nil && checkFit(t.Method.Alg(), key.(crypto.PublicKey)) == nil {
			fit.Keys = append(fit.Keys, key)
		}
	}
	switch {
	case !known:
		return nil, errUnknownKey
	case len(fit.Keys) == 0:
		return nil, refused("the token's algorithm does not go with its key")
	}
	return fit, nil
}

func (l layers) keysFor(algorithm string) (any, error) {
	var fit jwt.VerificationKeySet
	for _, layer := range l {
		all, err := layer.Storage().KeyReadAll(context.Background())
		if err != nil {
			return nil, err
		}
		for _, key := range all {
			if goesWith(key, algorithm) {
				fit.Keys = append(fit.Keys, key.Key())
			}
		}
	}
	if len(fit.Keys) == 0 {
		return nil, errUnknownKey
	}
	return fit, nil
}
