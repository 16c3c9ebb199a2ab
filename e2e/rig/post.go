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
	all := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	maps.Copy(all, headers)
	return Send(t, http.MethodPost, url, body, all)
}

// Send sends a request with these headers, and returns the answer and its body.
func Send(t testing.TB, method, url, body string, headers http.Header) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
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
