package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/audit"
	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/kernels/kernelstest"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// runCommand runs the program's command line on a data folder.
func runCommand(t *testing.T, dir string, args ...string) (out string, err error) {
	t.Helper()
	var text bytes.Buffer
	root := newRoot()
	root.SetOut(&text)
	root.SetErr(&text)
	root.SetArgs(append(args, "--data-dir", dir))
	err = root.Execute()
	return text.String(), err
}

func auditedApp(t *testing.T, dir string) *app {
	t.Helper()
	a := &app{logger: newLogger(LogConfig{Level: "error"}), slot: &slot{name: "s0"}}
	if err := a.openAudit(&Config{DataDir: dir, Audit: AuditConfig{Enabled: true, MaxBytes: 64 << 20}}); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAuditVerify(t *testing.T) {
	dir := t.TempDir()
	if out, err := runCommand(t, dir, "audit", "verify"); fault.KindOf(err) == fault.Internal || err == nil {
		t.Errorf("no log: %v\n%s", err, out)
	}
	a := auditedApp(t, dir)
	a.mcp.Toolsets = mcpserver.DefaultToolsets()
	if err := a.closeAudit(); err != nil {
		t.Fatal(err)
	}
	if out, err := runCommand(t, dir, "audit", "verify"); err != nil || !strings.Contains(out, "is as it was written: 2 lines (1 to 2) in 1 file\n") {
		t.Errorf("%v\n%s", err, out)
	}
	name := filepath.Join(dir, "audit.jsonl")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, bytes.Replace(text, []byte("slot s0"), []byte("slot s1"), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := runCommand(t, dir, "audit", "verify")
	if fault.ExitCode(err) != 65 || !strings.Contains(out, "problem: line 1 (audit.jsonl:1) was changed") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Log and head that are deleted together are missed: the history knows of them.
func TestAuditVerifyMissesADeletedLog(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // the second goes on behind the lines of the first
		store, err := history.Open(t.Context(), history.Options{Folder: dir})
		if err != nil {
			t.Fatal(err)
		}
		a := &app{logger: newLogger(LogConfig{Level: "error"}), slot: &slot{name: "s0"}, history: store}
		if err := a.openAudit(&Config{DataDir: dir, Audit: AuditConfig{Enabled: true, MaxBytes: 64 << 20}}); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(a.closeAudit(), store.Close()); err != nil {
			t.Fatal(err)
		}
		if out, err := runCommand(t, dir, "audit", "verify"); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	for _, name := range []string{"audit.jsonl", "audit.jsonl.head"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := runCommand(t, dir, "audit", "verify")
	if fault.ExitCode(err) != 65 || !strings.Contains(out, "problem: the database counts lines up to 4, and the log ends with 0: log and head were put back or taken away") {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.Remove(filepath.Join(dir, history.FileName)); err != nil {
		t.Fatal(err)
	}
	if out, err := runCommand(t, dir, "audit", "verify"); fault.KindOf(err) != fault.NotFound {
		t.Errorf("without a history: %v\n%s", err, out)
	}
}

// A call that the transport refuses never reaches the tools; it is told of all the same.
func TestDeniedCallsAreAudited(t *testing.T) {
	dir := t.TempDir()
	a := auditedApp(t, dir)
	a.audit.Code = true // of cells that run
	manager, err := sessions.New(sessions.Config{
		Provisioner: kernelstest.NewProvisioner(), DataDir: t.TempDir(), Runtimes: map[string]sessions.Runtime{"python": {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Shutdown(context.Background())
	a.mcp = mcpserver.Config{Sessions: manager, Owner: tokenOwner, Limiter: mcpserver.NewLimiter(1, 1)}
	a.refused = mcpserver.NewLimiter(1, 4)
	a.access = mcpserver.NewAccess(a.mcp)
	ctx := auth.NewContext(context.Background(), auth.Principal{Issuer: "i", Subject: "ann", Scopes: []string{mcpserver.ScopeRead}})
	file := transport.Call{Method: "resources/read", URI: "cellblock://sessions/s/files/a.txt"}
	stop := transport.Call{Method: "tools/call", Tool: "close_session", Arguments: []byte(`{"session_id":"theirs"}`)}
	write := transport.Call{Method: "tools/call", Tool: "write_file", Arguments: []byte(`{"session_id":"mine","path":"b.txt","content":"secret text"}`)}
	run := transport.Call{Method: "tools/call", Tool: "execute_python", Arguments: []byte(`{"session_id":"run","code":"secret code"}`)}
	for _, call := range []transport.Call{stop, write, run, file, file, file, file} {
		if err := a.admit(ctx, call); fault.KindOf(err) != fault.Forbidden {
			t.Fatal(err)
		}
	}
	if err := a.closeAudit(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"event":"denied"`, `"subject":"ann"`, `"tool":"close_session","scope":"sessions:manage","session":"theirs"`, `"status":"forbidden"`,
		`"tool":"write_file","scope":"files:write","session":"mine","files":["b.txt"]`, `"session":"run","language":"python","code_sha256"`,
		`"tool":"resources/read","scope":"files:read","session":"s","files":["cellblock://sessions/s/files/a.txt"]`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if n := strings.Count(string(text), `"event":"denied"`); n != 5 || strings.Contains(string(text), "secret") { // four in time, and the first of those that came too often
		t.Errorf("%d refusals are told of", n)
	}
}

// Where the log is required and cannot be written, the server serves nobody, and says so.
func TestHealthTellsOfTheAuditLog(t *testing.T) {
	for required, want := range map[bool]string{false: mcpserver.HealthDegraded, true: mcpserver.HealthDown} {
		dir := t.TempDir()
		a := auditedApp(t, dir)
		a.audit.Required = required
		in := filepath.Join(dir, "audit.jsonl.lock") // a folder where a file is to be, once the first line is written
		for os.Mkdir(in, 0o700) != nil {
			if err := os.Remove(in); err != nil {
				t.Fatal(err)
			}
		}
		a.audit.Append(audit.Entry{Event: audit.Called})
		if err := a.closeAudit(); err == nil {
			t.Error("closing says nothing of what is lost")
		}
		got := a.withAudit(mcpserver.HealthReport{Status: mcpserver.HealthOK})
		if got.Status != want || len(got.Problems) != 1 || !strings.Contains(got.Problems[0].What, "audit log cannot be written") {
			t.Errorf("required %v: %+v", required, got)
		}
	}
}
