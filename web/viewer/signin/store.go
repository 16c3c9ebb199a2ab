package signin

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/secretfile"
)

const (
	// CodeLifetime is how long a code waits to be used.
	CodeLifetime = 10 * time.Minute
	// maxLifetime bounds a sign-in whose token lives longer.
	maxLifetime = 30 * 24 * time.Hour
	// sweepEvery is how often files that have expired are removed, at most.
	sweepEvery = time.Hour
	// codePrefix tells codes' files from sign-ins'.
	codePrefix = "code-"
)

// secretForm is what secrets look like: rand.Text.
var secretForm = regexp.MustCompile(`^[A-Z2-7]{26,64}$`)

// Store keeps the sign-ins of one data folder. Its methods may be called concurrently.
type Store struct {
	dir string
	now func() time.Time

	mu    sync.Mutex
	waits map[string]*waiting // for the ends of sign-ins, by their ID
	swept time.Time
}

// waiting is for the end of one sign-in.
type waiting struct {
	ended chan struct{} // closed by End
	n     int           // who waits
}

// SignIn is one browser that is signed in.
type SignIn struct {
	// ID names it without giving it away.
	ID string
	// Token is the bearer token that the sign-in stands for. It goes to nobody but the verifier.
	Token string
	// Expires is when the sign-in ends by itself.
	Expires time.Time

	csrf []byte
}

// Open returns the store in a folder, which is made if it is not there. Its error is Unavailable.
func Open(dir string) (*Store, error) {
	if err := makeFolder(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, now: time.Now, waits: map[string]*waiting{}}
	s.sweep()
	return s, nil
}

func makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fault.New(fault.Unavailable, "cannot make the folder of sign-ins: %w", err).
			WithHint("Run this as the user that the server runs as, who must be able to write in the data folder (--data-dir).")
	}
	return nil
}

// NewCode makes a code for a token in a folder that Open is, or will be, called on. It holds once, for CodeLifetime.
func NewCode(dir, token string) (code string, err error) {
	if err := makeFolder(dir); err != nil {
		return "", err
	}
	code = rand.Text()
	data, err := seal(code, token, time.Now().Add(CodeLifetime))
	if err != nil {
		return "", err
	}
	return code, secretfile.Replace(filepath.Join(dir, codePrefix+nameOf(code)), data)
}

// Redeem takes a code and returns the token that it stands for, to the first who asks. The error is Unauthenticated for a code
// that was used, has expired, or never was.
func (s *Store) Redeem(code string) (token string, err error) {
	bad := fault.New(fault.Unauthenticated, "this link was used already, or is too old").
		WithHint("Type cellblock open for a new one.")
	if !secretForm.MatchString(code) {
		return "", bad
	}
	path := filepath.Join(s.dir, codePrefix+nameOf(code))
	taken := path + "-" + rand.Text() // one of several who come at once gets it
	if os.Rename(path, taken) != nil {
		return "", bad
	}
	defer os.Remove(taken)
	token, expires, err := s.read(taken, code)
	if err != nil || !s.now().Before(expires) {
		return "", bad
	}
	return token, nil
}

// Begin signs a browser in until the token expires and returns the secret for its cookie.
func (s *Store) Begin(token string, expires time.Time) (secret string, err error) {
	s.sweep()
	if err := makeFolder(s.dir); err != nil { // it may have been removed, to sign everybody out
		return "", err
	}
	if latest := s.now().Add(maxLifetime); expires.After(latest) {
		expires = latest
	}
	secret = rand.Text() + rand.Text()
	data, err := seal(secret, token, expires)
	if err != nil {
		return "", err
	}
	return secret, secretfile.Replace(s.path(nameOf(secret)), data)
}

// Find returns the sign-in of a cookie's secret. The error is Unauthenticated where there is none, or none any more.
func (s *Store) Find(secret string) (SignIn, error) {
	none := fault.New(fault.Unauthenticated, "nobody is signed in here").WithHint("Sign in; cellblock open prints a link.")
	if !secretForm.MatchString(secret) {
		return SignIn{}, none
	}
	id := nameOf(secret)
	token, expires, err := s.read(s.path(id), secret)
	if err != nil || !s.now().Before(expires) {
		return SignIn{}, none
	}
	return SignIn{ID: id, Token: token, Expires: expires, csrf: derive(secret, "csrf")}, nil
}

// Holds tells whether a sign-in that was found still is there.
func (s *Store) Holds(in SignIn) bool {
	_, err := os.Lstat(s.path(in.ID))
	return err == nil && s.now().Before(in.Expires)
}

// End signs a browser out: its streams end, and its cookie is worth nothing.
func (s *Store) End(in SignIn) error {
	err := os.Remove(s.path(in.ID))
	s.mu.Lock()
	if w := s.waits[in.ID]; w != nil {
		close(w.ended)
		delete(s.waits, in.ID)
	}
	s.mu.Unlock()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Until returns a context that ends with a sign-in, when it is ended by this process or its time is over.
func (s *Store) Until(ctx context.Context, in SignIn) (context.Context, context.CancelFunc) {
	w := s.wait(in.ID)
	ctx, cancel := context.WithDeadline(ctx, in.Expires)
	if !s.Holds(in) { // it was ended before it was waited for
		cancel()
	}
	go func() {
		defer cancel()
		select {
		case <-w.ended:
		case <-ctx.Done():
		}
	}()
	return ctx, sync.OnceFunc(func() {
		cancel()
		s.leave(in.ID, w)
	})
}

func (s *Store) wait(id string) *waiting {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits[id] == nil {
		s.waits[id] = &waiting{ended: make(chan struct{})}
	}
	s.waits[id].n++
	return s.waits[id]
}

// leave forgets a sign-in that nobody waits for any more.
func (s *Store) leave(id string, w *waiting) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if w.n--; w.n == 0 && s.waits[id] == w {
		delete(s.waits, id)
	}
}

// CSRF is what a page of the sign-in sends back with all that changes something.
func (in SignIn) CSRF() string { return base64.RawURLEncoding.EncodeToString(in.csrf) }

// CheckCSRF tells whether a page of the sign-in has sent this.
func (in SignIn) CheckCSRF(sent string) bool { return hmac.Equal([]byte(in.CSRF()), []byte(sent)) }

func (s *Store) path(id string) string { return filepath.Join(s.dir, id) }

func (s *Store) read(path, secret string) (token string, expires time.Time, err error) {
	data, err := secretfile.Read(path)
	if err != nil {
		return "", time.Time{}, err
	}
	return unseal(secret, data)
}

// sweep removes files that have expired, from time to time.
func (s *Store) sweep() {
	s.mu.Lock()
	due := s.now().Sub(s.swept) >= sweepEvery
	if due {
		s.swept = s.now()
	}
	s.mu.Unlock()
	if !due {
		return
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return // whoever signs in is told
	}
	for _, entry := range entries {
		var r record
		path := filepath.Join(s.dir, entry.Name())
		data, err := secretfile.Read(path)
		if err == nil && (json.Unmarshal(data, &r) != nil || !s.now().Before(r.Expires)) {
			_ = os.Remove(path) // the next sweep tries again
		}
	}
}
