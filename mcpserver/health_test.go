package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// Where the engine's socket lies is for whoever operates the server; everybody else hears that kernels cannot be started.
func TestHealthIsForEachAsMuchAsIsHis(t *testing.T) {
	const detail = "cannot connect to /run/secret.sock"
	for scope, operator := range map[string]bool{ScopeRead: false, ScopeAdmin: true} {
		w := newWorld(t)
		w.scopes = []string{scope}
		w.service.Operator = func(context.Context) bool { return slices.Contains(w.scopes, ScopeAdmin) }
		w.kernels.HealthError = fault.New(fault.Unavailable, detail).WithHint("Start the engine at /run/secret.sock.")
		got := w.call("health", nil)
		if strings.Contains(got.String()+string(got.structured), "secret") != operator {
			t.Errorf("%s sees %s\n%s", scope, got, got.structured)
		}
		if counts := strings.Contains(got.String()+string(got.structured), "session"); counts != operator {
			t.Errorf("%s is told how many sessions there are: %v\n%s", scope, counts, got.structured)
		}
		if !operator {
			got.expect(t, false, "down · ", "problem: kernels cannot be started now")
		}
	}
}

// Operators are told which profiles there are, and why one does not work; others only that one does not.
func TestHealthOfProfiles(t *testing.T) {
	for _, operator := range []bool{false, true} {
		w := newWorld(t, func(c *sessions.Config) {
			c.Profiles["lab"] = sessions.Profile{Runtime: "secret"}
			c.Provisioner = refusing{c.Provisioner.(*kernelstest.Provisioner)}
		})
		w.service.Operator = func(context.Context) bool { return operator }
		got := w.call("health", nil)
		if !operator {
			got.expect(t, false, "degraded · ", "problem: a profile does not work")
			if all := got.String() + string(got.structured); strings.Contains(all, "secret") || strings.Contains(all, "lab") {
				t.Errorf("others are told %s", all)
			}
			continue
		}
		got.expect(t, false, "profiles: development, isolated, lab (does not work), session\n", "problem: the profile lab does not work: there is no secret\n  to do: Install it.")
		if !strings.Contains(string(got.structured), `{"name":"lab","problem":"there is no secret"}`) {
			t.Errorf("got %s", got.structured)
		}
	}
}

// refusing is a provisioner that has no OCI runtimes.
type refusing struct{ *kernelstest.Provisioner }

func (refusing) Allows(_ context.Context, s kernels.Spec) error {
	if s.Runtime == "" {
		return nil
	}
	return fault.New(fault.Unavailable, "there is no %s", s.Runtime).WithHint("Install it.")
}

func TestPublicHealth(t *testing.T) {
	h := HealthReport{Status: HealthOK, Pool: &Pool{Size: 1, Problem: "no image at /secret"}, Capabilities: kernels.Capabilities{Warnings: []string{"secret"}}}
	if h.Reason() != "" || len(h.Public().Problems) != 0 {
		t.Errorf("a server that is well: %+v", h.Public())
	}
	for range 2 {
		h.Add(HealthDegraded, Problem{What: "secret", Hint: "secret", Public: "weak"})
	}
	if h.Status != HealthDegraded || h.Reason() != "" {
		t.Errorf("%s %q", h.Status, h.Reason())
	}
	h.AddError(HealthDown, errors.New("secret"), "stopped")
	h.AddError(HealthDegraded, errors.New("secret"), "old")
	if h.Status != HealthDown || h.Reason() != "stopped" {
		t.Errorf("%s %q", h.Status, h.Reason())
	}
	text, err := json.Marshal(h.Public())
	if err != nil || strings.Contains(string(text), "secret") || strings.Count(string(text), "weak") != 1 {
		t.Errorf("%s, %v", text, err)
	}
	if text, _ := json.Marshal(h); strings.Count(string(text), "secret") < 5 {
		t.Errorf("the operator is not told all: %s", text)
	}
}
