package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"cellblock/kernels/kernelstest"
)

// Where the engine that is named does not answer, one short line warns of it; all that was tried is for whoever asks for more.
func TestNoEngineIsOneLine(t *testing.T) {
	t.Setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
	shim := kernelstest.BuildShim(t)
	for level, most := range map[slog.Level]int{slog.LevelWarn: 1, slog.LevelDebug: 2} {
		var log strings.Builder
		logger := slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: level}))
		dir := t.TempDir()
		cfg := &Config{Provisioner: "auto", Sandbox: "none", AllowUnenforced: true, DataDir: dir, RunDir: dir, Shim: shim, KernelUID: 1, KernelGID: 1}
		b, err := chooseBackend(context.Background(), cfg, "0", logger)
		kernelstest.Need(t, err == nil, "a Python with ipykernel")
		_ = b.Close()
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
