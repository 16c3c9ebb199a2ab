package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// Without --yes nobody is deleted: it is said what there is of him, and how to go on.
func TestForgettingOnOneWord(t *testing.T) {
	var called []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		result := `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`
		switch asked.Method {
		case "initialize":
		case "tools/call":
			called = append(called, asked.Params.Name)
			result = fmt.Sprintf(`{"content":[{"type":"text","text":"answer of %s"}]}`, asked.Params.Name)
		default:
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, asked.ID, result)
	}))
	defer server.Close()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("a.b.c"), 0o600); err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]struct {
		tool, text string
		exit       int
	}{
		"":      {"show_owner", "nothing was deleted\nHint: Add --yes", 2},
		"--yes": {"forget_owner", "", 0},
	} {
		called = nil
		line := "admin forget --issuer i --subject ada --url " + server.URL + " --token-file " + token + " " + flag
		out, err := command(t, strings.Fields(line)...)
		if strings.Join(called, " ") != want.tool || out != "answer of "+want.tool+"\n" {
			t.Errorf("%q called %q and printed %q", flag, called, out)
		}
		if (err != nil) != (want.exit > 0) || err != nil && (fault.ExitCode(err) != want.exit || !strings.Contains(fault.Text(err), want.text)) {
			t.Errorf("%q: %v", flag, err)
		}
	}
}
