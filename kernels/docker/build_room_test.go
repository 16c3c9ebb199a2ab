//go:build linux

package docker

import (
	"context"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
)

// What steps write ends a build while they run, not only when they have ended.
func TestBuildThatGrows(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		_, err := p.BuildImage(ctx, Build{Name: name, Base: testImage, Network: "none", Limit: time.Hour, Size: 1 << 20,
			Steps: []Step{sh("head -c 3000000 /dev/zero >/large; sleep 3000")}}, io.Discard)
		if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "may grow by 1 MiB") || !strings.Contains(fault.Hint(err), "max_bytes") {
			t.Errorf("got %s", fault.Text(err))
		}
		noImage(t, p, name)
	})
}

// A disk that is nearly full when a build begins keeps it from beginning, and one that fills up meanwhile ends it.
func TestBuildLeavesRoomOnTheDisk(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		b := Build{Name: name, Base: testImage, Network: "none", Limit: time.Hour, Reserve: math.MaxInt64, Steps: []Step{sh("touch /x")}}
		full := func(err error) bool {
			return fault.KindOf(err) == fault.Unavailable && strings.Contains(err.Error(), "disk is full") && strings.Contains(fault.Hint(err), "delete_image")
		}
		if _, err := p.BuildImage(t.Context(), b, io.Discard); !full(err) {
			t.Errorf("before: %s", fault.Text(err))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
		defer cancel()
		running, stop := p.known().watchBuild(ctx, "no container is looked at", b)
		<-running.Done()
		if err := stop(); !full(err) {
			t.Errorf("meanwhile: %s", fault.Text(err))
		}
		noImage(t, p, name)
	})
}

// When the engine itself runs out of room as it makes the image, that is said, and nothing is left.
func TestBuildWhenTheEngineHasNoRoom(t *testing.T) {
	onBuilders(t, func(t *testing.T, p *Provisioner, name string) {
		e, err := p.engine(t.Context())
		if err != nil {
			t.Fatal(fault.Text(err))
		}
		// These are the words of an engine on a disk of 700 MB.
		host := answering(t, e.host, "/commit", `{"message": "Error processing tar file(exit status 1): write /large: no space left on device"}`)
		behind := newProvisioner(t, Config{Host: host, Slot: "s0"})
		_, err = behind.BuildImage(t.Context(), Build{Name: name, Base: testImage, Network: "none", Limit: time.Hour, Steps: []Step{sh("touch /x")}}, io.Discard)
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "disk is full") || !strings.Contains(err.Error(), "write /large") {
			t.Errorf("got %s", fault.Text(err))
		}
		noImage(t, behind, name)
		nothingLeft(t, behind, time.Minute)
	})
}

// answering is a way to an engine on which one path's requests get an answer of the test's.
func answering(t *testing.T, host, path, answer string) string {
	t.Helper()
	socket := filepath.Join(shortDir(t), "a.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", strings.TrimPrefix(host, "unix://"))
	}}
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: "engine"})
	proxy.Transport, proxy.FlushInterval = transport, -1
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, path) {
			proxy.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, answer)
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		_ = server.Close()
		<-served
		transport.CloseIdleConnections()
	})
	return "unix://" + socket
}
