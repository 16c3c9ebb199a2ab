package metrics

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// want fails unless the metrics have every line.
func want(t *testing.T, m *Metrics, lines ...string) {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, line := range lines {
		if !strings.Contains(w.Body.String(), "\n"+line+"\n") {
			t.Errorf("%s is missing in\n%.3000s", line, w.Body)
		}
	}
}

func TestAnswersAreCounted(t *testing.T) {
	m := New("1.2.3")
	m.Answered("mcp", 200, 20*time.Millisecond)
	m.Answered("mcp", 200, 20*time.Millisecond)
	m.Answered("viewer", 401, time.Millisecond)
	want(t, m, `cellblock_build_info{version="1.2.3"} 1`, `cellblock_http_requests_total{code="200",for="mcp"} 2`,
		`cellblock_http_requests_total{code="401",for="viewer"} 1`, `cellblock_http_seconds_bucket{for="mcp",le="0.05"} 2`)
}

// Cells are counted by how they ended, the one that never ran by why, and sessions by looking at them.
func TestCellsAndSessionsAreCounted(t *testing.T) {
	m, provisioner := New("1.2.3"), kernelstest.NewProvisioner()
	defer provisioner.StopAll()
	manager, err := sessions.New(sessions.Config{
		Provisioner: provisioner, DataDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler), Profiles: map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 2 << 30}}},
		Runtimes: map[string]sessions.Runtime{"python": {}}, Store: storetest.NewMemory(),
		Ended: func(_ sessions.Owner, e *sessions.Execution) { m.CellEnded(e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Shutdown(context.Background())
	m.Watch(manager)
	execute := func(code string) *sessions.Execution {
		e, err := manager.Execute(t.Context(), sessions.Owner{Subject: "ann"}, sessions.Request{SessionID: "s", Language: "python", Code: code})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	for range 2 {
		_, _ = execute("print hello").Wait(t.Context())
	}
	_, _ = execute("error ValueError x").Wait(t.Context())
	running := execute("print begun\nwait")
	for range running.Outputs(t.Context()) {
		break // it has begun
	}
	execute("print never").Cancel()
	if err := running.Saved(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, m, `cellblock_cells_total{language="python",status="ok"} 2`, `cellblock_cells_total{language="python",status="error"} 1`,
		`cellblock_cells_total{language="python",status="never_ran"} 1`, `cellblock_cell_failures_total{kind="cancelled"} 1`,
		`cellblock_cell_seconds_count{language="python"} 3`, `cellblock_sessions{state="busy"} 1`, `cellblock_sessions{state="idle"} 0`,
		`cellblock_cells_waiting 0`, `cellblock_kernels_lost_total{how="died"} 0`, `cellblock_history_cells 5`)
	if u, err := manager.Usage(t.Context()); err != nil || u.Disk == 0 {
		t.Errorf("Usage: %+v, %v", u, err)
	} else {
		want(t, m, fmt.Sprintf("cellblock_history_bytes %d", u.Disk))
	}
	running.Cancel()
	_, _ = running.Wait(t.Context())
	want(t, m, `cellblock_cells_total{language="python",status="cancelled"} 1`, `cellblock_cells_total{language="python",status="error"} 1`)
}

// What stopped a cell is counted, not how its kernel took that.
func TestStatusOfStoppedCells(t *testing.T) {
	interrupted := sessions.InterruptReport{Ran: true}
	ended := func(status kernels.Status, death *kernels.Death) kernels.Result {
		return kernels.Result{Status: status, Death: death}
	}
	failed, restarted := ended(kernels.StatusError, nil), ended(kernels.StatusDied, &kernels.Death{Asked: true})
	died := ended(kernels.StatusDied, &kernels.Death{})
	for name, tt := range map[string]struct {
		result sessions.Result
		want   string
	}{
		"it failed":                             {sessions.Result{Result: failed}, "error"},
		"its kernel died":                       {sessions.Result{Result: died}, "died"},
		"its time was over":                     {sessions.Result{Result: failed, Interrupt: interrupted, TimedOut: true}, "timeout"},
		"its caller gave it up":                 {sessions.Result{Result: failed, Interrupt: interrupted, Cancelled: true}, "cancelled"},
		"given up, by a restart":                {sessions.Result{Result: restarted, Interrupt: interrupted, Cancelled: true}, "cancelled"},
		"it was interrupted":                    {sessions.Result{Result: failed, Interrupt: interrupted}, "interrupted"},
		"it was interrupted and ended well":     {sessions.Result{Result: ended(kernels.StatusOK, nil), Interrupt: interrupted}, "interrupted"},
		"interrupted, by a restart":             {sessions.Result{Result: restarted, Interrupt: interrupted}, "interrupted"},
		"its kernel was restarted":              {sessions.Result{Result: restarted, Restarted: true}, "restarted"},
		"its session was closed":                {sessions.Result{Result: restarted}, "stopped"},
		"its kernel died as it was to be ended": {sessions.Result{Result: died, Interrupt: interrupted}, "died"},
	} {
		if got := statusOf(tt.result); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}

func TestNoMetrics(t *testing.T) {
	var m *Metrics
	m.Answered("mcp", 200, 0)
	m.CellEnded(nil)
	m.Watch(nil)
}
