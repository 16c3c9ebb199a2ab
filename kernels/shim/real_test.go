//go:build linux

package shim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

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
			_ = b.cmd.Process.Signal(syscall.SIGTERM)
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
	id := c.execute(fmt.Sprintf("for i in range(200000): print('%%09d' %% i, flush=i %% 100 == 0)\nopen(%q, 'w').close()", marker))
	c.find("busy", func(f frame) bool { return f.event == nil && f.msg.Parent.MsgID == id })
	after := c.last
	c.close()
	waitForFile(t, marker)
	again := b.dial(&after)
	r := again.finish(id)
	checkElided(t, r, "stdout", 200000*10, 200000)
	if !strings.HasPrefix(r.text["stdout"], "000000000\n") || !strings.HasSuffix(r.text["stdout"], "000199999\n") {
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

// A flood never grows memory without bound.
func TestFlood(t *testing.T) {
	size := 300 << 20
	b, c := ready(t, func(c *stream.Config) { c.OutputBytes, c.TailBytes = 256<<10, 64<<10 })
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
	grown(t, b, before, 48<<20)
}

// A loop that only prints makes messages of 100 MB, and one print can make a larger one. With the limits as they come it
// passes as fast as it is fetched, what does not is counted, and the shim never holds much of it.
func TestLargePrints(t *testing.T) {
	for name, code := range map[string]string{
		"a loop":    "s = 'x' * 1023\nfor i in range(200 << 10): print(s)",
		"one print": "print(('x' * 1023 + '\\n') * (200 << 10), end='')",
		"one message": `import sys
content = {"name": "stdout", "text": ("x" * 1023 + "\n") * (200 << 10)}
_ = sys.stdout.session.send(sys.stdout.pub_thread, "stream", content, parent=sys.stdout.parent_header)`,
	} {
		t.Run(name, func(t *testing.T) {
			b, c := ready(t, nil)
			before := residentOf(t, b)
			start := time.Now()
			id := c.execute(code)
			var passed, left int64
			for idle := false; !idle; {
				f := c.next()
				if f.event != nil && f.event.Elided != nil {
					left += f.event.Elided.Bytes
				}
				if f.event != nil || f.seq == 0 || f.msg.Parent.MsgID != id {
					continue
				}
				var content struct {
					Text  string
					State string `json:"execution_state"`
				}
				_ = json.Unmarshal(f.msg.Content, &content)
				passed += int64(len(content.Text))
				idle = content.State == "idle"
			}
			t.Logf("%d MB passed, in %v", passed>>20, time.Since(start))
			if passed+left != 200<<20 || passed < 20<<20 {
				t.Errorf("%d bytes passed, %d were left out", passed, left)
			}
			grown(t, b, before, 64<<20)
		})
	}
}

// grown fails if the shim ever grew by more than most.
func grown(t *testing.T, b *shimProcess, before, most int64) {
	t.Helper()
	peak := peakOf(t, b)
	t.Logf("resident: before %d MB, peak %d MB", before>>20, peak>>20)
	if peak-before > most {
		t.Errorf("grew by more than %d MB", most>>20)
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

// What is larger than the journal is not given up for what comes after it, nor for another such that comes at once.
func TestLargerThanTheJournal(t *testing.T) {
	_, c := ready(t, func(c *stream.Config) { c.JournalBytes, c.Waits = 1<<20, true })
	r := c.run(`from IPython.display import display
for n in 40, 50, 10, 10, 10, 10, 40: display({'text/plain': 'x' * (n << 15)}, raw=True)
for i in range(100): print(i, flush=True)`)
	var sizes []int
	for _, f := range r.frames {
		if f.event != nil && (f.event.Gap != nil || f.event.Elided != nil) {
			t.Errorf("lost: %+v", f.event)
		}
		if f.size > 1<<18 {
			sizes = append(sizes, f.size>>15)
		}
	}
	if !slices.Equal(sizes, []int{40, 50, 10, 10, 10, 10, 40}) || r.reply["status"] != "ok" {
		t.Errorf("%v times 32 KB, %v", sizes, r.reply)
	}
}

// Output that waits for its reader holds up no end of its kernel.
func TestEndWhileOutputWaits(t *testing.T) {
	_, c := ready(t, func(c *stream.Config) { c.JournalBytes, c.Waits = 1<<20, true })
	c.noAcks = true
	large := `from IPython.display import display
for n in range(4): display({'text/plain': 'x' * (3 << 20)}, raw=True)
`
	took := func(end func()) time.Duration {
		c.find("a large output", func(f frame) bool { return f.size > 1<<20 })
		start := time.Now()
		end()
		return time.Since(start)
	}
	c.execute(large + "import time; time.sleep(100)")
	if got := took(func() { c.call(stream.OpRestart, time.Second) }); got > fetchTime/2 {
		t.Errorf("a restart took %v", got)
	}
	c.noAcks = false
	c.nudge()
	c.noAcks = true
	c.execute(large + "import os; os.kill(os.getpid(), 9)")
	if got := took(func() { c.event(stream.EventExited) }); got > fetchTime/2 {
		t.Errorf("a kernel's end was told after %v", got)
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

// What a cell's process has said is not forgotten for a request that is no cell's.
func TestLastWordsOutliveASilentRequest(t *testing.T) {
	b, c := ready(t, nil)
	end := filepath.Join(t.TempDir(), "end")
	c.execute(fmt.Sprintf("import os, time\n_ = os.write(2, b'out of luck\\n')\nwhile not os.path.exists(%q): time.sleep(0.01)\nos._exit(3)", end))
	c.find("what it says", func(f frame) bool { return f.printed("out of luck") })
	again := b.dial(nil)
	again.send("execute_request", map[string]any{"code": "", "silent": true, "store_history": false, "allow_stdin": false, "stop_on_error": false})
	if err := os.WriteFile(end, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if e := again.event(stream.EventExited); e.Exit.Code != 3 || !strings.Contains(e.Exit.Output, "out of luck") {
		t.Fatalf("exited %+v", e.Exit)
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

func TestStats(t *testing.T) {
	_, c := ready(t, nil)
	c.run("sum(range(10**7))")
	s := c.must(stream.OpStats, 0).Stats
	if s.CPU < 50*time.Millisecond || s.CPU > patience || s.Memory < 20<<20 || s.ShimMemory < 1<<20 || s.ShimMemory > 20<<20 {
		t.Fatalf("%+v", s)
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
