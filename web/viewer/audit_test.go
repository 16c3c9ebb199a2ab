package viewer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cellblock/audit"
)

// auditedPages are pages with an audit log, and what ends and reads that.
func auditedPages(t *testing.T) (p *pages, lines func() []audit.Entry) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(audit.Options{Path: path, Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	p = newPages(t)
	p.viewer.Audit = log
	return p, func() (lines []audit.Entry) {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		for scan := bufio.NewScanner(f); scan.Scan(); {
			var e audit.Entry
			if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, e)
		}
		return lines
	}
}

// Who signs in, opens a session or fetches something of it is in the audit log, and so is who may not; what an open page fetches is not.
func TestWhatPeopleOpenIsAudited(t *testing.T) {
	p, lines := auditedPages(t)
	p.ran("ann", "s", "print a")
	stranger, ann, bob := &browser{pages: p}, p.signIn("ann", all...), p.signIn("bob", "sessions:read")
	put(t, ann, "s", "a.txt", "text of the file")
	link := "/signin?code=" + p.code("eve sessions:read")
	for range 2 {
		stranger.page("GET", link, "none", nil)
		ann.page("GET", link, "none", nil)
	}
	p.viewer.provider = newProvider(ProviderConfig{Issuer: "https://people.example", ClientID: "cells"}, p.viewer.PublicURL)
	stranger.page("GET", callbackPath+"?state=guessed", "none", nil)
	ann.page("GET", "/s/s", "none", nil)
	for _, path := range []string{"cells?from=1&to=1", "files", "details", "earlier", "notebook", "download?path=a.txt", "preview?path=a.txt"} {
		ann.want(200, "GET", "/s/s/"+path, nil)
	}
	for _, path := range []string{"", "/notebook", "/cells?from=1&to=1"} {
		bob.want(404, "GET", "/s/s"+path, nil)
	}
	bob.want(403, "GET", "/s/s/download?path="+url.QueryEscape("a.txt"), nil)
	bob.want(403, "POST", "/s/s/restart", nil)
	bob.want(403, "GET", "/server", nil)
	var got []string
	for _, e := range lines() {
		if e.Client != "viewer" {
			t.Errorf("%+v", e)
		}
		got = append(got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s %s %s", e.Subject, e.Event, e.Tool, e.Status, e.Session, strings.Join(e.Files, " "))))
	}
	want := []string{
		"ann called write_file  s a.txt", "ann answered write_file ok s a.txt",
		"eve answered sign_in ok", "denied sign_in unauthenticated", "denied sign_in unauthenticated",
		"ann answered open_session ok s", "ann answered download_notebook ok s", "ann answered download_file ok s a.txt", "ann answered preview_file ok s a.txt",
		"bob answered open_session not_found s", "bob answered download_notebook not_found s", "bob answered GET /s/{id}/cells not_found s",
		"bob denied download_file forbidden s a.txt", "bob denied restart_session forbidden s", "bob denied GET /server forbidden",
	}
	if !slices.Equal(got, want) {
		t.Errorf("\n%s\n, not\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Strangers fill no log: of sign-ins that are refused one after another, a few are told.
func TestRefusedSignInsAreFewLines(t *testing.T) {
	p, lines := auditedPages(t)
	for range 5 * strayAtOnce {
		if w := (&browser{pages: p}).page("GET", "/signin?code=guessed", "none", nil); w.Code != 401 {
			t.Fatal(w.Code)
		}
	}
	if n := len(lines()); n < strayAtOnce || n > 4*strayAtOnce {
		t.Errorf("%d lines", n)
	}
}
