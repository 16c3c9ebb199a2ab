package rig

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// Post sends a message to an MCP endpoint as it stands, for what no client would send, and returns the answer and its body.
// Headers are sent beside those for the types of messages.
func Post(t testing.TB, url, body string, headers http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	maps.Copy(r.Header, headers)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, string(text)
}
