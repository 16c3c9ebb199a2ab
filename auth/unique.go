package auth

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strings"
)

// checkUnique refuses a token in whose header or claims one name stands twice (RFC 7519, section 4): which of the two counts
// would be for each reader to choose, and its issuer and we might choose differently.
func checkUnique(token string) error {
	for _, part := range strings.SplitN(token, ".", 3)[:2] {
		text, err := base64.RawURLEncoding.DecodeString(part)
		if err != nil {
			return refused("the token is not a JSON Web Token")
		}
		d := json.NewDecoder(bytes.NewReader(text))
		if name, twice := duplicate(d); twice {
			return refused("the token says %.40q twice", name)
		}
	}
	return nil
}

// duplicate walks the next value and returns the first name that stands twice in one object. The value is known to be JSON.
func duplicate(d *json.Decoder) (name string, twice bool) {
	t, _ := d.Token()
	open, _ := t.(json.Delim)
	if open != '{' && open != '[' {
		return "", false
	}
	seen := map[string]bool{}
	for d.More() {
		if open == '{' {
			t, _ = d.Token()
			name, _ = t.(string)
			if seen[name] {
				return name, true
			}
			seen[name] = true
		}
		if name, twice := duplicate(d); twice {
			return name, true
		}
	}
	_, _ = d.Token() // what closes it
	return "", false
}
