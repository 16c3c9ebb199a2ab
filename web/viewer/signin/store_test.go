package signin

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cellblock/internal/fault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "signins"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func begin(t *testing.T, s *Store, token string, lasts time.Duration) string {
	t.Helper()
	secret, err := s.Begin(token, s.now().Add(lasts))
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

func wantNobody(t *testing.T, s *Store, secret string) {
	t.Helper()
	if in, err := s.Find(secret); fault.KindOf(err) != fault.Unauthenticated || in.Token != "" {
		t.Errorf("found %+v, %v", in, err)
	}
}

// A sign-in is found by its secret, in this process and the next, and by nothing else.
func TestSignIn(t *testing.T) {
	s := open(t)
	secret := begin(t, s, "the-token", time.Hour)
	again, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*Store{s, again} {
		in, err := s.Find(secret)
		if err != nil || in.Token != "the-token" || !s.Holds(in) || !in.CheckCSRF(in.CSRF()) || in.CheckCSRF("") {
			t.Errorf("found %+v, %v", in, err)
		}
	}
	for _, wrong := range []string{"", secret[1:], secret[:51] + "A", strings.Repeat("A", 52), "../" + secret, nameOf(secret)} {
		if wrong != secret {
			wantNobody(t, s, wrong)
		}
	}
}

// What lies in the folder gives nobody a token, and is nobody else's to read.
func TestFilesAreSealed(t *testing.T) {
	s := open(t)
	secret := begin(t, s, "the-token", time.Hour)
	entries, err := os.ReadDir(s.dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	path := filepath.Join(s.dir, entries[0].Name())
	info, _ := os.Stat(path)
	data, err := os.ReadFile(path)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(data), "the-token") || strings.Contains(string(data)+path, secret) {
		t.Errorf("mode %v, %v: %s", info.Mode(), err, data)
	}
	later := strings.Replace(string(data), s.now().UTC().Format("2006"), "2999", 1)
	if later == string(data) {
		t.Fatalf("no year in %s", data)
	}
	if err := os.WriteFile(path, []byte(later), 0o600); err != nil {
		t.Fatal(err)
	}
	wantNobody(t, s, secret)
}

// A sign-in ends with its token, and streams with it.
func TestEnd(t *testing.T) {
	s := open(t)
	secret := begin(t, s, "token", time.Hour)
	in, err := s.Find(secret)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := s.Until(t.Context(), in)
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal("ended before its time")
	}
	if err := s.End(in); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	wantNobody(t, s, secret)
	late, cancelLate := s.Until(t.Context(), in)
	<-late.Done()
	cancelLate()
	cancelLate()
	if len(s.waits) != 0 {
		t.Errorf("%d ends are waited for by nobody", len(s.waits))
	}
	if err := s.End(in); err != nil {
		t.Errorf("ended again: %v", err)
	}

	secret = begin(t, s, "token", time.Hour)
	s.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	wantNobody(t, s, secret)
	begin(t, s, "token", time.Hour) // and what has expired is cleared away
	if entries, _ := os.ReadDir(s.dir); len(entries) != 1 {
		t.Errorf("%d files", len(entries))
	}

	// Who removes the folder signs everybody out, and keeps nobody out.
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Find(begin(t, s, "token", 3*time.Hour)); err != nil {
		t.Error(err)
	}
}

// A code holds once, whoever comes at the same time, and not for long.
func TestCode(t *testing.T) {
	s := open(t)
	code, err := NewCode(s.dir, "the-token")
	if err != nil {
		t.Fatal(err)
	}
	wantNobody(t, s, code)
	var got atomic.Int64
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if token, err := s.Redeem(code); err == nil && token == "the-token" {
				got.Add(1)
			} else if fault.KindOf(err) != fault.Unauthenticated {
				t.Errorf("%q, %v", token, err)
			}
		})
	}
	all.Wait()
	if got.Load() != 1 {
		t.Errorf("%d got in", got.Load())
	}
	if entries, _ := os.ReadDir(s.dir); len(entries) != 0 {
		t.Errorf("left behind: %v", entries)
	}
	if code, err = NewCode(s.dir, "the-token"); err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return time.Now().Add(CodeLifetime) }
	if token, err := s.Redeem(code); err == nil {
		t.Errorf("an old code gave %q", token)
	}
}

func TestFlow(t *testing.T) {
	f, other := NewFlow(), NewFlow()
	if !f.Is(f.State()) || f.Is(other.State()) || f.Is("") || Flow("").Is(Flow("").State()) {
		t.Error("a state of another attempt is taken")
	}
	if f.State() == f.Nonce() || f.State() == f.Verifier() || len(f.Verifier()) < 43 {
		t.Errorf("verifier %q", f.Verifier())
	}
}

func FuzzUnseal(f *testing.F) {
	sealed, err := seal("SECRET", "token", time.Unix(2e9, 0))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(`{"expires":"2999-01-01T00:00:00Z","sealed":""}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if token, _, err := unseal("SECRET", data); err == nil && token != "token" {
			t.Errorf("%q was opened to %q", data, token)
		}
	})
}
