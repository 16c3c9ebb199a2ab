package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestPutPath(t *testing.T) {
	for _, tt := range []struct{ name, to, want string }{
		{"/home/me/a.csv", "", "a.csv"}, {"a.csv", "b.csv", "b.csv"}, {"x/a.csv", "data/", "data/a.csv"}, {"-", "b", "b"}, {"-", "", ""}, {"-", "data/", ""},
	} {
		if got, err := putPath(tt.name, tt.to); got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("%s %s: %q %v", tt.name, tt.to, got, err)
		}
	}
}

func TestEscapePath(t *testing.T) {
	for name, want := range map[string]string{"a b/c#.csv": "a%20b/c%23.csv", "/workspace/a": "a", "/workspace": "", "/workspace2/a": "workspace2/a", "./a": "a",
		"100%": "100%25", "/": ""} {
		if got := escapePath(name); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestPrintFiles(t *testing.T) {
	var stdout, stderr bytes.Buffer
	list := fileList{TotalFiles: 9, Files: []fileRow{{Path: "a", Type: "file", Size: 12}, {Path: "d", Type: "folder"}, {Path: "l", Type: "link", Target: "/etc"}, {Path: "p", Type: "special"}}}
	if err := printFiles(&stdout, &stderr, list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12 ", "d/\n", "l -> /etc", "p (special)"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("no %q in\n%s", want, stdout.String())
		}
	}
	if !strings.Contains(stderr.String(), "3 of 9 files") {
		t.Error(stderr.String())
	}
}
