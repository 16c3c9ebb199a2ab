package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// In JSON a duration is a number of seconds, in text it has its unit.
func TestDurationsInTheLog(t *testing.T) {
	line := func(format string) string {
		var said bytes.Buffer
		slog.New(logHandler(&said, LogConfig{Level: "info", Format: format})).Info("request", "duration", 1500*time.Millisecond, "status", 200)
		return said.String()
	}
	var entry struct{ Duration, Status float64 }
	if err := json.Unmarshal([]byte(line("json")), &entry); err != nil || entry.Duration != 1.5 || entry.Status != 200 {
		t.Errorf("%+v, %v", entry, err)
	}
	if text := line("text"); !strings.Contains(text, "duration=1.5s status=200") {
		t.Error(text)
	}
}
