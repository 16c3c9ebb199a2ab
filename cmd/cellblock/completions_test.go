package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
)

// Shells are given names of files only where a file is meant, and words where they are known without a server.
func TestCompletionsAreOfWhatIsMeant(t *testing.T) {
	inEmptyFolder(t)
	if err := os.WriteFile("own.yaml", []byte("images: {python: a, lua: b}\nprofiles: {lab: {pids: 64}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const files, none = ":0", ":4"
	for line, want := range map[string]string{
		"sessions show ":                     none,
		"sessions show a ":                   none,
		"exec --session p":                   none,
		"exec --timeout ":                    none,
		"exec ":                              none,
		"exec --file ":                       files,
		"exec --images ":                     files,
		"exec --config ":                     files,
		"serve --tls-key ":                   files,
		"serve --addr ":                      none,
		"files put s ":                       files,
		"files put s f ":                     none,
		"files get s ":                       none,
		"notebook import ":                   files,
		"backup ":                            files,
		"man ":                               files,
		"sessions s":                         "show " + none,
		"doctor --check ":                    strings.Join(checkNames, " ") + " " + none,
		"exec --language ":                   "bash csharp javascript python r typescript " + none,
		"exec --config own.yaml --language ": "bash csharp javascript lua python r typescript " + none,
		"exec --config own.yaml --profile ":  "development isolated lab session " + none,
		"exec --config none.yaml --profile ": none,
		"notebook import --language ":        "bash csharp javascript python r typescript " + none,
		"serve --provisioner ":               "auto docker local " + none,
	} {
		said, err := command(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		words := strings.Fields(said)
		if err != nil || len(words) == 0 {
			t.Errorf("%q: %q, %v", line, said, err)
			continue
		}
		if strings.HasPrefix(line, "sessions s") && strings.HasPrefix(want, "show ") {
			words = []string{words[0], words[len(words)-1]} // what it is for stands between them
		}
		if got := strings.Join(words, " "); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// Where a session is meant shells are given the names of those that there are; of a server that says nothing there are none, and no error.
func TestCompletionsOfSessions(t *testing.T) {
	inEmptyFolder(t)
	t.Setenv("CELLBLOCK_TOKEN", "token")
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not noticed
		<-r.Context().Done()
	}))
	defer silent.Close()
	url := " --url " + serverOf(t, having("one", "two"))
	for line, want := range map[string]string{
		"exec" + url + " --session ":              "one two :4",
		"sessions show" + url + " ":               "one two :4",
		"sessions show" + url + " one ":           ":4",
		"sessions rm" + url + " one ":             "two :4",
		"files put" + url + " ":                   "one two :4",
		"files put" + url + " one ":               ":0",
		"admin stop" + url + " ":                  ":4", // those are another's
		"sessions show --url " + silent.URL + " ": ":4",
	} {
		said, err := command(t, append([]string{"__complete"}, strings.Split(line, " ")...)...)
		if got := strings.Join(strings.Fields(said), " "); err != nil || got != want {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	}
}
