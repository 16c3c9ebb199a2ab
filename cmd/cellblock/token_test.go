package main

import (
	"io"
	"path/filepath"
	"strings"
	"testing"
)

func TestTokenWarnsOfANewInstallation(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "typo")
	for _, want := range []bool{true, false} { // the second time it is there
		var stderr strings.Builder
		root := newRoot()
		root.SetArgs([]string{"token", "--data-dir", dir})
		root.SetOut(io.Discard)
		root.SetErr(&stderr)
		if err := root.Execute(); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(stderr.String(), "and one was made"); got != want {
			t.Errorf("warned %t, want %t: %q", got, want, stderr.String())
		}
	}
}
