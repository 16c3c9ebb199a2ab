package metrics

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestAnswersAreCounted(t *testing.T) {
	m := New("1.2.3")
	m.Answered("mcp", 200, 20*time.Millisecond)
	m.Answered("mcp", 200, 20*time.Millisecond)
	m.Answered("viewer", 401, time.Millisecond)
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`cellblock_build_info{version="1.2.3"} 1`, `cellblock_http_requests_total{code="200",for="mcp"} 2`,
		`cellblock_http_requests_total{code="401",for="viewer"} 1`, `cellblock_http_seconds_bucket{for="mcp",le="0.05"} 2`,
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s is missing in\n%.3000s", want, w.Body)
		}
	}
}

func TestNoMetrics(t *testing.T) {
	var m *Metrics
	m.Answered("mcp", 200, 0)
	m.CellEnded(nil)
	m.Watch(nil)
}
