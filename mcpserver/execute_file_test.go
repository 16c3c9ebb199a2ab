package mcpserver

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// A script's arguments are told as one would type them, and no more of them than a list has room for.
func TestShellWords(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--n", "4", "a/b.csv", "k=v"}, "--n 4 a/b.csv k=v"},
		{[]string{"x y", "it's", "", "$HOME", "*"}, `'x y' 'it'\''s' '' '$HOME' '*'`},
		{[]string{"a\nb", "\x1b[31m'\""}, `$'a\nb' $'\x1b[31m\'"'`},
		{[]string{"größe"}, "'größe'"},
	} {
		if got := shellWords(tt.args); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.args, got, tt.want)
		}
	}
	for _, args := range [][]string{{strings.Repeat("é", 1<<20)}, strings.Fields(strings.Repeat("--more ", 1<<16))} {
		if got := shellWords(args); utf8.RuneCountInString(got) > maxShownArgs+2 || !strings.HasSuffix(got, " …") {
			t.Errorf("%d characters: %.50s", utf8.RuneCountInString(got), got)
		}
	}
}
