package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	cerrdefs "github.com/containerd/errdefs"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/api/types/system"

	"cellblock/internal/fault"
)

// fakeEngine answers as an engine does, as far as that is asked of it before any container.
func fakeEngine(t *testing.T, api, kind string, info system.Info) (host string) {
	t.Helper()
	mux := http.NewServeMux()
	reply := func(pattern string, v any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Api-Version", api)
			if kind == KindPodman {
				w.Header().Set("Libpod-Api-Version", "4.3.1")
			}
			_ = json.NewEncoder(w).Encode(v)
		})
	}
	reply("/_ping", "OK")
	reply("/{version}/info", info)
	reply("/{version}/images/json", []image.Summary{{RepoTags: []string{"cellblock-python:latest"}}, {RepoTags: []string{"debian:12"}}})
	mux.HandleFunc("/{version}/images/{name}/json", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"message":"No such image: %s"}`, r.PathValue("name"))
	})
	return serve(t, mux)
}

// serve serves on a socket until the test ends.
func serve(t *testing.T, handler http.Handler) (host string) {
	t.Helper()
	path := filepath.Join(shortDir(t), "e.sock")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: handler}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		_ = server.Close()
		<-done
	})
	return "unix://" + path
}

// shortDir is a temporary folder whose path leaves room for a socket's name.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func TestCandidates(t *testing.T) {
	env := map[string]string{"XDG_RUNTIME_DIR": "/run/user/7", "HOME": "/home/u"}
	got := candidates(func(name string) string { return env[name] }, "linux")
	for _, want := range []string{"unix:///var/run/docker.sock", "unix:///run/user/7/docker.sock", "unix:///run/user/7/podman/podman.sock",
		"unix:///run/podman/podman.sock", "unix:///home/u/.docker/run/docker.sock", "unix:///home/u/.colima/default/docker.sock"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not tried", want)
		}
	}
	for _, host := range candidates(func(string) string { return "" }, "linux") {
		if !strings.HasPrefix(host, "unix:///var/run/") && !strings.HasPrefix(host, "unix:///run/") {
			t.Errorf("%s is tried without a home folder", host)
		}
	}
	if got := candidates(os.Getenv, "windows"); !strings.HasPrefix(got[0], "npipe://") {
		t.Errorf("windows: %v", got)
	}
}

func TestFindTakesTheFirstThatAnswers(t *testing.T) {
	old := fakeEngine(t, "1.39", KindDocker, system.Info{})
	podman := fakeEngine(t, "1.41", KindPodman, system.Info{})
	docker := fakeEngine(t, "1.43", KindDocker, system.Info{})
	host, kind, err := findAmong(t.Context(), []string{"unix:///nowhere/docker.sock", old, podman, docker})
	if err != nil || host != podman || kind != KindPodman {
		t.Fatalf("%s, %s, %v", host, kind, err)
	}
	if _, kind, _ := findAmong(t.Context(), []string{docker}); kind != KindDocker {
		t.Errorf("docker is %s", kind)
	}
}

func TestFindSaysWhatIsWrong(t *testing.T) {
	old := fakeEngine(t, "1.39", KindDocker, system.Info{})
	tests := map[string]struct {
		hosts []string
		text  []string
	}{
		"none":       {[]string{"unix:///nowhere/a.sock", "unix:///nowhere/b.sock"}, []string{"no container engine answers", "DOCKER_HOST", "Start Docker or Podman"}},
		"too old":    {[]string{old}, []string{"too old", "1.39", "1.40", "Upgrade"}},
		"not socket": {[]string{"unix://" + shortDir(t)}, []string{"does not answer\nHint: Start Docker or Podman"}},
		"nonsense":   {[]string{"docker.sock"}, []string{"docker.sock", "unix:///"}},
		"ssh":        {[]string{"ssh://me@there"}, []string{"ssh -nNT -L"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, _, err := findAmong(t.Context(), tt.hosts)
			for _, want := range tt.text {
				if err == nil || !strings.Contains(fault.Text(err), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
		})
	}
}

func TestFindObeysDockerHost(t *testing.T) {
	docker := fakeEngine(t, "1.43", KindDocker, system.Info{})
	t.Setenv("DOCKER_HOST", docker)
	if host, _, err := Find(t.Context()); err != nil || host != docker {
		t.Errorf("%s, %v", host, err)
	}
	t.Setenv("DOCKER_HOST", "unix:///nowhere/e.sock")
	_, _, err := Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "DOCKER_HOST") || fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
		t.Errorf("got %v", err)
	}
}

func TestEngineErrorsHaveKindAndHint(t *testing.T) {
	tests := map[string]struct {
		err  error
		kind fault.Kind
		hint string
	}{
		"permission": {fmt.Errorf("dial: %w", syscall.EACCES), fault.Unavailable, "usermod -aG docker"},
		"deadline":   {context.DeadlineExceeded, fault.Unavailable, "hangs"},
		"cancelled":  {context.Canceled, fault.Cancelled, ""},
		"other":      {cerrdefs.ErrInternal, fault.Unavailable, "log"},
		"ours":       {fault.New(fault.Invalid, "x").WithHint("y"), fault.Invalid, "y"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			err := engineError("unix:///e.sock", tt.err)
			if fault.KindOf(err) != tt.kind || !strings.Contains(fault.Hint(err), tt.hint) {
				t.Errorf("%v: %s", fault.KindOf(err), fault.Text(err))
			}
		})
	}
}

// Who mounts a socket that is not there gets a folder, which nobody may connect to.
func TestFolderForASocket(t *testing.T) {
	err := engineError("unix://"+t.TempDir(), fmt.Errorf("dial: %w", syscall.EACCES))
	if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "It is a folder") {
		t.Errorf("%s", fault.Text(err))
	}
}

// A request of our own goes where the client's go.
func TestIdentifyOverTCP(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/_ping" {
			w.Header().Set("Api-Version", "1.41")
			w.Header().Set("Libpod-Api-Version", "4.3.1")
		}
	}))
	defer server.Close()
	if kind, err := probe(t.Context(), "tcp://"+server.Listener.Addr().String()); err != nil || kind != KindPodman {
		t.Fatalf("%q, %v", kind, err)
	}
}
