package main

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"cellblock/kernels/kernelstest"
)

// Where only one of the two programs was replaced, whoever starts them is told.
func TestShimOfAnotherBuildIsTold(t *testing.T) {
	build := func(commit string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: commit}}}
	}
	const a, b = "0123456789abcdef", "fedcba9876543210"
	for _, tt := range []struct{ own, shim, want string }{
		{a, a, ""},
		{a, b, "cellblock-shim is of commit fedcba987654, and this program of 0123456789ab"},
		{"", b, ""},
		{a, "", ""},
	} {
		if got := otherBuild(build(tt.own), build(tt.shim)); !strings.HasPrefix(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%q beside %q: %q", tt.shim, tt.own, got)
		}
	}
}

// One that was cut off when it was copied is there, and starts nothing.
func TestShimThatIsNotWholeIsTold(t *testing.T) {
	whole := kernelstest.BuildShim(t)
	content, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	part := filepath.Join(t.TempDir(), "cellblock-shim")
	if err := os.WriteFile(part, content[:len(content)/20], 0o755); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{whole: "", part: "not copied whole"} {
		f := doctor{cfg: &Config{Shim: path}}.shim(t.Context())
		if told := strings.Join(f.notes, " "); f.err != nil || (told == "") != (want == "") || !strings.Contains(told, want) {
			t.Errorf("%s: %v, %q", path, f.err, told)
		}
	}
}
