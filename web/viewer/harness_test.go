package viewer

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"cellblock/auth"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/web/viewer/signin"
)

// pages is a viewer over scripted kernels. Tokens are "SUBJECT SCOPE SCOPE…".
type pages struct {
	t        testing.TB
	viewer   *Viewer
	handler  http.Handler
	sessions *sessions.Manager
	signIns  *signin.Store
	codes    string // the folder of signIns
}

func newPages(t testing.TB, change ...func(*sessions.Config)) *pages {
	t.Helper()
	provisioner := kernelstest.NewProvisioner()
	cfg := sessions.Config{
		Provisioner: provisioner, DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Profiles: map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 2 << 30}}},
		Runtimes: map[string]sessions.Runtime{"python": {Title: "Python"}, "bash": {Title: "Bash"}},
	}
	for _, c := range change {
		c(&cfg)
	}
	m, err := sessions.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		provisioner.StopAll()
	})
	p := &pages{t: t, sessions: m}
	p.codes = t.TempDir()
	if p.signIns, err = signin.Open(p.codes); err != nil {
		t.Fatal(err)
	}
	p.viewer = New(Config{
		Sessions: m, SignIns: p.signIns, PublicURL: "http://127.0.0.1:8787", Logger: slog.New(slog.DiscardHandler),
		Verifier: func(_ context.Context, token string) (auth.Principal, error) {
			words := strings.Fields(token)
			return auth.Principal{Issuer: "test", Subject: words[0], Scopes: words[1:], Expires: time.Now().Add(time.Hour)}, nil
		},
	})
	p.handler = p.viewer.Handler(func(next http.Handler) http.Handler { return next })
	return p
}

// browser is somebody who is signed in.
type browser struct {
	*pages
	secret, csrf string
	who          visit
}

// all are the scopes of who may do everything with Python.
var all = []string{"python:execute", "sessions:read", "sessions:manage", "files:read", "files:write"}

func (p *pages) signIn(subject string, scopes ...string) *browser {
	p.t.Helper()
	secret, err := p.signIns.Begin(subject+" "+strings.Join(scopes, " "), time.Now().Add(time.Hour))
	if err != nil {
		p.t.Fatal(err)
	}
	in, err := p.signIns.Find(secret)
	if err != nil {
		p.t.Fatal(err)
	}
	who := visit{Principal: auth.Principal{Issuer: "test", Subject: subject, Scopes: scopes}, signIn: in, owner: sessions.Owner{Issuer: "test", Subject: subject}}
	return &browser{p, secret, in.CSRF(), who}
}

// send makes a request as a page's module does.
func (b *browser) send(method, path string, body any) *httptest.ResponseRecorder {
	b.t.Helper()
	var sent io.Reader
	switch body := body.(type) {
	case nil:
	case []byte:
		sent = bytes.NewReader(body)
	default:
		text, err := json.Marshal(body)
		if err != nil {
			b.t.Fatal(err)
		}
		sent = bytes.NewReader(text)
	}
	r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, sent)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Accept", "application/json")
	if b.secret != "" {
		r.AddCookie(&http.Cookie{Name: b.viewer.cookie, Value: b.secret})
	}
	if b.csrf != "" {
		r.Header.Set(csrfHeader, b.csrf)
	}
	w := httptest.NewRecorder()
	b.handler.ServeHTTP(w, r)
	return w
}

// want makes a request that must be answered with a status, and returns the body.
func (b *browser) want(status int, method, path string, body any) string {
	b.t.Helper()
	w := b.send(method, path, body)
	if w.Code != status {
		b.t.Fatalf("%s %s: %d, want %d: %s", method, path, w.Code, status, w.Body)
	}
	return w.Body.String()
}

// ran has a model run a cell to its end.
func (p *pages) ran(subject, id, code string) {
	p.t.Helper()
	e, err := p.sessions.Execute(p.t.Context(), sessions.Owner{Issuer: "test", Subject: subject},
		sessions.Request{SessionID: id, Language: "python", Code: code, Caller: "model"})
	if err == nil {
		_, err = e.Wait(p.t.Context())
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// ended waits for the end of a cell.
func (b *browser) ended(id string, number int) sessions.ExecutionInfo {
	b.t.Helper()
	e, err := b.sessions.Execution(b.t.Context(), b.who.owner, id, number)
	if err == nil {
		_, err = e.Wait(b.t.Context())
	}
	if err != nil {
		b.t.Fatal(err)
	}
	return e.Info()
}

func put(t *testing.T, b *browser, id, path, content string) {
	t.Helper()
	query := "?path=" + url.QueryEscape(path)
	b.want(200, "POST", "/s/"+id+"/upload"+query+"&word=w&offset=0", []byte(content))
	b.want(200, "POST", "/s/"+id+"/uploaded"+query, map[string]any{"word": "w", "size": len(content)})
}
