package main

import (
	"io"
	"strings"
	"testing"
)

func TestMissingArgumentsAreNamed(t *testing.T) {
	for line, want := range map[string]string{
		"sessions show":       "cellblock sessions show needs SESSION",
		"sessions rm":         "cellblock sessions rm needs SESSION",
		"backup":              "cellblock backup needs DEST",
		"files put keep":      "cellblock files put needs SESSION FILE",
		"files rm keep":       "cellblock files rm needs SESSION PATH",
		"sessions show a b c": `cellblock sessions show does not take the arguments ["a" "b" "c"]`,
		"sessions show a b":   "CELL: \"b\" is no number of a cell",
		"exec a b":            `cellblock exec does not take the arguments ["a" "b"]`,
		"files put a b c d":   `cellblock files put does not take the arguments ["a" "b" "c" "d"]`,
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(line))
		root.SetOut(io.Discard)
		if err := root.Execute(); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
