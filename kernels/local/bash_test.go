//go:build linux

package local

import (
	"context"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

func bashSetup(t *testing.T) kernelstest.Setup {
	spec, folders := kernelstest.Bash(t)
	return kernelstest.Setup{Kernelspec: spec, New: func(t *testing.T, dir string) kernels.Provisioner {
		return newLocal(t, dir, withShim(t), func(c *Config) { c.ReadOnlyPaths = append(c.ReadOnlyPaths, folders...) })
	}}
}

func TestBashKernel(t *testing.T) {
	kernelstest.TestKernel(t, bashSetup(t), kernelstest.BashDialect)
}

// One shell runs these cells, one after the other.
func TestBashCells(t *testing.T) {
	k := kernelstest.Launch(t, bashSetup(t))
	for _, tt := range []struct{ code, text, failure string }{
		{"f() { echo \"f $1 $x\"; }; x=1; cd /tmp; export E=e", "", ""},
		{"f 2; pwd; bash -c 'echo $E'", "f 2 1\n/tmp\ne\n", ""},
		{"echo a; false", "a\n", "1"},
		{"nosuchcommand", "bash: nosuchcommand: command not found\n", "127"},
		{"printf '\\377\\303\\251\\000|'", "\\xff\u00e9\x00|", ""},
		{"cat; read line; echo \"[$line]\"", "[]\n", ""}, // nobody is asked
		{"for i in 1 2; do echo $i; break; done; return 4", "1\n", "4"},
		{"stty sane 2>/dev/null; echo 'line ends stay'", "line ends stay\n", ""},
		{"tput bold; echo plain", "plain\n", ""},
		// What ends the shell ends no more than that.
		{"exit 5", "", "5"},
		{"f 3; pwd", "f 3 1\n/tmp\n", ""},
		{"set -euo pipefail; a=([2]=b); false; echo never", "", "1"},
		{"f ${a[2]}; echo after", "f b 1\nafter\n", ""},
		{"kill -KILL $$", "", "it was killed by signal 9: variables, functions and directory are lost, files are kept"},
		{"echo [$x]; pwd", "[]\n/workspace\n", ""},
		{"exec 3>&1 >/dev/null; echo lost; exec >&3; echo back", "back\n", ""},
		{"unset PROMPT_COMMAND; trap 'echo bye' EXIT; PS1='$ '; echo quiet", "quiet\n", ""},
		{"PS1=; echo still quiet", "still quiet\n", ""},
	} {
		text, result := k.Try(tt.code)
		failure := ""
		if result.Error != nil {
			failure = result.Error.Value
		}
		if strings.ReplaceAll(text, "$ ", "") != tt.text || failure != tt.failure {
			t.Errorf("%s:\n%q, %q", tt.code, text, failure)
		}
	}
}

func TestBashLoses(t *testing.T) {
	k := kernelstest.Launch(t, bashSetup(t))
	if text := k.Run("head -c 20000000 /dev/zero | tr '\\0' z; echo end"); len(text) != 20_000_004 || !strings.HasSuffix(text, "zend\n") {
		t.Errorf("%d bytes came", len(text))
	}
}

// A program that ignores interrupts is ended, and the shell lives.
func TestBashEndsWhatIgnoresInterrupts(t *testing.T) {
	k := kernelstest.Launch(t, bashSetup(t))
	k.Run("x=kept")
	e := k.Begin("bash -c 'trap \"\" INT TERM; echo begun; for i in {1..1000}; do sleep 0.1; done'; echo \"status $?\"", "begun")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := k.Interrupt(ctx); err != nil {
		t.Fatal(err)
	}
	select {
	case <-e.Done():
	case <-ctx.Done():
		t.Fatal("it goes on")
	}
	if text := k.Run("echo $x"); text != "kept\n" {
		t.Errorf("%q", text)
	}
}
