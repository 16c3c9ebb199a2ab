package web

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// pair is a certificate for localhost, and its key, as PEM.
func pair(t *testing.T, name string) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// put writes a file as a careful program does: beside, and renamed.
func put(t *testing.T, path string, text []byte, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// secured is a server with TLS.
type secured struct {
	*site
	certificates *Certificates
	cert, key    string
	addr         string
}

func serveTLS(t *testing.T) *secured { return serveTLSFrom(t, t.TempDir(), lookEvery) }

func serveTLSFrom(t *testing.T, dir string, every time.Duration) *secured {
	t.Helper()
	s := &secured{cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	cert, key := pair(t, "first")
	put(t, s.cert, cert, 0o644)
	put(t, s.key, key, 0o600)
	var err error
	if s.certificates, err = loadCertificates(s.cert, s.key, slog.New(slog.DiscardHandler), every); err != nil {
		t.Fatal(err)
	}
	s.site = newSite(t, func(c *Config) { c.TLS = s.certificates })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.addr = l.Addr().String()
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, ctx, l, s.handler) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := s.certificates.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// shows is the names in the certificates that a new connection gets.
func (s *secured) shows(t *testing.T) string {
	t.Helper()
	conn, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	var names []string
	for _, c := range conn.ConnectionState().PeerCertificates {
		names = append(names, c.Subject.CommonName)
	}
	return strings.Join(names, " ")
}

func TestHTTPSWithHTTP2(t *testing.T) {
	s := serveTLS(t)
	text, err := os.ReadFile(s.cert)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	transport := &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: roots}}
	defer transport.CloseIdleConnections()
	_, port, _ := net.SplitHostPort(s.addr)
	for call, want := range map[string]string{ping: `"result":{}`, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{"msg":"heard"}}}`: "heard"} {
		r, err := http.NewRequest("POST", "https://localhost:"+port+"/mcp", strings.NewReader(call))
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; i < len(asAnn); i += 2 {
			r.Header.Set(asAnn[i], asAnn[i+1])
		}
		got, err := (&http.Client{Transport: transport}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(got.Body)
		got.Body.Close()
		if got.StatusCode != 200 || got.ProtoMajor != 2 || !strings.Contains(string(body), want) || got.Header.Get("Strict-Transport-Security") == "" {
			t.Errorf("%s %s: %s", got.Proto, got.Status, body)
		}
	}
	if got, err := http.Get("http://" + s.addr + "/health"); err != nil || got.StatusCode != 400 {
		t.Errorf("plain HTTP: %v, %v", got, err)
	} else {
		got.Body.Close()
	}
	if _, err := tls.Dial("tcp", s.addr, &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11}); err == nil {
		t.Error("TLS 1.1 is taken")
	}
}

func TestACertificateIsExchangedWhileItServes(t *testing.T) {
	s := serveTLS(t)
	if got := s.shows(t); got != "first" {
		t.Fatal(got)
	}
	cert, key := pair(t, "second")
	put(t, s.cert, cert, 0o644) // alone it does not fit the key
	<-s.certificates.tried
	if got := s.shows(t); got != "first" {
		t.Errorf("half a pair is served: %s", got)
	}
	put(t, s.key, key, 0o600)
	<-s.certificates.tried
	if got := s.shows(t); got != "second" {
		t.Errorf("a new pair is not served: %s", got)
	}
	chain, _ := pair(t, "issuer")
	put(t, s.cert, slices.Concat(cert, chain), 0o644) // that had been forgotten
	<-s.certificates.tried
	if got := s.shows(t); got != "second issuer" {
		t.Errorf("a new chain is not served: %s", got)
	}
	for name, spoil := range map[string]func(){ // the key first: whenever both are read, they cannot be used
		"no certificate":         func() { put(t, s.cert, []byte("nothing"), 0o644) },
		"a key for everybody":    func() { put(t, s.key, key, 0o644); put(t, s.cert, cert, 0o644) },
		"the key has been taken": func() { os.Remove(s.key); put(t, s.cert, cert, 0o644) },
	} {
		spoil()
		<-s.certificates.tried
		if got := s.shows(t); got != "second issuer" {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Of a folder that another takes the place of nothing is heard.
func TestACertificateOfAFolderThatIsReplaced(t *testing.T) {
	parent := t.TempDir()
	live := filepath.Join(parent, "live")
	turn := func(to string) {
		if err := errors.Join(os.Mkdir(filepath.Join(parent, to), 0o700), os.Symlink(to, live+".new"), os.Rename(live+".new", live)); err != nil {
			t.Fatal(err)
		}
	}
	turn("first")
	s := serveTLSFrom(t, live, time.Millisecond)
	turn("second")
	cert, key := pair(t, "second")
	put(t, s.cert, cert, 0o644)
	put(t, s.key, key, 0o600)
	for s.shows(t) != "second" {
		<-s.certificates.tried
	}
}

func TestCertificatesThatCannotBeUsed(t *testing.T) {
	cert, key := pair(t, "a")
	_, other := pair(t, "b")
	for name, tt := range map[string]struct {
		cert, key []byte
		mode      os.FileMode
	}{
		"another's key":         {cert, other, 0o600},
		"no certificate":        {key, key, 0o600},
		"no key":                {cert, cert, 0o600},
		"a key for everybody":   {cert, key, 0o644},
		"a key to be exchanged": {cert, key, 0o602},
	} {
		dir := t.TempDir()
		c, k := filepath.Join(dir, "c"), filepath.Join(dir, "k")
		put(t, c, tt.cert, 0o644)
		put(t, k, tt.key, 0o600)
		if err := os.Chmod(k, tt.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadCertificates(c, k, slog.Default()); fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := LoadCertificates(c, filepath.Join(dir, "none"), slog.Default()); fault.KindOf(err) != fault.Invalid {
			t.Errorf("no file: %v", err)
		}
	}
}
