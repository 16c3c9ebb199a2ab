//go:build linux

package shim

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

func TestOnePlusOne(t *testing.T) {
	for _, transport := range []string{"ipc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			b, c := ready(t, func(c *stream.Config) { c.Transport = transport })
			if r := c.run("1+1"); r.result != "2" {
				t.Fatalf("got %q", r.result)
			}
			if e := c.event(stream.EventStarted); e.Incarnation != 1 || e.PID == 0 || e.Time.IsZero() {
				t.Fatalf("started: %+v", e)
			}
			c.must(stream.OpShutdown, 5*time.Second)
			// ipykernel 6 hangs in its own shutdown about once in a hundred times; TERM then ends it.
			if e := c.event(stream.EventExited); !e.Exit.Asked || (e.Exit.Code != 0 && e.Exit.Signal != "SIGTERM") {
				t.Fatalf("exited: %+v", e.Exit)
			}
			<-b.done
			if code := b.cmd.ProcessState.ExitCode(); code != 0 {
				t.Fatalf("exit code %d", code)
			}
			if left, _ := filepath.Glob(filepath.Join(b.config.RunDir, "*")); len(left) != 0 {
				t.Fatalf("left in the run folder: %v", left)
			}
		})
	}
}

// The server's connection is gone in the middle of it all: nothing is lost, nothing comes twice.
func TestResume(t *testing.T) {
	b, c := ready(t, nil)
	id := c.execute("for i in range(10000): print(i, flush=True)")
	c.find("line 2000", func(f frame) bool { return f.printed(`2000\n`) })
	c.close()
	before := c.unread
	after := c.last
	again := b.dial(&after)
	if again.welcome.KernelID != b.config.KernelID || !again.welcome.Alive || again.welcome.Incarnation != 1 || again.welcome.Next <= after {
		t.Fatalf("welcome %+v", again.welcome)
	}
	again.unread = before
	r := again.finish(id)
	checkNumbers(t, r.text["stdout"], 10000, 2000) // 2000 itself was taken by find
}

// checkNumbers checks that text is the numbers below n, each on a line, but for one that the test saw before.
func checkNumbers(t *testing.T, text string, n, but int) {
	t.Helper()
	want := 0
	for line := range strings.Lines(text) {
		if want == but {
			want++
		}
		if line != strconv.Itoa(want)+"\n" {
			t.Fatalf("line %q, want %d", line, want)
		}
		want++
	}
	if want != n {
		t.Fatalf("%d lines, want %d", want, n)
	}
}

// Nobody is connected while more is printed than the journal holds: the head is kept, the end is kept, and what is
// missing is counted to the byte.
func TestJournalOverflowElides(t *testing.T) {
	b, c := ready(t, func(c *stream.Config) { c.JournalBytes, c.TailBytes = 1<<20, 10_000 })
	marker := filepath.Join(b.config.Dir, "done")
	id := c.execute(fmt.Sprintf("for i in range(50000): print('%%09d' %% i, flush=i %% 100 == 0)\nopen(%q, 'w').close()", marker))
	c.find("busy", func(f frame) bool { return f.event == nil && f.msg.Parent.MsgID == id })
	after := c.last
	c.close()
	waitForFile(t, marker)
	again := b.dial(&after)
	r := again.finish(id)
	checkElided(t, r, "stdout", 50000*10, 50000)
	if !strings.HasPrefix(r.text["stdout"], "000000000\n") || !strings.HasSuffix(r.text["stdout"], "000049999\n") {
		t.Fatal("head or tail is missing")
	}
}

// checkElided checks that what arrived of a stream and what was reported as left out are together all of it.
func checkElided(t *testing.T, r result, name string, bytes, lines int64) {
	t.Helper()
	gotBytes, gotLines := int64(len(r.text[name])), int64(strings.Count(r.text[name], "\n"))
	elided := 0
	for _, f := range r.frames {
		if f.event != nil && f.event.Elided != nil && f.event.Elided.Stream == name {
			gotBytes, gotLines = gotBytes+f.event.Elided.Bytes, gotLines+f.event.Elided.Lines
			elided++
		}
		if f.event != nil && f.event.Kind == stream.EventGap {
			t.Fatalf("gap %+v", f.event.Gap)
		}
	}
	if gotBytes != bytes || gotLines != lines || elided == 0 {
		t.Fatalf("%d bytes, %d lines in and out of %d gaps; want %d, %d", gotBytes, gotLines, elided, bytes, lines)
	}
}

func waitForFile(t *testing.T, path string) {
	t.Helper()
	for start := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(path); err == nil {
			return
		}
		if time.Since(start) > 4*patience {
			t.Fatalf("%s does not appear", path)
		}
	}
}

func TestFlood(t *testing.T) {
	size := 300 << 20
	if testing.Short() {
		size = 30 << 20
	}
	// A loop that only prints makes messages of 100 MB. Those up to MaxMessage are in memory as a whole, once.
	b, c := ready(t, func(c *stream.Config) { c.OutputBytes, c.TailBytes, c.MaxMessage = 256<<10, 64<<10, 16<<20 })
	before := residentOf(t, b)
	line := strings.Repeat("x", 1023)
	n := size / 1024
	start := time.Now()
	r := c.run(fmt.Sprintf("s = '%s'\nprint('head')\nfor i in range(%d): print(s)\nprint('tail')", line, n))
	t.Logf("%d MB in %v", size>>20, time.Since(start))
	checkElided(t, r, "stdout", int64(n)*1024+10, int64(n)+2)
	text := r.text["stdout"]
	if !strings.HasPrefix(text, "head\n") || !strings.HasSuffix(text, "x\ntail\n") || len(text) > 400<<10 {
		t.Fatalf("%d bytes, head %.20q", len(text), text)
	}
	if peak := peakOf(t, b); peak-before > 64<<20 {
		t.Fatalf("the shim grew from %d to %d MB", before>>20, peak>>20)
	} else {
		t.Logf("resident: before %d MB, peak %d MB", before>>20, peak>>20)
	}
}

// residentOf returns the resident set of the shim's process.
func residentOf(t testing.TB, b *shimProcess) int64 {
	t.Helper()
	p, err := readProcess(b.cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return p.resident
}

// peakOf returns the most that it ever was.
func peakOf(t testing.TB, b *shimProcess) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	t.Fatal("no VmHWM")
	return 0
}

// A message of 20 MB passes, and its memory is given back.
func TestLargeMessage(t *testing.T) {
	b, c := ready(t, nil)
	r := c.run("from IPython.display import display\ndisplay({'text/plain': 'x' * (20 << 20)}, raw=True)")
	if r.reply["status"] != "ok" {
		t.Fatal(r.reply)
	}
	largest := 0
	for _, f := range r.frames {
		largest = max(largest, f.size)
	}
	if largest < 20<<20 {
		t.Fatalf("largest message %d bytes", largest)
	}
	for start := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		now := residentOf(t, b)
		if now < 14<<20 {
			t.Logf("%d MB resident %v after the message", now>>20, time.Since(start).Round(time.Millisecond))
			return
		}
		if time.Since(start) > 5*time.Second {
			t.Fatalf("%d MB resident", now>>20)
		}
	}
}

func TestInterrupt(t *testing.T) {
	for _, mode := range []string{"signal", "message"} {
		t.Run(mode, func(t *testing.T) {
			_, c := ready(t, func(c *stream.Config) { c.InterruptMode = mode })
			id := c.execute("import time\nprint('asleep', flush=True)\ntime.sleep(600)")
			c.find("asleep", func(f frame) bool { return f.printed("asleep") })
			c.must(stream.OpInterrupt, 0)
			if r := c.finish(id); r.reply["ename"] != "KeyboardInterrupt" {
				t.Fatal(r.reply)
			}
			if r := c.run("6*7"); r.result != "42" {
				t.Fatal("the kernel does not answer")
			}
		})
	}
}

func TestKillChildren(t *testing.T) {
	_, c := ready(t, nil)
	id := c.execute("import subprocess\np = subprocess.Popen(['sh', '-c', 'sleep 600 & setsid sleep 600 & echo up; wait'], stdout=subprocess.PIPE)\n" +
		"p.stdout.readline()\nprint('up', flush=True)\np.wait()")
	c.find("up", func(f frame) bool { return f.printed(`"up`) })
	if r := c.must(stream.OpKillChildren, 0); r.Killed != 3 {
		t.Fatalf("killed %d, want the shell and two sleeps", r.Killed)
	}
	if r := c.finish(id); r.result != "-9" {
		t.Fatalf("result %q, %v", r.result, r.reply)
	}
}

func TestRestart(t *testing.T) {
	for name, grace := range map[string]time.Duration{"politely": 10 * time.Second, "at once": 0} {
		t.Run(name, func(t *testing.T) {
			b, c := ready(t, nil)
			c.run("x = 1\nimport subprocess\nchild = subprocess.Popen(['setsid', 'sleep', '600'])")
			child := c.run("child.pid").result
			first := c.event(stream.EventStarted)
			c.must(stream.OpRestart, grace)
			exited := c.event(stream.EventExited)
			if !exited.Exit.Asked || exited.Incarnation != 1 || exited.PID != first.PID {
				t.Fatalf("exited %+v %+v", exited, exited.Exit)
			}
			if e := c.event(stream.EventStarted); e.Incarnation != 2 || e.PID == first.PID {
				t.Fatalf("started %+v", e)
			}
			c.nudge()
			if r := c.run("'x' in globals()"); r.result != "False" {
				t.Fatalf("a variable of the first kernel: %q", r.result)
			}
			pid, _ := strconv.Atoi(child)
			if p, err := readProcess(pid); err == nil && !p.dead() {
				t.Fatalf("child of the first kernel is still there: %+v", p)
			}
			if files, _ := filepath.Glob(filepath.Join(b.config.RunDir, "*.json")); len(files) != 1 {
				t.Fatalf("connection files %v", files)
			}
		})
	}
}

// A kernel that will not go is killed when the grace is over.
func TestRestartStubborn(t *testing.T) {
	_, c := ready(t, nil)
	c.execute("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('deaf', flush=True)\n" +
		"import time\nwhile True: time.sleep(1)")
	c.find("deaf", func(f frame) bool { return f.printed("deaf") })
	start := time.Now()
	c.must(stream.OpRestart, time.Second)
	if took := time.Since(start); took < time.Second || took > 4*time.Second {
		t.Fatalf("took %v", took)
	}
	if e := c.event(stream.EventExited); e.Exit.Signal != "SIGKILL" || !e.Exit.Asked || e.Exit.OOM {
		t.Fatalf("exited %+v", e.Exit)
	}
	c.nudge()
	if r := c.run("1+1"); r.result != "2" {
		t.Fatal("the new kernel does not answer")
	}
}

func TestKilled(t *testing.T) {
	b, c := ready(t, nil)
	c.execute("import os, signal\nprint('last words', flush=True)\nimport time; time.sleep(0.3)\nos.kill(os.getpid(), signal.SIGKILL)")
	c.find("last words", func(f frame) bool { return f.printed("last words") })
	start := time.Now()
	e := c.event(stream.EventExited)
	if took := time.Since(start); took > time.Second {
		t.Fatalf("reported after %v", took)
	}
	if e.Exit.Signal != "SIGKILL" || e.Exit.Code != -1 || e.Exit.Asked || e.Exit.OOM {
		t.Fatalf("exited %+v", e.Exit)
	}
	if again := b.dial(nil); again.welcome.Alive {
		t.Fatal("a dead kernel is welcomed as alive")
	} else {
		again.send("kernel_info_request", struct{}{})
		if e := again.event(stream.EventDropped); !strings.HasPrefix(e.Dropped.Reason, ReasonNotSent) {
			t.Fatalf("%+v", e.Dropped)
		}
		again.must(stream.OpRestart, time.Second)
		again.nudge()
		if r := again.run("1+1"); r.result != "2" {
			t.Fatal("no kernel after the restart")
		}
	}
}

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
	got := c.run("import resource as r\nprint(*[r.getrlimit(x) for x in (r.RLIMIT_DATA, r.RLIMIT_FSIZE, r.RLIMIT_NOFILE, r.RLIMIT_NPROC)])").text["stdout"]
	want := fmt.Sprintf("(%d, %[1]d) (%d, %[2]d) (%d, %[3]d) (%d, %[4]d)\n", limits.Data, limits.FileSize, limits.Files, limits.PIDs)
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
print(status['SigBlk'].strip(), int(status['SigIgn'], 16) & ~(1 << 12 | 1 << 24), status['NoNewPrivs'].strip())
print(sorted(x for x in os.listdir('/proc/self/fd') if os.path.exists('/proc/self/fd/' + x) and 'listener' in os.readlink('/proc/self/fd/' + x)))
print(oct(os.stat([a for a in open('/proc/self/cmdline').read().split('\0') if a.endswith('.json')][0]).st_mode))
`)
	want := fmt.Sprintf("['HOME', 'ONLY', 'PATH', 'PYTHONDONTWRITEBYTECODE']\nTrue /dev/null 1000 %s\n0000000000000000 0 1\n[]\n0o100600\n", b.config.Dir)
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

func TestStats(t *testing.T) {
	_, c := ready(t, nil)
	c.run("sum(range(10**7))")
	var s *stream.Stats
	for start := time.Now(); s == nil || s.Heartbeat.IsZero(); {
		if s = c.must(stream.OpStats, 0).Stats; time.Since(start) > patience {
			t.Fatal("no heartbeat")
		}
	}
	if s.CPU < 50*time.Millisecond || s.CPU > patience || s.Memory < 20<<20 || s.PIDs < 1 || s.ShimMemory < 1<<20 || s.ShimMemory > 20<<20 {
		t.Fatalf("%+v", s)
	}
	if time.Since(s.Heartbeat) > 10*time.Second {
		t.Fatalf("heartbeat %v ago", time.Since(s.Heartbeat))
	}
}

// SIGTERM ends kernel and shim.
func TestTerminate(t *testing.T) {
	b, c := ready(t, nil)
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if e := c.event(stream.EventExited); !e.Exit.Asked {
		t.Fatalf("exited %+v", e.Exit)
	}
	<-b.done
	if code := b.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
}

// Hang-ups and interrupts meant for the server's terminal do not reach the kernel.
func TestSurvivesTerminal(t *testing.T) {
	b, c := ready(t, nil)
	for _, sig := range []syscall.Signal{syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE} {
		if err := b.cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if r := c.run("1+1"); r.result != "2" {
		t.Fatal("no answer")
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
	if got := r.text["stdout"]; got != "65534 1000 PermissionError PermissionError PermissionError\n" {
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
