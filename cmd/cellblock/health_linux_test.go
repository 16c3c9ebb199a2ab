package main

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/audit"
	"cellblock/kernels/kernelstest"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// smallDisk is a disk of its own, which is full soon.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	err := syscall.Mount("none", dir, "tmpfs", 0, "size=4m")
	kernelstest.Need(t, err == nil, "root, to mount a small disk")
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// fillDisk takes all that is left of a disk.
func fillDisk(t *testing.T, dir string) (ballast string) {
	t.Helper()
	ballast = filepath.Join(dir, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	return ballast
}

// A full disk keeps the history and the audit log from being written, which say so themselves. It is one cause, and the log has it once.
func TestAFullDiskIsToldOnce(t *testing.T) {
	dir := smallDisk(t)
	var out bytes.Buffer
	a := watchedApp(t, dir, slog.New(slog.NewTextHandler(&out, nil)))
	session := sessions.StoredSession{ID: "s", Language: "python", Created: time.Now()}
	found, err := a.history.Open(t.Context(), session)
	if err != nil {
		t.Fatal(err)
	}
	ballast := fillDisk(t, dir)
	large := sessions.ExecutionQueued{Number: 1, Code: strings.Repeat("x", 2<<20), Queued: time.Now()}
	if err := a.history.Commit(t.Context(), found.Ref, large); err == nil {
		t.Fatal("there was room")
	}
	waitFor(t, t.Context(), func() bool { // what is left of the file's last page takes some lines
		a.audit.Append(audit.Entry{Event: audit.Started, Reason: strings.Repeat("x", 500)})
		return a.audit.Health() != nil
	})
	report := a.health(t.Context())
	if report.Status != mcpserver.HealthDown || len(report.Problems) != 3 {
		t.Errorf("%+v", report)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if err := a.history.Commit(t.Context(), found.Ref, large); err != nil {
		t.Fatal(err)
	}
	a.audit.Append(audit.Entry{Event: audit.Stopped})
	waitFor(t, t.Context(), func() bool { return a.audit.Health() == nil })
	if report := a.health(t.Context()); report.Status != mcpserver.HealthOK {
		t.Errorf("%+v", report)
	}
	if err := errors.Join(a.closeAudit(), a.history.Close()); err != nil { // nobody writes into the log then
		t.Fatal(err)
	}
	for words, want := range map[string]int{
		"the server is not as it should be": 1, "a problem is over": 1, "history is not being saved": 1, "history is being saved again": 1,
		"the audit log cannot be written": 1, "the audit log can be written again": 1,
	} {
		if n := strings.Count(out.String(), `msg="`+words); n != want {
			t.Errorf("%q is there %d times, want %d:\n%s", words, n, want, out.String())
		}
	}
}
