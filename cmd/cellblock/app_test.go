package main

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// A stop during the start is told as one, not as everything that could not be found any more.
func TestStopDuringStart(t *testing.T) {
	stopped, stop := context.WithCancel(t.Context())
	stop()
	cfg := &Config{DataDir: t.TempDir(), RunDir: t.TempDir(), Provisioner: "local", Sandbox: "bwrap"}
	_, err := newApp(stopped, cfg, slog.New(slog.DiscardHandler), access{})
	if fault.KindOf(err) != fault.Cancelled || strings.Contains(err.Error(), "Python") {
		t.Errorf("%v", err)
	}
}
