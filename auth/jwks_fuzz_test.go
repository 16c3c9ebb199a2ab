package auth

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// FuzzKeySet reads what an issuer may publish: each key is used or named as left out, the same set is the same again, and no private half is kept.
func FuzzKeySet(f *testing.F) {
	f.Add([]byte(`[` + jwk(f, "rsa", &rsaKey().PublicKey) + `,` + jwk(f, "ec", &ecKey().PublicKey, "d", "AAAA") + `]`))
	f.Add([]byte(`[` + jwk(f, "", edKey().Public()) + `,{"kty":"oct","k":"AAAA"},{"kty":"RSA","n":"AQAB","e":"AQ"},7,null]`))
	f.Add([]byte(`[{"kty":"EC","crv":"P-256","x":"AA","y":"AA"},{"kty":"OKP","crv":"X25519","x":"AA"},{"kty":"RSA","use":7}]`))
	algorithms := []string{"RS256", "PS256", "ES256", "EdDSA"}
	f.Fuzz(func(t *testing.T, text []byte) {
		var set []json.RawMessage
		if json.Unmarshal(text, &set) != nil {
			return
		}
		keys, err := parseKeys(set, algorithms)
		if err != nil {
			if len(set) <= maxKeys {
				t.Error(err)
			}
			return
		}
		if len(keys.prints)+len(keys.unused) != len(set) {
			t.Errorf("%d used, %d not, of %d", len(keys.prints), len(keys.unused), len(set))
		}
		for _, print := range keys.prints {
			if strings.Contains(print, `"d":`) || strings.Contains(print, `"k":`) {
				t.Errorf("a private half is kept: %s", print)
			}
		}
		if again, err := parseKeys(set, algorithms); err != nil || !slices.Equal(again.prints, keys.prints) {
			t.Errorf("%v: %q, before %q", err, again.prints, keys.prints)
		}
	})
}
