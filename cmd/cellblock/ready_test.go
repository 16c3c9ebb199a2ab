package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestAskReady(t *testing.T) {
	for name, tt := range map[string]struct {
		status     int
		text, want string
	}{
		"ready":           {200, `{"ready":true}`, ""},
		"not ready":       {503, `{"ready":false,"reason":"the disk is full"}`, "not ready: the disk is full"},
		"another program": {200, `<html>`, "no cellblock"},
		"another answer":  {404, `{"error":"x"}`, "no cellblock"},
		"much":            {200, `{"ready":true,"x":"` + strings.Repeat("x", 1<<20) + `"}`, "no cellblock"},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			fmt.Fprint(w, tt.text)
		}))
		err := askReady(t.Context(), s.URL+"/ready")
		if s.Close(); (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err := askReady(t.Context(), s.URL+"/ready"); fault.KindOf(err) != fault.Unavailable || fault.Hint(err) == "" {
			t.Errorf("%s, gone: %v", name, err)
		}
	}
}
