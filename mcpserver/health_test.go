package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

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
			c.Profiles["lab"], c.Profiles["out"] = sessions.Profile{Runtime: "secret"}, sessions.Profile{Runtime: "doubtful"}
			c.Provisioner = refusing{Provisioner: c.Provisioner.(*kernelstest.Provisioner)}
		})
		w.service.Operator = func(context.Context) bool { return operator }
		w.watch()
		got := w.call("health", nil)
		if !operator {
			got.expect(t, false, "degraded · ", "problem: a profile does not work")
			if all := got.String() + string(got.structured); strings.Contains(all, "secret") || strings.Contains(all, "lab") {
				t.Errorf("others are told %s", all)
			}
			continue
		}
		got.expect(t, false, "profiles: development, isolated, lab (does not work), out (perhaps not all of it: it is doubtful. Look.), session\n", "problem: the profile lab does not work: there is no secret\n  to do: Install it.")
		if !strings.Contains(string(got.structured), `{"name":"lab","problem":"there is no secret"}`) {
			t.Errorf("got %s", got.structured)
		}
	}
}

// A doubt alone makes a server no worse.
func TestHealthOfDoubtfulProfiles(t *testing.T) {
	w := newWorld(t, func(c *sessions.Config) {
		c.Profiles["out"], c.Provisioner = sessions.Profile{Runtime: "doubtful"}, refusing{Provisioner: c.Provisioner.(*kernelstest.Provisioner)}
	})
	w.watch()
	got := w.call("health", nil)
	if got.expect(t, false, "out (perhaps"); strings.Contains(got.String(), "degraded") {
		t.Errorf("got %s", got)
	}
}

// A profile whose look hangs is said not to answer; reports wait for it once, and no second look is begun while it hangs.
func TestHealthOfHangingProfile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hung, looks := make(chan struct{}), new(atomic.Int32)
		w := newWorld(t, func(c *sessions.Config) {
			c.Profiles["nfs"] = sessions.Profile{Runtime: "hanging"}
			c.Provisioner = refusing{c.Provisioner.(*kernelstest.Provisioner), hung, looks}
		})
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.watch()
		for i, takes := range []time.Duration{lookPatience, 0} {
			began := time.Now()
			report := w.service.ReportHealth(t.Context(), began)
			if took := time.Since(began); took != takes || report.Status != HealthDegraded || !strings.Contains(report.Problems[0].What, "the profile nfs does not work: a folder") {
				t.Errorf("report %d after %v: %+v", i, took, report)
			}
			time.Sleep(2 * lookAge)
		}
		close(hung)
		synctest.Wait()
		if report := w.service.ReportHealth(t.Context(), time.Now()); report.Status != HealthOK || looks.Load() != 2 {
			t.Errorf("it answers again, after %d looks: %+v", looks.Load(), report)
		}
		if w.service.ReportHealth(t.Context(), time.Now()); looks.Load() != 2 {
			t.Errorf("%d looks within a minute", looks.Load())
		}
	})
}

// watch looks at the world's profiles.
func (w *world) watch() {
	w.service.Profiles = WatchProfiles(w.service.Sessions.Config())
	w.t.Cleanup(w.service.Profiles.Stop)
}

// refusing is a provisioner that has no OCI runtimes, looks that may hang, and doubts.
type refusing struct {
	*kernelstest.Provisioner
	hung  chan struct{}
	looks *atomic.Int32 // those that may hang
}

func (r refusing) Allows(_ context.Context, s kernels.Spec) (doubt, err error) {
	switch s.Runtime {
	case "":
		return nil, nil
	case "doubtful":
		return fault.New(fault.Unavailable, "it is doubtful").WithHint("Look."), nil
	case "hanging":
		r.looks.Add(1)
		<-r.hung
		return nil, nil
	}
	return nil, fault.New(fault.Unavailable, "there is no %s", s.Runtime).WithHint("Install it.")
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
