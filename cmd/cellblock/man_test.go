package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

// ran runs a command as typed and returns what it printed.
func ran(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	if err := root.Execute(); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
	return out.String()
}

func TestEveryCommandHasAManualPage(t *testing.T) {
	first, again := filepath.Join(t.TempDir(), "man"), t.TempDir()
	ran(t, "man", first)
	ran(t, "man", again)
	for page, word := range map[string]string{"cellblock.1": "notebooks", "cellblock-serve.1": "dev mode", "cellblock-sessions-ls.1": "SEE ALSO"} {
		text, err := os.ReadFile(filepath.Join(first, page))
		same, _ := os.ReadFile(filepath.Join(again, page))
		if err != nil || !strings.Contains(string(text), word) || !bytes.Equal(text, same) {
			t.Errorf("%s: %v\n%.300s", page, err, text)
		}
	}
}

func TestManualPagesNowhere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := command(t, "man", filepath.Join(file, "x")); fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
		t.Errorf("got %v: %v", fault.KindOf(err), err)
	}
}

func TestCompletions(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		script, err := os.Create(filepath.Join(t.TempDir(), shell))
		if err != nil {
			t.Fatal(err)
		}
		stdout := os.Stdout
		os.Stdout = script // cobra takes it when the command is made
		ran(t, "completion", shell)
		os.Stdout = stdout
		_ = script.Close()
		if text, err := os.ReadFile(script.Name()); err != nil || !strings.Contains(string(text), "cellblock") {
			t.Errorf("%s: %v %.200s", shell, err, text)
		}
	}
}

// Shells ask the program itself what can come next.
func TestFlagsOfFewWordsAreCompleted(t *testing.T) {
	for flag, words := range map[string]string{
		"--provisioner": "auto docker local", "--sandbox": "bwrap none", "--docker-carrier": "auto socket stdio",
		"--on-shutdown": "keep stop", "--log-level": "debug info warn error",
	} {
		said := strings.Fields(ran(t, "__complete", "serve", flag, ""))
		if got := strings.Join(said, " "); !strings.HasPrefix(got, words+" :4") {
			t.Errorf("%s: %q", flag, got)
		}
	}
}

func TestVersionIsStamped(t *testing.T) {
	info := &debug.BuildInfo{Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.time", Value: "2026-01-02T03:04:05Z"}, {Key: "vcs.modified", Value: "true"},
	}}
	if got := stamp(info); got != " commit 0123456789ab of 2026-01-02T03:04:05Z, changed" {
		t.Errorf("%q", got)
	}
	if got := stamp(&debug.BuildInfo{}); got != "" {
		t.Errorf("%q", got)
	}
}

func TestBillOfMaterials(t *testing.T) {
	var out bytes.Buffer
	err := writeSBOM(&out, &debug.BuildInfo{Path: "cellblock/cmd/cellblock-shim", GoVersion: "go1.2.3", Main: debug.Module{Version: "v0.1.0"}, Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.2.3", Sum: "h1:x="},
		{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/new", Version: "v2.0.0"}},
	}}, false)
	var doc struct {
		BOMFormat  string
		Metadata   struct{ Component component }
		Components []component
	}
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &doc)
	}
	if err != nil || doc.BOMFormat != "CycloneDX" || len(doc.Components) != 3 || doc.Components[1].PURL != "pkg:golang/example.org/a@v1.2.3" ||
		doc.Components[2].Name != "example.org/new" || doc.Components[1].Properties[0].Value != "h1:x=" {
		t.Errorf("%v\n%s", err, out.String())
	}
	if c := doc.Metadata.Component; c.Name != "cellblock-shim" || c.Version != "v0.1.0" || doc.Components[0].PURL != "pkg:golang/stdlib@1.2.3" {
		t.Errorf("%+v, %+v", c, doc.Components[0])
	}
}

// What is said of another program is read in it: it may be older than this one, and for another system.
func TestVersionOfAnotherProgram(t *testing.T) {
	this, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	info, _ := debug.ReadBuildInfo()
	is := settings(info)
	if said := ran(t, "version", this); !strings.HasPrefix(said, filepath.Base(info.Path)+" ") || !strings.Contains(said, "("+info.GoVersion+", "+is["GOOS"]+"/"+is["GOARCH"]+")") {
		t.Errorf("%q", said)
	}
}
