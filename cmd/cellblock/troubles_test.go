package main

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"cellblock/mcpserver"
)

// The log hears of a problem once, however often somebody looks, and of its end.
func TestTroublesAreToldOnce(t *testing.T) {
	var out bytes.Buffer
	logger := slog.New(slog.NewTextHandler(&out, nil))
	var told troublesTold
	for _, port := range []string{"1", "2", "3"} {
		told.tell(logger, []mcpserver.Problem{{What: "no engine at port " + port, Hint: "Start it.", Public: "no kernels"}})
	}
	told.tell(logger, nil)
	told.tell(logger, nil)
	told.tell(logger, []mcpserver.Problem{{What: "no engine again", Public: "no kernels"}, {What: "no keys", Public: "no tokens", Logged: true}})
	want := []string{"no engine at port 1", "is over", "no engine again"}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%s", &out)
	}
	for n, line := range lines {
		if !strings.Contains(line, want[n]) {
			t.Errorf("line %d: %s", n+1, line)
		}
	}
}
