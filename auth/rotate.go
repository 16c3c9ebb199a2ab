package auth

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

// madeHere is what stands before a key that was made here; readers of PEM skip it.
const madeHere = "Made by cellblock for dev mode. To replace it, type: cellblock token --rotate\n"

// RotateDev replaces the key of the data folder's dev mode, and its token. Servers that run there take no token of the old
// key from then on. Its error is Invalid for a key that was not made here.
func RotateDev(dir string) (*Dev, error) {
	path := filepath.Join(dir, devPrivateKey)
	have, err := secretfile.Read(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return EnsureDev(dir)
	case err != nil:
		return nil, err
	case !bytes.HasPrefix(have, []byte(madeHere)):
		return nil, foreignKey(path)
	}
	scopes := (&Dev{dir: dir, now: time.Now}).allScopes() // of languages that only a server knows, too
	fresh, err := newDevKey()
	if err != nil {
		return nil, err
	}
	if err := secretfile.Replace(path, fresh); err != nil {
		return nil, err
	}
	d, err := EnsureDev(dir)
	if err != nil {
		return nil, err
	}
	return d, d.Allow(scopes)
}

// HasDevKey tells whether a folder has a key of dev mode.
func HasDevKey(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, devPrivateKey))
	return err == nil
}

func foreignKey(path string) error {
	return fault.New(fault.Invalid, "%s holds a key that this version of cellblock did not make, and does not overwrite", path).
		WithHint("Move it away; the next start makes a new one, and tokens made so far end.")
}

// Verifier accepts the tokens that Mint makes: those of the key that lies in the data folder when they are shown, so that
// they end at once when it is replaced or removed.
func (d *Dev) Verifier() Verifier { return d.verifyNow }

func (d *Dev) verifyNow(ctx context.Context, token string) (Principal, error) {
	verify, err := d.current()
	if err != nil {
		return Principal{}, err
	}
	return verify(ctx, token)
}

// current is the verifier of the key that lies there now. Looking whether it is still the same costs a microsecond.
func (d *Dev) current() (Verifier, error) {
	path := filepath.Join(d.dir, devPrivateKey)
	d.mu.Lock()
	defer d.mu.Unlock()
	info, err := os.Lstat(path)
	if err != nil {
		return nil, keyTrouble(err)
	}
	if d.verify != nil && os.SameFile(info, d.info) && info.ModTime().Equal(d.info.ModTime()) && info.Size() == d.info.Size() && info.Mode() == d.info.Mode() {
		return d.verify, nil
	}
	data, err := secretfile.Read(path)
	if err != nil {
		return nil, keyTrouble(err)
	}
	key, err := parseDevKey(path, data)
	if err != nil {
		return nil, keyTrouble(err)
	}
	verify, err := NewKeyVerifier(KeyConfig{
		PublicKey: &key.PublicKey, Rules: Rules{Issuer: DevIssuer, Audiences: []string{DevAudience}, Now: d.now},
	})
	if err == nil {
		d.verify, d.info = verify, info
	}
	return verify, err
}
