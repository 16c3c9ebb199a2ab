package mcpserver

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellblock/images/derived"
	"cellblock/sessions"
)

func TestOperatorsListAndStopSessionsOfAnybody(t *testing.T) {
	w, lines := auditedWorld(t, false)
	w.call("execute_python", map[string]any{"session_id": "s", "code": "print the-secret"}).expect(t, false)
	w.owner = sessions.Owner{Issuer: "https://issuer", Subject: "bob"}
	w.call("execute_python", map[string]any{"session_id": "s", "code": "print another"}).expect(t, false)

	w.owner, w.scopes = sessions.Owner{Subject: "operator"}, []string{ScopeAdmin}
	var names []string
	tools, _ := w.list()
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	if slices.Sort(names); strings.Join(names, " ") != "forget_owner health list_all_sessions show_owner stop_any_session" {
		t.Errorf("an operator has %v", names)
	}
	got := w.call("list_all_sessions", nil)
	got.expect(t, false, "https://issuer bob · s · python", " alice · s · python")
	if strings.Contains(got.String()+string(got.structured), "secret") {
		t.Errorf("an operator reads what sessions hold: %s", got)
	}
	for _, tool := range []string{"list_sessions", "list_executions", "get_execution", "read_file", "execute_python", "close_session", "inspect_variables"} {
		w.call(tool, map[string]any{"session_id": "s"}).expect(t, true, "scope")
	}
	w.call("stop_any_session", map[string]any{"issuer": "https://issuer", "subject": "bob", "session_id": "s"}).expect(t, false, "Session s of bob is stopped")
	w.call("stop_any_session", map[string]any{"issuer": "https://issuer", "subject": "carol", "session_id": "s"}).
		expect(t, true, `there is no session "s" of carol at https://issuer`, "list_all_sessions names")
	if got := w.call("list_all_sessions", nil).String(); strings.Contains(got, "bob") || !strings.Contains(got, "alice") {
		t.Errorf("after it: %s", got)
	}

	w.owner, w.scopes = sessions.Owner{Subject: "alice"}, []string{"python:execute", ScopeRead, ScopeManage, ScopeFilesRead, ScopeFilesWrite}
	w.call("list_all_sessions", nil).expect(t, true, "sessions:admin")
	w.call("stop_any_session", map[string]any{"issuer": "https://issuer", "subject": "bob", "session_id": "s"}).expect(t, true, "sessions:admin")

	w.owner = sessions.Owner{Issuer: "https://issuer", Subject: "bob"}
	got = w.call("execute_python", map[string]any{"session_id": "s", "code": "print again"})
	if got.expect(t, false, "the session was stopped by an operator of the server", "again"); strings.Contains(got.String(), "was closed") {
		t.Errorf("its owner hears: %s", got)
	}

	var told bool
	for _, line := range lines() {
		if line["tool"] == "stop_any_session" && line["event"] == "called" && line["of_subject"] == "bob" && line["subject"] == "operator" {
			has(t, line, map[string]any{"subject": "operator", "of_issuer": "https://issuer", "session": "s", "scope": ScopeAdmin})
			told = true
		}
	}
	if !told {
		t.Error("what an operator did is not in the audit log")
	}
}

func TestOperatorsForgetOwners(t *testing.T) {
	w, lines := auditedWorld(t, false)
	l := withImages(w)
	l.list = []derived.Entry{{Name: "python"}, {Name: "ml", Base: "cellblock-python:latest"}, {Name: "viz", Base: "cellblock-python:latest"}}
	alice, bob := w.owner, sessions.Owner{Issuer: "https://issuer", Subject: "bob"}
	for _, o := range []sessions.Owner{alice, bob} {
		w.owner = o
		w.call("execute_python", map[string]any{"session_id": "s", "code": "print one"}).expect(t, false, "one")
	}
	his := map[string]any{"issuer": bob.Issuer, "subject": bob.Subject}
	w.scopes = []string{"python:execute", ScopeRead, ScopeManage, ScopeFilesWrite}
	w.call("forget_owner", his).expect(t, true, "sessions:admin") // not even what is one's own

	w.owner, w.scopes = sessions.Owner{Subject: "operator"}, []string{ScopeAdmin}
	w.call("forget_owner", map[string]any{"issuer": bob.Issuer}).expect(t, true, "subject: is required")
	w.call("show_owner", his).expect(t, false, "Kept of bob at https://issuer: 1 session (1 running, 1 cell so far) with files and history, 2 images.")
	if len(l.asked) > 0 {
		t.Errorf("looking has asked %q", l.asked)
	}
	w.call("forget_owner", his).expect(t, false, "Deleted of bob: 1 session with files and history, 2 images.", "audit log")
	if want := []string{fmt.Sprintf("delete %q ml", bob.Key()), fmt.Sprintf("delete %q viz", bob.Key())}; !slices.Equal(l.asked, want) {
		t.Errorf("asked %q, want %q", l.asked, want)
	}
	if got := w.call("list_all_sessions", nil).String(); strings.Contains(got, "bob") || !strings.Contains(got, "alice") {
		t.Errorf("after it: %s", got)
	}
	l.list = nil
	for _, tool := range []string{"show_owner", "forget_owner"} {
		w.call(tool, his).expect(t, true, "nothing is kept of bob at https://issuer", "audit log")
	}
	l.err = errors.New("the engine is away")
	w.call("forget_owner", map[string]any{"issuer": alice.Issuer, "subject": alice.Subject}).
		expect(t, true, "Deleted of alice: 1 session", "Not all went: the engine is away", "goes on with what is left")
	if got := w.call("forget_owner", his).String(); !strings.Contains(got, "the engine is away") || strings.Contains(got, "nothing is kept") {
		t.Errorf("where nobody knows of images: %s", got)
	}
	last := ""
	for _, line := range lines() {
		if line["tool"] == "forget_owner" && line["event"] == "called" {
			last += fmt.Sprint(line["of_subject"], " ")
		}
	}
	if !strings.Contains(last, "bob") {
		t.Errorf("the audit log has it of %q", last)
	}
}
