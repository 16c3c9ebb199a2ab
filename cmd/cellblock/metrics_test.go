package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/web/metrics"
)

// On an address of their own metrics are served to whoever reaches it, and nothing else is, until the server stops.
func TestMetricsOnTheirOwnAddress(t *testing.T) {
	var log bytes.Buffer
	a := &app{logger: slog.New(slog.NewTextHandler(&log, nil)), metrics: metrics.New("1.2.3")}
	stop, err := a.serveMetrics(&Config{Metrics: MetricsConfig{Enabled: true, Addr: "127.0.0.1:0"}, AllowedHosts: []string{"metrics.internal"}})
	if err != nil {
		t.Fatal(err)
	}
	addr := regexp.MustCompile(`127\.0\.0\.1:\d+`).FindString(log.String())
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{"/metrics": 200, "/": 404, "/mcp": 404} {
		answer, err := client.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != want || (path == "/metrics") != strings.Contains(string(body), `cellblock_build_info{version="1.2.3"} 1`) {
			t.Errorf("%s: %d %v\n%.500s", path, answer.StatusCode, err, body)
		}
	}
	for host, want := range map[string]int{"localhost": 200, "metrics.internal:9090": 200, "rebound.example": 403} {
		ask, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/metrics", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		ask.Host = host
		answer, err := client.Do(ask)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != want {
			t.Errorf("by the host %s: %d, want %d", host, answer.StatusCode, want)
		}
	}
	if _, err := a.serveMetrics(&Config{Metrics: MetricsConfig{Enabled: true, Addr: addr}}); fault.KindOf(err) != fault.Unavailable || !strings.Contains(fault.Hint(err), "metrics.addr") {
		t.Errorf("an address that is taken: %v", err)
	}
	stop()
	if answer, err := client.Get("http://" + addr + "/metrics"); err == nil {
		answer.Body.Close()
		t.Error("they are served still")
	}
	if strings.Contains(log.String(), "level=ERROR") {
		t.Errorf("the log: %s", &log)
	}
}

// Without an address of their own they have none.
func TestNoMetricsAddress(t *testing.T) {
	for _, a := range []*app{{metrics: metrics.New("")}, {}} {
		stop, err := a.serveMetrics(&Config{Metrics: MetricsConfig{Addr: map[bool]string{true: "127.0.0.1:0"}[a.metrics == nil]}})
		if err != nil {
			t.Fatal(err)
		}
		stop()
	}
}
