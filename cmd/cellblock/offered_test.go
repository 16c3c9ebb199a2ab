package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// A tool that the server does not have is said to be missing, with what has it be there; another error stays what it is.
func TestNotOffered(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		_ = json.NewDecoder(r.Body).Decode(&asked)
		answers := map[string]string{
			"initialize": `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}`,
			"tools/list": `"result":{"tools":[{"name":"list_sessions","inputSchema":{"type":"object"}}]}`,
			"tools/call": `"error":{"code":-32602,"message":"something is wrong"}`,
		}
		if answers[asked.Method] == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, asked.ID, answers[asked.Method])
	}))
	defer server.Close()
	c, err := dialMCP(t.Context(), server.URL, "token", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for tool, want := range map[string]struct {
		kind fault.Kind
		text string
	}{
		"list_images":   {fault.Unavailable, "--toolsets execute,sessions,files,images"},
		"list_sessions": {fault.Internal, "something is wrong"},
	} {
		if _, err := tell(t.Context(), c, tool, nil); fault.KindOf(err) != want.kind || !strings.Contains(fault.Text(err), want.text) {
			t.Errorf("%s: %v", tool, fault.Text(err))
		}
	}
}
