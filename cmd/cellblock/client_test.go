package main

import (
	"strings"
	"testing"
)

func TestHelpNamesOneDefaultOfTheURL(t *testing.T) {
	t.Setenv("CELLBLOCK_URL", "http://elsewhere:1/mcp")
	var o connection
	cmd := newVersion()
	o.addFlags(cmd.Flags())
	if help := cmd.Flags().FlagUsages(); strings.Contains(help, "elsewhere") {
		t.Errorf("help: %s", help)
	}
	if o.url != "http://elsewhere:1/mcp" {
		t.Errorf("the address is %q", o.url)
	}
}
