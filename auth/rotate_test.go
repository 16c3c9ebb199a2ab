package auth

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

func TestRotateEndsTokensAtOnce(t *testing.T) {
	dir := t.TempDir()
	running, err := EnsureDev(dir) // a server's
	if err != nil {
		t.Fatal(err)
	}
	verify := running.Verifier()
	old := strings.TrimSpace(readFile(t, running.TokenPath()))
	long, err := running.Mint(TokenSpec{Subject: "ci", Lifetime: 300 * 24 * time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := RotateDev(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{old, long} {
		if _, err := verify(context.Background(), token); fault.KindOf(err) != fault.Unauthenticated {
			t.Errorf("a token of the old key: %v", err)
		}
	}
	fresh, err := rotated.Mint(TokenSpec{Subject: "ci"})
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{fresh, strings.TrimSpace(readFile(t, running.TokenPath()))} {
		if _, err := verify(context.Background(), token); err != nil {
			t.Errorf("a token of the new key: %v", err)
		}
	}
	if public, err := LoadPublicKey(filepath.Join(dir, devPublicKey)); err != nil || !rotated.key.PublicKey.Equal(public) {
		t.Errorf("the public key is not the new one's: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, devPrivateKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := verify(context.Background(), fresh); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("without a key: %v", err)
	}
}

// The token of the new key allows what that of the old one did: a server tells once, when it starts, which languages it has.
func TestRotateKeepsWhatWasAllowed(t *testing.T) {
	dir := t.TempDir()
	running, err := EnsureDev(dir)
	if err == nil {
		err = running.Allow([]string{"ruby:execute"})
	}
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := RotateDev(dir)
	if err != nil {
		t.Fatal(err)
	}
	minted, err := rotated.Mint(TokenSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{"in the folder": readFile(t, rotated.TokenPath()), "minted": minted} {
		if p, err := running.Verifier()(t.Context(), strings.TrimSpace(token)); err != nil || !p.Has("ruby:execute") {
			t.Errorf("the token %s: %v, %v", name, p.Scopes, err)
		}
	}
}

// A key that cannot be read is described to the log, and to callers without a word of where it lies.
func TestTroubleWithTheKeyIsForTheLog(t *testing.T) {
	for name, spoil := range map[string]func(path string) error{
		"gone":               os.Remove,
		"readable by others": func(path string) error { return os.Chmod(path, 0o644) },
		"no key":             func(path string) error { return os.WriteFile(path, []byte("nonsense"), 0o600) },
	} {
		dir := t.TempDir()
		dev, err := EnsureDev(dir)
		if err != nil {
			t.Fatal(err)
		}
		if a := send(t, dev.Verifier(), "Bearer x.y.z"); a.StatusCode != 401 {
			t.Errorf("before: %d", a.StatusCode)
		}
		if err := spoil(filepath.Join(dir, devPrivateKey)); err != nil {
			t.Fatal(err)
		}
		a := send(t, dev.Verifier(), "Bearer x.y.z")
		if a.StatusCode != 503 || strings.Contains(fmt.Sprint(a.body), dir) || strings.Contains(fmt.Sprint(a.body), devPrivateKey) {
			t.Errorf("%s: %d %v", name, a.StatusCode, a.body)
		}
		if !strings.Contains(a.log, filepath.Join(dir, devPrivateKey)) {
			t.Errorf("%s: the log does not say where: %s", name, a.log)
		}
	}
}

func TestKeysOfOthersAreNotOverwritten(t *testing.T) {
	theirs := func(t *testing.T, dir string) (private, public string) {
		t.Helper()
		if _, err := EnsureDev(dir); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{devPrivateKey, devPublicKey} { // as another program writes them
			text := strings.TrimPrefix(readFile(t, filepath.Join(dir, name)), madeHere)
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return readFile(t, filepath.Join(dir, devPrivateKey)), readFile(t, filepath.Join(dir, devPublicKey))
	}
	dir := t.TempDir()
	private, public := theirs(t, dir)
	if _, err := EnsureDev(dir); err != nil { // it is used
		t.Error(err)
	}
	if _, err := RotateDev(dir); fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
		t.Errorf("a key of somebody else's was replaced: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, devPrivateKey)); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureDev(dir); fault.KindOf(err) != fault.Invalid || readFile(t, filepath.Join(dir, devPublicKey)) != public {
		t.Errorf("a public key of somebody else's was replaced: %v", err)
	}
	if strings.HasPrefix(private, madeHere) {
		t.Error("the test has not tried it")
	}
}

func TestRotateWithoutAKeyMakesOne(t *testing.T) {
	dir := t.TempDir()
	if _, err := RotateDev(dir); err != nil {
		t.Error(err)
	}
	if err := os.Chmod(filepath.Join(dir, devPrivateKey), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := RotateDev(dir); fault.KindOf(err) != fault.Invalid {
		t.Errorf("a key that others could read was replaced without a word: %v", err)
	}
}
