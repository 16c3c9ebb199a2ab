package e2e

import (
	"net/http"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// Metrics count what has happened, for operators only.
func TestMetrics(t *testing.T) {
	s := start(t, "local")
	if answer, _ := rig.Send(t, http.MethodGet, metricsOf(s), "", bearer(s.Token(t, "--scopes", "sessions:admin"))); answer.StatusCode != http.StatusNotFound {
		t.Errorf("served though nobody wants them: %d", answer.StatusCode)
	}
	s.Stop(t)

	i := rig.Installation{DataDir: t.TempDir(), Flags: rig.RuntimeFlags("local"), Env: []string{"CELLBLOCK_METRICS_ENABLED=true"}}
	i.RunDir = runDirOf(t, i.DataDir)
	s = i.Serve(t, noPool)
	c := s.Connect(t, s.Token(t), false)
	python(t, c, "counted", "1+1")
	python(t, c, "counted", "1/0")
	if answer, _ := rig.Send(t, http.MethodGet, metricsOf(s), "", bearer(s.Token(t))); answer.StatusCode != http.StatusForbidden {
		t.Errorf("anybody's token: %d", answer.StatusCode)
	}
	_, body := rig.Send(t, http.MethodGet, metricsOf(s), "", bearer(s.Token(t, "--scopes", "sessions:admin")))
	wantText(t, body, `cellblock_cells_total{language="python",status="ok"} 1`, `cellblock_cells_total{language="python",status="error"} 1`,
		`cellblock_cell_seconds_count{language="python"} 2`, `cellblock_sessions{state="idle"} 1`, `cellblock_kernels_lost_total{how="died"} 0`,
		`cellblock_history_cells 2`, `for="mcp"`)
}

func metricsOf(s *rig.Server) string { return strings.TrimSuffix(s.URL, "/mcp") + "/metrics" }

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }
