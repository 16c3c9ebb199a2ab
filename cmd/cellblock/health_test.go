package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/audit"
	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/mcpserver"
	"cellblock/sessions/history"
	"cellblock/web"
)

// watchedApp is an app whose health may be asked for, with a history and an audit log in a folder.
func watchedApp(t *testing.T, dir string, logger *slog.Logger) *app {
	t.Helper()
	p := kernelstest.NewProvisioner()
	store, err := history.Open(t.Context(), history.Options{Folder: dir, Logger: logger})
	if err != nil {
		t.Fatal(err)
	}
	a := appOver(t, p, store, t.TempDir())
	a.logger, a.slot, a.mcp.Sessions = logger, &slot{name: "s0"}, a.sessions
	if err := a.openAudit(&Config{DataDir: dir, Audit: AuditConfig{Enabled: true, MaxBytes: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	a.history = store // the audit log does not write to it: tests do
	t.Cleanup(func() {
		_ = a.endSessions(t.Context())
		_ = a.closeAudit()
		_ = store.Close()
		_ = p.Close()
	})
	return a
}

// Where nothing can be written no session can begin: what sends callers is told so, in words, and that it is over.
func TestAServerWithoutADiskIsNotReady(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := watchedApp(t, dir, slog.New(slog.DiscardHandler))
	if got := a.webHealth(t.Context()); got.Status != mcpserver.HealthOK || got.Reason != "" {
		t.Fatalf("%+v", got)
	}
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	got := a.webHealth(t.Context())
	if got.Status != web.Down || !strings.Contains(got.Reason, "sessions cannot begin") || strings.Contains(got.Reason, dir) {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	// What could not be written meanwhile is tried again with what comes next.
	waitFor(t, t.Context(), func() bool {
		a.audit.Append(audit.Entry{Event: audit.Started})
		return a.webHealth(t.Context()).Status == mcpserver.HealthOK
	})
}

// A disk that is slow is no reason to send callers elsewhere, or to end the server.
func TestASlowDiskIsNoReasonToSendCallersElsewhere(t *testing.T) {
	report := mcpserver.HealthReport{Status: mcpserver.HealthOK}
	addRoom(&report, fault.New(fault.Timeout, "the data folder does not answer"))
	if report.Status != mcpserver.HealthDegraded || report.Reason() != "" || len(report.Problems) != 1 {
		t.Errorf("%+v", report)
	}
}
