package archtest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The rules themselves, on files that break them and files that do not.

func parse(t *testing.T, name, text string) []File {
	t.Helper()
	f, err := ParseFile(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return []File{f}
}

func TestCheckImports(t *testing.T) {
	tests := []struct {
		file, imported string
		want           string // "": allowed
	}{
		{"web/a.go", "cellblock/mcpserver", ""},
		{"web/a.go", "cellblock/kernels/docker", "engines and kernels' insides"},
		{"mcpserver/a.go", "cellblock/sessions", ""},
		{"mcpserver/a.go", "cellblock/mcpserver/transport", ""},
		{"mcpserver/a.go", "cellblock/web", "mcpserver imports web"},
		{"mcpserver/transport/a.go", "cellblock/sessions", "knows nothing of sessions"},
		{"sessions/a.go", "cellblock/mcpserver", "sessions imports mcpserver"},
		{"sessions/a.go", "cellblock/kernels", ""},
		{"sessions/a.go", "cellblock/kernels/local", "not how they are launched"},
		{"sessions/a.go", "cellblock/auth", "owners, not tokens"},
		{"kernels/a.go", "cellblock/kernels/stream", ""},
		{"kernels/a.go", "cellblock/kernels/docker", "cannot know them"},
		{"kernels/a.go", "cellblock/kernels/shim", "cannot know them"},
		{"kernels/a.go", "cellblock/sessions", "cannot know them"},
		{"kernels/wire/a.go", "cellblock/internal/fault", "framing is pure"},
		{"kernels/stream/a.go", "cellblock/kernels/wire", "can know neither"},
		{"kernels/docker/a.go", "cellblock/kernels", ""},
		{"kernels/docker/a.go", "cellblock/kernels/local", "do not know each other"},
		{"kernels/shim/a.go", "cellblock/kernels/shim/channels", ""},
		{"kernels/shim/a.go", "cellblock/kernels", "nothing of the server"},
		{"kernels/shim/a.go", "cellblock/internal/fault", "nothing of the server"},
		{"cmd/cellblock-shim/a.go", "cellblock/kernels/shim", ""},
		{"cmd/cellblock-shim/a.go", "cellblock/kernels", "each kernel pays for"},
		{"cmd/cellblock/a.go", "cellblock/kernels/docker", ""},
		{"cmd/cellblock/a.go", "cellblock/kernels/shim", "never through the shim"},
		{"cmd/cellblock/a_test.go", "cellblock/kernels/shim", ""},
		{"auth/a.go", "cellblock/internal/fault", ""},
		{"auth/a.go", "cellblock/sessions", "who calls"},
		{"internal/x/a.go", "cellblock/auth", "can use nobody"},
		{"examples/x/a.go", "cellblock/kernels", "anybody's client"},
		{"e2e/bench/a.go", "cellblock/kernels/local", ""},
		{"sessions/a.go", "cellblock/kernels/kernelstest", "outside tests"},
		{"sessions/a_test.go", "cellblock/kernels/kernelstest", ""},
		{"novel/a.go", "cellblock/auth", "has no layer"},
		{"kernels/a.go", "github.com/go-zeromq/zmq4", "never in the server"},
		{"kernels/shim/a.go", "github.com/go-zeromq/zmq4/security/null", "only kernels/shim/channels may"},
		{"kernels/shim/channels/a.go", "github.com/go-zeromq/zmq4", ""},
		{"kernels/local/a.go", "github.com/docker/docker/client", "engine's API"},
		{"kernels/docker/a.go", "github.com/docker/docker/client", ""},
		{"kernels/a.go", "github.com/docker/dockerish", ""},
		{"web/a.go", "github.com/golang-jwt/jwt/v5", "one place"},
		{"cmd/cellblock/a.go", "github.com/mark3labs/mcp-go/server", "one face"},
		{"cmd/cellblock/a.go", "github.com/mark3labs/mcp-go/client", ""},
		{"web/a.go", "net/http", ""},
	}
	for _, tt := range tests {
		got := strings.Join(CheckImports(parse(t, tt.file, "package x\nimport _ \""+tt.imported+"\"\n")), "\n")
		if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s importing %s: %q, want %q", tt.file, tt.imported, got, tt.want)
		}
		if got != "" && !strings.HasPrefix(got, tt.file+":2: ") {
			t.Errorf("%q does not say where", got)
		}
	}
}

func TestChecks(t *testing.T) {
	tests := []struct {
		name, file, text string
		rule             func([]File) []string
		want             string // "": nothing broken
	}{
		{"sleep", "a/a.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", CheckSleeps, "a/a.go:3: time.Sleep"},
		{"sleep as a value", "a/a.go", "package a\nimport \"time\"\nvar f = time.Sleep", CheckSleeps, "a/a.go:3"},
		{"sleep in a test", "a/a_test.go", "package a\nimport \"time\"\nfunc f() { time.Sleep(1) }", CheckSleeps, ""},
		{"another's Sleep", "a/a.go", "package a\nfunc f() { bed.Sleep(1) }", CheckSleeps, ""},
		{"package utils", "x/a.go", "package utils", CheckNames, "utils"},
		{"folder common", "x/common/a.go", "package x", CheckNames, "common"},
		{"file helpers.go", "x/helpers_test.go", "package x", CheckNames, "helpers"},
		{"a good name", "x/utilisation.go", "package x", CheckNames, ""},
		{"goroutine in wire", "kernels/wire/a.go", "package wire\nfunc f() { go f() }", CheckPure, "starts a goroutine"},
		{"socket in wire", "kernels/wire/a.go", "package wire\nimport _ \"net\"", CheckPure, "imports net"},
		{"goroutine elsewhere", "kernels/a.go", "package kernels\nfunc f() { go f() }", CheckPure, ""},
		{"function", "a/a.go", "// Package a.\npackage a\nfunc F() {}", CheckDocumented, "F is exported"},
		{"method", "a/a.go", "// Package a.\npackage a\nfunc (t *T[K]) M() {}", CheckDocumented, "M is exported"},
		{"method of a hidden type", "a/a.go", "// Package a.\npackage a\nfunc (t *t) M() {}", CheckDocumented, ""},
		{"type", "a/a.go", "// Package a.\npackage a\ntype T int", CheckDocumented, "T is exported"},
		{"type in a group", "a/a.go", "// Package a.\npackage a\n// Both.\ntype (\nT int\n)", CheckDocumented, "T is exported"},
		{"constant", "a/a.go", "// Package a.\npackage a\nconst a, B = 1, 2", CheckDocumented, "B is exported"},
		{"constants in a group", "a/a.go", "// Package a.\npackage a\n// All.\nconst (\nA = 1\nB = 2\n)", CheckDocumented, ""},
		{"comment behind", "a/a.go", "// Package a.\npackage a\nvar (\nA = 1 // one\n)", CheckDocumented, ""},
		{"command", "a/a.go", "// Command a.\npackage main\nfunc F() {}", CheckDocumented, ""},
		{"a test without races", "a/a_test.go", "//go:build !race\n\npackage a\nfunc TestUnracedLarge(t *testing.T) {}\nfunc large() {}", CheckUnraced, ""},
		{"a test that nothing runs", "a/a_test.go", "//go:build !race\n\npackage a\nfunc TestLarge(t *testing.T) {}", CheckUnraced, "a/a_test.go:4: nothing runs TestLarge"},
		{"a test of some systems without races", "a/a_test.go", "//go:build !windows && !race\n\npackage a\nfunc TestLarge(t *testing.T) {}", CheckUnraced, "TestLarge"},
		{"a test of some systems", "a/a_test.go", "//go:build !windows\n\npackage a\nfunc TestSmall(t *testing.T) {}", CheckUnraced, ""},
		{"a test with races", "a/a_test.go", "//go:build linux && race\n\npackage a\nfunc TestLarge(t *testing.T) {}", CheckUnraced, ""},
		{"no package comment", "a/a.go", "package a", CheckDocumented, "a: no file has a package comment"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := strings.Join(tt.rule(parse(t, tt.file, tt.text)), "\n")
			if tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCheckFinished(t *testing.T) {
	text := "fine\n# TO" + "DO later\nTO" + "DOs and mktemp XX" + "XXXX are fine\n// FIX" + "ME(ada): x\n"
	got := CheckFinished("a.sh", []byte(text))
	if len(got) != 2 || !strings.HasPrefix(got[0], "a.sh:2: ") || !strings.HasPrefix(got[1], "a.sh:4: ") {
		t.Errorf("%q", got)
	}
}

func TestWalkLeavesOutWhatIsNotSource(t *testing.T) {
	root := t.TempDir()
	for _, name := range []string{"a.go", "b/c.go", ".git/d.go", "bin/e.go", "x/testdata/f.go", "_old/g.go"} {
		full := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte("package x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	files, err := Load(root)
	if err != nil || len(files) != 2 || files[0].Path != "a.go" || files[1].Folder != "b" {
		t.Errorf("%v, %v", files, err)
	}
}
