package auth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
)

func mustDev(t testing.TB, dir string, now time.Time) *Dev {
	t.Helper()
	d, err := ensureDev(dir, func() time.Time { return now })
	if err != nil {
		t.Fatal(fault.Text(err))
	}
	return d
}

func readFile(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestEnsureDev(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	d := mustDev(t, dir, noon)
	token := readFile(t, d.TokenPath())
	p, err := d.Verifier()(context.Background(), strings.TrimSpace(token))
	if err != nil {
		t.Fatal(err)
	}
	if p.Issuer != DevIssuer || p.Subject != DevSubject || !slices.Equal(p.Scopes, DevScopes()) || !p.Expires.Equal(noon.Add(devLifetime)) {
		t.Errorf("the token's principal: %+v", p)
	}
	if public, err := LoadPublicKey(filepath.Join(dir, devPublicKey)); err != nil || !d.key.PublicKey.Equal(public) {
		t.Errorf("the public key does not belong to the private one: %v", err)
	}
	if runtime.GOOS != "windows" {
		checkModes(t, dir)
	}
	before := map[string]string{}
	for _, name := range []string{devPrivateKey, devPublicKey, devToken} {
		before[name] = readFile(t, filepath.Join(dir, name))
	}
	mustDev(t, dir, noon.Add(time.Hour))
	for name, content := range before {
		if readFile(t, filepath.Join(dir, name)) != content {
			t.Errorf("%s was changed by a second call", name)
		}
	}
}

// checkModes wants exactly the three files, 0600, in a folder 0700.
func checkModes(t *testing.T, dir string) {
	t.Helper()
	want := map[string]fs.FileMode{devPrivateKey: 0o600, devPublicKey: 0o600, devToken: 0o600}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(want) {
		t.Errorf("left in the folder: %v", entries)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode() != want[e.Name()] {
			t.Errorf("%s: mode %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("folder: mode %v, %v", info.Mode(), err)
	}
}

func TestEnsureDevReplacesWhatDoesNotServe(t *testing.T) {
	tests := []struct {
		name    string
		spoil   func(t *testing.T, dir string, d *Dev)
		now     time.Time
		replace bool
	}{
		{"nothing wrong", func(*testing.T, string, *Dev) {}, noon, false},
		{"expired", func(*testing.T, string, *Dev) {}, noon.Add(devLifetime + time.Hour), true},
		{"soon to expire", func(*testing.T, string, *Dev) {}, noon.Add(devLifetime - time.Hour), true},
		{"clock set back", func(*testing.T, string, *Dev) {}, noon.Add(-time.Hour), true},
		{"removed", func(t *testing.T, _ string, d *Dev) { os.Remove(d.TokenPath()) }, noon, true},
		{"emptied", func(t *testing.T, _ string, d *Dev) { os.WriteFile(d.TokenPath(), nil, 0o600) }, noon, true},
		{"another key's", func(t *testing.T, _ string, d *Dev) {
			other := mustDev(t, t.TempDir(), noon)
			os.WriteFile(d.TokenPath(), []byte(readFile(t, other.TokenPath())), 0o600)
		}, noon, true},
		{"key exchanged", func(t *testing.T, dir string, _ *Dev) { os.Remove(filepath.Join(dir, devPrivateKey)) }, noon, true},
		{"fewer scopes", func(t *testing.T, _ string, d *Dev) {
			os.WriteFile(d.TokenPath(), []byte(must(d.Mint(TokenSpec{Scopes: []string{"files:read"}}))), 0o600)
		}, noon, true},
		{"public key of an earlier one", func(t *testing.T, dir string, _ *Dev) {
			os.WriteFile(filepath.Join(dir, devPublicKey), []byte(madeHere+"nonsense"), 0o600)
		}, noon, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			d := mustDev(t, dir, noon)
			before := readFile(t, d.TokenPath())
			tt.spoil(t, dir, d)
			d = mustDev(t, dir, tt.now)
			after := readFile(t, d.TokenPath())
			if (after != before) != tt.replace {
				t.Errorf("token replaced: %v, want %v", after != before, tt.replace)
			}
			if _, err := d.Verifier()(context.Background(), strings.TrimSpace(after)); err != nil {
				t.Errorf("the token does not hold: %v", err)
			}
			if public, err := LoadPublicKey(filepath.Join(dir, devPublicKey)); err != nil || !d.key.PublicKey.Equal(public) {
				t.Errorf("the public key is another's: %v", err)
			}
		})
	}
}

func TestEnsureDevRefuses(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("mode bits say nothing on Windows")
	}
	private := func(dir string) string { return filepath.Join(dir, devPrivateKey) }
	tests := []struct {
		name  string
		spoil func(dir string) error
		want  string // in message and hint
	}{
		{"key readable by the group", func(dir string) error { return os.Chmod(private(dir), 0o640) }, "chmod 600"},
		{"key readable by all", func(dir string) error { return os.Chmod(private(dir), 0o604) }, "(mode 0604)"},
		{"key writable by the group", func(dir string) error { return os.Chmod(private(dir), 0o620) }, "chmod 600"},
		{"token readable by all", func(dir string) error { return os.Chmod(filepath.Join(dir, devToken), 0o644) }, devToken},
		{"key empty", func(dir string) error { return os.WriteFile(private(dir), nil, 0o600) }, "Remove the file"},
		{"key of another kind", func(dir string) error {
			return os.WriteFile(private(dir), block("PRIVATE KEY", []byte("x")), 0o600)
		}, "no RSA private key"},
		{"key a link", func(dir string) error {
			return errors.Join(os.Rename(private(dir), dir+"/elsewhere"), os.Symlink(dir+"/elsewhere", private(dir)))
		}, "not a regular file"},
		{"key a folder", func(dir string) error {
			return errors.Join(os.Remove(private(dir)), os.Mkdir(private(dir), 0o700))
		}, "not a regular file"},
		{"folder writable by all", func(dir string) error { return os.Chmod(dir, 0o777) }, "chmod 700"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			mustDev(t, dir, noon)
			if err := tt.spoil(dir); err != nil {
				t.Fatal(err)
			}
			d, err := ensureDev(dir, atNoon)
			if err == nil || d != nil {
				t.Fatalf("accepted: %v", err)
			}
			if text := fault.Text(err); fault.KindOf(err) != fault.Invalid || !strings.Contains(text, tt.want) || fault.Hint(err) == "" {
				t.Errorf("%v: %s\nwant %q", fault.KindOf(err), text, tt.want)
			}
		})
	}
}

func TestEnsureDevWhereNothingCanBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := EnsureDev(filepath.Join(file, "data"))
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "--data-dir") {
		t.Errorf("%v: %s", fault.KindOf(err), fault.Text(err))
	}
}

func TestEnsureDevConcurrently(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	devs := make([]*Dev, 20)
	var wg sync.WaitGroup
	for i := range devs {
		wg.Go(func() {
			d, err := EnsureDev(dir)
			if err != nil {
				t.Error(fault.Text(err))
				return
			}
			devs[i] = d
			token, err := os.ReadFile(d.TokenPath())
			if err != nil {
				t.Error(err)
			} else if _, err := d.Verifier()(context.Background(), strings.TrimSpace(string(token))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, d := range devs {
		if d == nil || !d.key.Equal(devs[0].key) {
			t.Fatal("two callers have different keys")
		}
	}
	if runtime.GOOS != "windows" {
		checkModes(t, dir)
	}
}

// Several servers that start at once on one new data folder end with one key.
func TestEnsureDevProcesses(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	outputs := make([]string, 4)
	var wg sync.WaitGroup
	for i := range outputs {
		wg.Go(func() {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), "AUTH_TEST_ENSURE_DEV="+dir)
			out, err := cmd.Output()
			if err != nil {
				t.Errorf("%v: %s", err, err.(*exec.ExitError).Stderr)
			}
			outputs[i] = string(out)
		})
	}
	wg.Wait()
	d := must(EnsureDev(dir))
	for _, n := range outputs {
		if n != d.key.N.Text(16) {
			t.Error("a process had another key")
		}
	}
}

func TestMint(t *testing.T) {
	d := mustDev(t, t.TempDir(), noon)
	tests := []struct {
		spec TokenSpec
		want Principal
	}{
		{TokenSpec{}, Principal{Subject: DevSubject, Scopes: DevScopes(), Expires: noon.Add(devLifetime)}},
		{
			TokenSpec{Subject: "ada", Scopes: []string{"python:execute"}, Lifetime: time.Minute},
			Principal{Subject: "ada", Scopes: []string{"python:execute"}, Expires: noon.Add(time.Minute)},
		},
		{TokenSpec{Scopes: []string{}}, Principal{Subject: DevSubject, Scopes: []string{}, Expires: noon.Add(devLifetime)}},
	}
	for _, tt := range tests {
		p, err := d.Verifier()(context.Background(), must(d.Mint(tt.spec)))
		if err != nil {
			t.Fatal(err)
		}
		if p.Subject != tt.want.Subject || !slices.Equal(p.Scopes, tt.want.Scopes) || !p.Expires.Equal(tt.want.Expires) ||
			p.Issuer != DevIssuer || p.ClientID != "cellblock" {
			t.Errorf("%+v gave %+v", tt.spec, p)
		}
	}
	first, second := must(d.Mint(TokenSpec{})), must(d.Mint(TokenSpec{}))
	if first == second {
		t.Error("two tokens are the same")
	}
}

func TestMintRefuses(t *testing.T) {
	d := mustDev(t, t.TempDir(), noon)
	many := slices.Repeat([]string{strings.Repeat("s", 100)}, 200)
	for _, spec := range []TokenSpec{
		{Subject: "a\nb"}, {Subject: strings.Repeat("a", 1025)}, {Subject: "\xff"},
		{Scopes: []string{""}}, {Scopes: []string{"a b"}}, {Scopes: []string{`a"`}}, {Scopes: []string{"ä"}}, {Scopes: many},
		{Lifetime: -time.Hour}, {Lifetime: time.Millisecond}, {Lifetime: 400 * 24 * time.Hour},
	} {
		if _, err := d.Mint(spec); fault.KindOf(err) != fault.Invalid || err == nil || fault.Text(err) == err.Error() {
			t.Errorf("%.60v: %v", spec, err)
		}
	}
}

func TestAllowAddsWhatTheTokenLacks(t *testing.T) {
	dir := t.TempDir()
	d := mustDev(t, dir, noon)
	before := readFile(t, d.TokenPath())
	if err := d.Allow([]string{"python:execute", ScopeAdmin}); err != nil || readFile(t, d.TokenPath()) != before {
		t.Errorf("a token that serves was replaced: %v", err)
	}
	if err := d.Allow([]string{"tiny:execute", "python:execute"}); err != nil {
		t.Fatal(err)
	}
	p, err := d.verifyNow(t.Context(), strings.TrimSpace(readFile(t, d.TokenPath())))
	if err != nil || !slices.Equal(p.Scopes, append(DevScopes(), "tiny:execute")) {
		t.Errorf("%v, %v", p.Scopes, err)
	}
	minted, err := d.verifyNow(t.Context(), must(d.Mint(TokenSpec{})))
	if err != nil || !slices.Equal(minted.Scopes, p.Scopes) {
		t.Errorf("another token for everything: %v, %v", minted.Scopes, err)
	}
	with := readFile(t, d.TokenPath())
	if mustDev(t, dir, noon); readFile(t, d.TokenPath()) != with {
		t.Error("who knows less of languages replaced the token")
	}
}
