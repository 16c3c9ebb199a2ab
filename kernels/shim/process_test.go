//go:build linux

package shim

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

func TestKernelThatDoesNotComeUp(t *testing.T) {
	tests := map[string]struct {
		argv   []string
		dir    string
		want   stream.Exit
		failed string
	}{
		"exits":            {argv: []string{"/bin/sh", "-c", "echo boom >&2; exit 3"}, want: stream.Exit{Code: 3, Output: "boom\n"}},
		"found in PATH":    {argv: []string{"sh", "-c", "printf '%s' \"$0\"; exit 4", "{connection_file}.x"}, want: stream.Exit{Code: 4}},
		"unknown":          {argv: []string{"/no/such/kernel"}, want: stream.Exit{Code: -1}, failed: "/no/such/kernel: no such file or directory"},
		"not in PATH":      {argv: []string{"no-such-kernel"}, want: stream.Exit{Code: -1}, failed: "no-such-kernel: no such command in PATH"},
		"not a program":    {argv: []string{"/etc/passwd"}, want: stream.Exit{Code: -1}, failed: "/etc/passwd: permission denied"},
		"no folder":        {argv: []string{"true"}, dir: "/no/such/folder", want: stream.Exit{Code: -1}, failed: "the kernel's working directory"},
		"killed by signal": {argv: []string{"/bin/sh", "-c", "kill -SEGV $$"}, want: stream.Exit{Code: -1, Signal: "SIGSEGV"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			config := testConfig(t)
			config.Argv = tt.argv
			if tt.dir != "" {
				config.Dir = tt.dir
			}
			b := startBinary(t, config)
			c := b.dial(nil)
			got := *c.event(stream.EventExited).Exit
			if !strings.Contains(got.Failed, tt.failed) || (got.Failed == "") != (tt.failed == "") {
				t.Fatalf("failed %q", got.Failed)
			}
			if strings.Contains(name, "PATH") && tt.failed == "" {
				if !strings.HasPrefix(got.Output, config.RunDir) || !strings.HasSuffix(got.Output, ".json.x") {
					t.Fatalf("output %q", got.Output)
				}
				got.Output = ""
			}
			got.Failed = ""
			if got != tt.want {
				t.Fatalf("exit %+v", got)
			}
		})
	}
}

// The kernel's own output is bounded, and its end is what counts.
func TestConsoleIsBounded(t *testing.T) {
	config := testConfig(t)
	config.Argv = []string{"/bin/sh", "-c", "seq 200000; echo the end; exit 1"}
	c := startBinary(t, config).dial(nil)
	got := c.event(stream.EventExited).Exit.Output
	if len(got) > consoleSize || !strings.HasSuffix(got, "200000\nthe end\n") {
		t.Fatalf("%d bytes, %q", len(got), got[max(0, len(got)-40):])
	}
}

func TestRlimits(t *testing.T) {
	limits := stream.Rlimits{Data: 2 << 30, FileSize: 123 << 20, Files: 777, PIDs: 5000}
	b, c := ready(t, func(c *stream.Config) { c.Rlimits = limits })
	got := c.run("import resource as r\nprint(*[r.getrlimit(x) for x in (r.RLIMIT_DATA, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_NPROC, r.RLIMIT_CORE)])").text["stdout"]
	want := fmt.Sprintf("(%d, %[1]d) (%d, %[2]d) (%d, %[3]d) (%d, %[4]d) (0, 0)\n", limits.Data, limits.FileSize, limits.Files, limits.PIDs)
	if got != want {
		t.Fatalf("kernel has %s, want %s", got, want)
	}
	for _, r := range []int{unix.RLIMIT_DATA, unix.RLIMIT_FSIZE, unix.RLIMIT_NPROC} {
		var own, shims unix.Rlimit
		if err := unix.Prlimit(b.cmd.Process.Pid, r, nil, &shims); err != nil {
			t.Fatal(err)
		}
		if unix.Getrlimit(r, &own) != nil || own.Max != shims.Max {
			t.Fatalf("limit %d of the shim is %d, was %d", r, shims.Max, own.Max)
		}
	}
}

// What the kernel's process is like: nothing inherited but what the Config names.
func TestKernelProcess(t *testing.T) {
	b, c := ready(t, func(c *stream.Config) { c.Env = append(c.Env, "ONLY=this") })
	r := c.run(`import os, signal
env = dict(os.environ)
for k in ('JPY_PARENT_PID', 'PYDEVD_USE_FRAME_EVAL', 'TERM', 'CLICOLOR', 'CLICOLOR_FORCE', 'FORCE_COLOR', 'PAGER', 'GIT_PAGER', 'MPLBACKEND', 'COLUMNS', 'LINES', 'LC_CTYPE'): env.pop(k, None)
status = dict(l.split(':', 1) for l in open('/proc/self/status'))
print(sorted(env))
print(os.getsid(0) == os.getpid(), os.readlink('/proc/self/fd/0'), open('/proc/self/oom_score_adj').read().strip(), os.getcwd())
print(status['SigBlk'].strip(), int(status['SigIgn'], 16) & ~(1 << 12 | 1 << 24 | 3 << 31), status['NoNewPrivs'].strip())
print(sorted(x for x in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + x) and 'listener' in os.readlink('/proc/self/fd/' + x)))
print(oct(os.stat([a for a in open('/proc/self/cmdline').read().split('\0') if a.endswith('.json')][0]).st_mode))
`)
	want := fmt.Sprintf("['HOME', 'ONLY', 'PATH', 'PYTHONDONTWRITEBYTECODE']\nTrue /dev/null 900 %s\n0000000000000000 0 1\n[]\n0o100600\n", b.config.Dir)
	if r.text["stdout"] != want {
		t.Fatalf("got\n%s%v\nwant\n%s", r.text["stdout"], r.reply, want)
	}
}

// Signals that the shim was started without, the kernel has.
func TestIgnoredSignalsAreReset(t *testing.T) {
	_, c := ready(t, nil, "/bin/sh", "-c", `trap '' INT QUIT HUP; exec "$@"`, "sh")
	got := c.run("import signal\nsignal.getsignal(signal.SIGQUIT) == signal.SIG_DFL, int([l for l in open('/proc/self/status') if l.startswith('SigIgn')][0].split()[1], 16) & 7").result
	if got != "(True, 0)" {
		t.Fatal(got)
	}
}

// User code of the same uid cannot look into the shim.
func TestUndumpable(t *testing.T) {
	kernelstest.Need(t, os.Geteuid() == 0, "root, to become somebody else,")
	_, c := ready(t, func(c *stream.Config) {
		if err := os.Chown(c.Dir, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all", "--inh-caps=-all")
	r := c.run(`import os
def tried(f):
    try: return repr(f())[:80]
    except OSError as e: return type(e).__name__
p = '/proc/%d/' % os.getppid()
print(os.getuid(), open('/proc/self/oom_score_adj').read().strip(), tried(lambda: open(p + 'environ').read()), tried(lambda: open(p + 'mem', 'rb').read(1)), tried(lambda: os.listdir(p + 'fd')))
`)
	if got := r.text["stdout"]; got != "65534 900 PermissionError PermissionError PermissionError\n" {
		t.Fatal(got)
	}
	if s := c.must(stream.OpStats, 0).Stats; s.ShimMemory == 0 || s.Memory == 0 {
		t.Fatalf("undumpable, the shim cannot see itself: %+v", s)
	}
}

// The provisioner's own listening socket, which the kernel does not get.
func TestListenFD(t *testing.T) {
	kernelstest.NeedPython(t)
	c := testConfig(t)
	c.Argv = []string{"/bin/sh", "-c", "ls -l /proc/self/fd; sleep 0.1"}
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: strings.TrimPrefix(c.Listen, "unix:"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	file, err := ln.File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	served := c
	served.Listen = "fd:3"
	startProcess(t, served, func(cmd *exec.Cmd) { cmd.ExtraFiles = []*os.File{file} })
	if e := dialShim(t, c, nil).event(stream.EventExited); strings.Contains(e.Exit.Output, "socket:") {
		t.Fatalf("the kernel has a socket:\n%s", e.Exit.Output)
	}
}

// What cannot work is told by an exit code of its own.
func TestBadStart(t *testing.T) {
	for name, tt := range map[string]struct {
		config string
		args   []string
		code   int
	}{
		"no config":  {"", nil, ExitConfig},
		"not JSON":   {"{", nil, ExitConfig},
		"arguments":  {"{}", []string{"serve"}, ExitUsage},
		"no folder":  {`{"kernel_id":"x","listen":"unix:/no/such/folder/s","argv":["x"],"dir":"/","run_dir":"/tmp"}`, nil, ExitSystem},
		"no such fd": {`{"kernel_id":"x","listen":"fd:77","argv":["x"],"dir":"/","run_dir":"/tmp"}`, nil, ExitSystem},
		"bad launch": {"", []string{LaunchArg, "{"}, exitNotLaunched},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command(kernelstest.BuildShim(t), tt.args...)
			cmd.Env = []string{stream.ConfigEnv + "=" + tt.config}
			out, _ := cmd.CombinedOutput()
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Fatalf("exit code %d, want %d; wrote %s", code, tt.code, out)
			}
		})
	}
}
