package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
)

// Where no engine is named and none answers, one short line says so; all that was tried is for whoever asks for more.
func TestNoEngineIsOneLine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	shim := kernelstest.BuildShim(t)
	for level, most := range map[slog.Level]int{slog.LevelInfo: 1, slog.LevelDebug: 2} {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		dir := t.TempDir()
		cfg := &Config{Provisioner: "auto", Sandbox: "none", AllowUnenforced: true, DataDir: dir, RunDir: dir, Shim: shim, KernelUID: 1, KernelGID: 1}
		b, err := chooseBackend(context.Background(), cfg, "0", logger)
		kernelstest.Need(t, err == nil, "a Python with ipykernel")
		_ = b.Close()
		if b.images != nil {
			return // this machine's own engine has our images
		}
		var ours []string
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, "engine") {
				ours = append(ours, line)
			}
		}
		if len(ours) != most || len(ours[0]) > 400 || strings.Contains(ours[0], "podman.sock") {
			t.Errorf("at %v: %q", level, ours)
		}
	}
}

// The sandbox does not stand in for an engine or an image that somebody has named, unless it is what is asked for.
func TestNothingStandsInForWhatIsNamed(t *testing.T) {
	empty := emptyEngine(t, nil)
	gone := "unix:///nowhere/docker.sock"
	shim := kernelstest.BuildShim(t)
	for _, tt := range []struct {
		variable string
		cfg      Config
		want     string
		hint     string
	}{
		{empty, Config{Docker: DockerConfig{Host: gone}}, "no container engine at " + gone, "take docker.host out"},
		{empty, Config{Images: map[string]string{"python": "nope:1", "r": ""}}, "has no image nope:1", "unset DOCKER_HOST and take images.python out"},
		{gone, Config{}, "DOCKER_HOST: no container engine at " + gone, "unset DOCKER_HOST, or"},
		{"tcp://127.0.0.1:1", Config{}, "tcp://127.0.0.1:1 does not answer", "unset DOCKER_HOST, or"},
		{empty, Config{}, empty + " has no image", "unset DOCKER_HOST, or"},
	} {
		t.Setenv("DOCKER_HOST", tt.variable)
		dir, cfg := t.TempDir(), tt.cfg
		cfg.Provisioner, cfg.Sandbox, cfg.AllowUnenforced = "auto", "none", true
		cfg.DataDir, cfg.RunDir, cfg.Shim, cfg.KernelUID, cfg.KernelGID = dir, dir, shim, 1, 1
		b, err := chooseBackend(t.Context(), &cfg, "0", slog.New(slog.DiscardHandler))
		if err == nil {
			_ = b.Close()
		}
		if fault.KindOf(err) != fault.Unavailable || !strings.Contains(fmt.Sprint(err), tt.want) || strings.Count(fmt.Sprint(err), "nope:1") > 1 ||
			!strings.Contains(fault.Hint(err), tt.hint) || !strings.Contains(fault.Hint(err), "--provisioner local") {
			t.Errorf("want %q and the hint %q: %v\n%s", tt.want, tt.hint, err, fault.Hint(err))
		}
		cfg.Provisioner = "local"
		b, err = chooseBackend(t.Context(), &cfg, "0", slog.New(slog.DiscardHandler))
		kernelstest.Need(t, err == nil, "a Python with ipykernel")
		_ = b.Close()
	}
}

// emptyEngine answers as an engine does that has no images, and counts how often its images are asked for; nil: nobody wants to know.
func emptyEngine(t *testing.T, looks *atomic.Int64) (host string) {
	t.Helper()
	mux := http.NewServeMux()
	answer := func(pattern string, status int, body string) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Api-Version", "1.45")
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			if looks != nil && strings.HasSuffix(pattern, "/images/json") {
				looks.Add(1)
			}
		})
	}
	answer("/_ping", http.StatusOK, "OK")
	answer("/{version}/info", http.StatusOK, `{"OSType": "linux", "Architecture": "x86_64"}`)
	answer("/{version}/images/json", http.StatusOK, "[]")
	answer("/{version}/images/{name}/json", http.StatusNotFound, `{"message": "No such image: nope:1"}`)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}
