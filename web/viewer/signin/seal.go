package signin

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"time"
)

// record is what a file holds: until when it counts, for whoever clears away, and the token, for who has the secret.
type record struct {
	Expires time.Time `json:"expires"`
	Sealed  []byte    `json:"sealed"`
}

// errSealed says that a file and a secret do not belong together, or that the file was changed.
var errSealed = errors.New("signin: the file was not sealed with this secret")

// derive makes of a secret what it is used for. Nothing of one use can be had from another.
func derive(secret, use string) []byte {
	key, err := hkdf.Key(sha256.New, []byte(secret), nil, "cellblock signin "+use, 32)
	if err != nil {
		panic("signin: " + err.Error()) // the length is ours
	}
	return key
}

// nameOf is the name of a secret's file, and of the sign-in wherever its secret must not stand.
func nameOf(secret string) string { return hex.EncodeToString(derive(secret, "name")[:16]) }

func sealer(secret string) cipher.AEAD {
	block, err := aes.NewCipher(derive(secret, "seal"))
	if err != nil {
		panic("signin: " + err.Error()) // the length is ours
	}
	box, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		panic("signin: " + err.Error())
	}
	return box
}

// seal makes the file of a token; when it expires cannot be changed without the secret either.
func seal(secret, token string, expires time.Time) ([]byte, error) {
	expires = expires.UTC().Truncate(time.Second)
	sealed := sealer(secret).Seal(nil, nil, []byte(token), []byte(expires.Format(time.RFC3339)))
	return json.Marshal(record{Expires: expires, Sealed: sealed})
}

// unseal is the inverse of seal.
func unseal(secret string, data []byte) (token string, expires time.Time, err error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return "", time.Time{}, errSealed
	}
	opened, err := sealer(secret).Open(nil, nil, r.Sealed, []byte(r.Expires.UTC().Format(time.RFC3339)))
	if err != nil {
		return "", time.Time{}, errSealed
	}
	return string(opened), r.Expires, nil
}
