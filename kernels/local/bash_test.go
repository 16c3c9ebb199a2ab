//go:build linux

package local

import (
	"context"
	"os"
	"path/filepath"
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
		{"history", "", ""},
		{"f 2; pwd; bash -c 'echo $E'", "f 2 1\n/tmp\ne\n", ""},
		{"echo a; false", "a\n", "1"},
		{"nosuchcommand", "bash: nosuchcommand: command not found\n", "127"},
		{"printf '\\377\\303\\251\\000|'", "\\xff\u00e9\x00|", ""},
		// Nobody is asked, whoever attends the cell, and what asks is told so, or finds the end of its input.
		{"cat; read -p 'name? ' line; echo \"[$line] $?\"", "bash: read: Bash cells cannot be answered: put the value into the code\n[] 1\n", ""},
		{"read line", "bash: read: Bash cells cannot be answered: put the value into the code\n", "1"},
		{"read a b <<<'1 2'; while read -r c; do echo $a $b $c; done < <(echo 3); read -rd '' d <<<4; echo \"$? $d\"", "1 2 3\n1 4\n", ""},
		{"while read -ru3 l; do echo $l; done 3<<<5; exec {fd}<<<6; while read -r -u $fd l; do echo $l; done; read -Q 2>/dev/null", "5\n6\n", "2"},
		{"set -u; { for i in {1..19}; do read; done; } 2>/dev/null; echo went on", "went on\n", ""},
		{"for i in {1..19}; do read; done 2>/dev/null; until read -p 'yes? ' yes && [[ $yes == y ]]; do echo please; done", "bash: read: Bash cells cannot be answered: put the value into the code\n" +
			"bash: read: what asks again and again is ended\n\n", "130 (ended by signal 2)"},
		{"set +u; (while :; do read; done) 2>/dev/null", "\n", "130 (ended by signal 2)"},
		{"for i in {1..20}; do read line </dev/tty; done; echo $?", "1\n", ""},
		{"python3 -c \"import getpass\ntry: getpass.getpass('')\nexcept EOFError: print('asked')\"", "asked\n", ""},
		// What reads keys, as an editor, waits for no end, and is ended, also if it would stay without a terminal.
		{"keys() { python3 -c \"import os, signal, tty\n$1\ntty.setraw(0)\nwhile os.read(0, 1): pass\" </dev/tty; }; keys; echo $?",
			"\npython3 is ended: it waits for keys, and nobody can press any here\nHangup\n129\n", ""},
		{"keys 'signal.signal(signal.SIGHUP, signal.SIG_IGN)'", "\npython3 is ended: it waits for keys, and nobody can press any here\nKilled\n", "137 (ended by signal 9)"},
		// One that works or goes on to write is not, nor is what comes behind one that was.
		{"keys 'tty.setraw(0); from time import *; end = time() + 4\nwhile time() < end: pass\nraise SystemExit(print(\"worked\"))'", "worked\n", ""},
		{"keys 'tty.setraw(0); from time import *\nfor i in range(4): sleep(0.7), print(i, flush=True)\nraise SystemExit'", "0\n1\n2\n3\n", ""},
		{"keys >/dev/null 2>&1; sleep 4; echo slept", "\npython3 is ended: it waits for keys, and nobody can press any here\nslept\n", ""},
		{"unset -f keys", "", ""},
		{"printf '%s\\n' first last >pages; more -5 pages; bash -c 'more <pages'", "first\nlast\nfirst\nlast\n", ""},
		{"for i in 1 2; do echo $i; break; done; return 4", "1\n", "4"},
		{"stty sane 2>/dev/null; echo 'line ends stay'", "line ends stay\n", ""},
		{"tput bold; echo plain", "plain\n", ""},
		// A cell's traps and functions find nothing of what stands between the cells.
		{"trap 'echo failed' ERR", "", ""},
		{"false", "failed\nfailed\n", "1"}, // and that of the cell, as of any file that is sourced
		{"trap - ERR; unset() { echo mine; }; declare() { echo mine; }", "", ""},
		{"echo x; builtin unset -f unset declare", "x\n", ""},
		// What ends the shell ends no more than that.
		{"exit 5", "", "5"},
		{"f 3; pwd", "f 3 1\n/tmp\n", ""},
		{"shopt -s extglob", "", ""},
		{"name=n; g() { [[ $1 == @(a|b) ]] && echo $name; }; alias g='g a'; set -- b; exit", "", ""},
		{"g; echo $1; unalias g; g b; shopt -u extglob; unset -f g", "n\nb\nn\n", ""},
		{"set -euo pipefail; a=([2]=b); false; echo never", "", "1"},
		{"f ${a[2]}; echo after", "f b 1\nafter\n", ""},
		{"kill -KILL $$", "", "the shell was killed by signal 9: variables, functions and directory are lost, files are kept; a new one is there for the next cell"},
		{"echo [$x]; pwd", "[]\n/workspace\n", ""},
		{"exec 3>&1 >/dev/null; echo lost; exec >&3; echo back", "back\n", ""},
		{"unset PROMPT_COMMAND; trap 'echo bye' EXIT; echo quiet", "quiet\n", ""},
	} {
		text, result := k.Try(tt.code)
		failure := ""
		if result.Error != nil {
			failure = result.Error.Value
		}
		if text != tt.text || failure != tt.failure {
			t.Errorf("%s:\n%q, %q", tt.code, text, failure)
		}
	}
}

// Nobody sits at the prompt, whatever a cell makes of it.
func TestBashShowsNoPrompt(t *testing.T) {
	k := kernelstest.Launch(t, bashSetup(t))
	for _, tt := range []struct{ code, text string }{
		{"export PS0='zero ' PS1='one ' PS2='two '; echo set", "set\n"},
		{"PROMPT_COMMAND='echo PC'; PS1='one '; false", ""},
		{"PROMPT_COMMAND=('echo PC' 'echo PD'); echo a", "a\n"},
		{"readonly PS2='two '; echo b", "b\n"},
		{"PS1='one '; kill -INT $$; echo never", "\n"},
		{"PS1='one '; ${nothere?}", "bash: nothere: parameter not set\n"},
		{"PS1='one '; exit", ""},
		{"set -e; shell=$$", ""},
		{"PS1='one '; kill -INT $$", "\n"},
		{"echo $((shell == $$))", "1\n"},
		{"set +e -x; echo traced", "++ echo traced\ntraced\n"},
	} {
		if text, _ := k.Try(tt.code); text != tt.text {
			t.Errorf("%s: %q", tt.code, text)
		}
	}
	if text, _ := k.Try("echo again"); !strings.HasSuffix(text, "\n++ echo again\nagain\n") || strings.Contains(text, "printf") {
		t.Errorf("traced: %q", text)
	}
}

// A shell that ends between two cells is told of, and the next cell has a new one.
func TestBashEndsBetweenCells(t *testing.T) {
	k := kernelstest.Launch(t, bashSetup(t))
	for _, tt := range []struct{ end, says, left string }{
		{"kill -KILL", "the shell was killed by signal 9 before this cell, which did not run: variables, functions and directory are lost, files are kept", "[]"},
		{"kill -HUP", "the shell was killed by signal 1 before this cell, which did not run; a new one has its variables", "[set]"},
	} {
		// What ends it waits for the end of the cell, whose file is removed then, and for the reader of a pipe.
		k.Run("x=set; mkfifo over; { while [ -e $BASH_SOURCE ]; do sleep 0.01; done; " + tt.end + " $$; while kill -0 $$; do sleep 0.01; done; echo >over; } >/dev/null 2>&1 & disown")
		over := filepath.Join(k.Workspace(), "over")
		if _, err := os.ReadFile(over); err != nil {
			t.Fatal(err)
		}
		_, result := k.Try("echo never")
		if result.Error == nil || !strings.HasPrefix(result.Error.Value, tt.says) {
			t.Errorf("%s: %+v", tt.end, result.Error)
		}
		if text := k.Run("echo [$x]; rm over"); text != tt.left+"\n" {
			t.Errorf("%s: %q", tt.end, text)
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
