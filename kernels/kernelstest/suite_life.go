package kernelstest

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cellblock/kernels"
)

// lifeCases are about kernels that live.
var lifeCases = []suiteCase{
	{"launch and 1+1", plain, testLaunch},
	{"state between cells", inner, testState},
	{"two kernels at once do not meet", carried, testTwo},
	{"attach after a restart in the middle of 10,000 prints loses nothing", carried, testAttach},
	{"list", plain, testList},
	{"item 8: interrupt stops a sleep and keeps the variables", carried, testInterrupt},
	{"item 8: interrupt stops a busy loop", real | inner, testInterruptBusy},
	{"item 8: interrupt stops a cell that awaits", real | inner, testInterruptAwait},
	{"item 8: a cell that awaits hears the first interrupt, always", real | inner, testInterruptAwaitAnytime},
	{"a cell that awaits leaves the signals' wakeup descriptor as it was", real | inner, testWakeupDescriptor},
	{"code may run cells of its own, also in threads", real | inner, testCellInCell},
	{"item 8: an interrupt is heard at any moment of a cell", real | inner, testInterruptAnytime},
	{"item 8: kill children", plain, testKillChildren},
	{"item 8: restart in place stops what nothing else stops", carried, testRestart},
	{"statistics", plain, testStats},
	{"what a cell used", plain, testUsed},
	{"timers are as exact as everywhere", real, testTimers},
}

func testLaunch(f *suite) {
	f.must(f.p.Health(f.ctx()))
	b := f.launch()
	b.want("1+1", "2")
	ref := b.handle.Ref()
	if ref.Provisioner != f.p.Name() || ref.KernelID != b.spec.ID || ref.Version == 0 {
		f.Errorf("ref %+v", ref)
	}
	select {
	case <-b.handle.Exited():
		f.Error("exited")
	default:
	}
}

func testState(f *suite) {
	b := f.launch()
	b.python(f.say("x = 41", "set x 42"))
	b.want(f.say("x + 1", "get x"), "42")
}

func testTimers(f *suite) {
	f.launch().want("int(open('/proc/self/timerslack_ns').read())", "50000")
}

func testTwo(f *suite) {
	boxes := make([]*box, 2)
	handles := make([]kernels.Handle, 2)
	specs := []kernels.Spec{f.spec(), f.spec()}
	errs := make([]error, 2)
	var wg sync.WaitGroup
	for i := range boxes {
		wg.Go(func() { handles[i], errs[i] = f.p.Launch(f.ctx(), specs[i]) })
	}
	wg.Wait()
	for i := range boxes {
		f.must(errs[i])
		boxes[i] = &box{f: f, spec: specs[i], handle: handles[i]}
		f.Cleanup(boxes[i].stop)
	}
	for i, b := range boxes {
		b.client = f.connect(b.handle, kernels.Options{KernelID: b.spec.ID})
		f.must(b.client.Ready(f.ctx()))
		n := strconv.Itoa(i)
		b.python(f.say("x = "+n+"; open('mine', 'w').write('"+n+"')", "set x "+n))
	}
	for i, b := range boxes {
		b.want(f.say("x", "get x"), strconv.Itoa(i))
		b.want(f.say("print(open('mine').read())", "get x"), strconv.Itoa(i))
	}
}

func testAttach(f *suite) {
	const prints = 10000
	b := f.launch()
	b.python(f.say("x = 7", "set x 7"))
	n := strconv.Itoa(prints)
	e := b.execute(f.say("for i in range("+n+"): print(i, flush=True)", "count "+n))
	var got strings.Builder
	for strings.Count(got.String(), "\n") < prints/10 {
		out, err := e.Next(f.ctx())
		f.must(err)
		got.WriteString(outputText(out))
	}
	f.must(b.client.Close())
	ref, err := json.Marshal(b.handle.Ref())
	f.must(err)
	f.must(b.handle.Close())
	f.must(f.p.Close())

	f.p = f.provisioner()
	var again kernels.Ref
	f.must(json.Unmarshal(ref, &again))
	b.handle, err = f.p.Attach(f.ctx(), again)
	f.must(err)
	f.Cleanup(b.stop) // before its provisioner is closed
	// The client took what was returned last for dealt with only when Next was called again: it comes twice.
	b.client = f.connect(b.handle, kernels.Options{Adopt: []string{e.ID()}})
	adopted, _ := b.client.Execution(e.ID())
	repeated, err := adopted.Next(f.ctx())
	if err == io.EOF || !strings.HasSuffix(got.String(), outputText(repeated)) {
		f.Fatalf("went on with %q, %v, not with what was not acknowledged", outputText(repeated), err)
	}
	got.WriteString(b.rest(adopted))

	var want strings.Builder
	for i := range prints {
		want.WriteString(strconv.Itoa(i) + "\n")
	}
	if got.String() != want.String() {
		f.Errorf("%d bytes, want %d: lost, twice or out of order: %s", got.Len(), want.Len(), firstDifference(got.String(), want.String()))
	}
	if r := adopted.Result(); r.Status != kernels.StatusOK {
		f.Errorf("result %+v", r)
	}
	b.want(f.say("x", "get x"), "7")
}

// firstDifference quotes two texts at the place where they part.
func firstDifference(got, want string) string {
	n := 0
	for n < min(len(got), len(want)) && got[n] == want[n] {
		n++
	}
	from := max(0, n-40)
	return fmt.Sprintf("at byte %d: %q instead of %q", n, got[from:min(len(got), n+80)], want[from:min(len(want), n+40)])
}

func testList(f *suite) {
	if ids := f.ids(f.p); len(ids) != 0 {
		f.Fatalf("a new installation lists %v", ids)
	}
	a, b := f.start(), f.start()
	want := []string{a.spec.ID, b.spec.ID}
	slices.Sort(want)
	for name, p := range map[string]kernels.Provisioner{"the same": f.p, "another": f.provisioner()} {
		if ids := slices.Sorted(slices.Values(f.ids(p))); !slices.Equal(ids, want) {
			f.Errorf("%s provisioner lists %v, want %v", name, ids, want)
		}
	}
	f.must(a.handle.Stop(f.ctx(), 0))
	if ids := f.ids(f.p); !slices.Equal(ids, []string{b.spec.ID}) {
		f.Errorf("after a stop: %v", ids)
	}
}

func testInterrupt(f *suite) {
	b := f.launch()
	b.python(f.say("x = 1", "set x 1"))
	e := b.execute(f.say("import time\nprint('go', flush=True)\ntime.sleep(1000)", "print go\nsleep 1000s"))
	b.until(e, "go")
	b.interrupted(e)
	b.want(f.say("x", "get x"), "1")
}

func testInterruptBusy(f *suite) {
	b := f.launch()
	e := b.execute("print('go', flush=True)\nwhile True: pass")
	b.until(e, "go")
	b.interrupted(e)
	b.want("1+1", "2")
}

func testInterruptAwait(f *suite) {
	b := f.launch()
	for _, code := range []string{"await asyncio.sleep(1000)", "await asyncio.sleep(0)\nwhile True: pass"} {
		e := b.execute("import asyncio\nprint('go', flush=True)\n" + code)
		b.until(e, "go")
		begun := time.Now()
		f.must(b.client.Interrupt(f.ctx()))
		b.rest(e)
		if r := e.Result(); r.Status != kernels.StatusError || time.Since(begun) > 5*time.Second {
			f.Errorf("%q: %v, %+v", code, time.Since(begun), r)
		}
	}
	b.want("1+1", "2")
}

// testInterruptAwaitAnytime interrupts cells that begin to wait, and sends a signal by a thread: as for one that comes just
// before the wait, Python notes it, and the main thread's wait goes on.
func testInterruptAwaitAnytime(f *suite) {
	b := f.launch()
	for i := range 200 {
		e := b.execute("import asyncio; await asyncio.sleep(3600)")
		<-e.Begun()
		<-time.After(time.Duration(i) * 20 * time.Microsecond)
		f.must(b.client.Interrupt(f.ctx()))
		b.rest(e)
		f.wantInterrupted(e)
	}
	e := b.execute(`import asyncio, signal, threading, time
def send():
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    time.sleep(0.3)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=send).start()
await asyncio.sleep(3600)`)
	b.rest(e)
	f.wantInterrupted(e)
	b.want("1+1", "2")
}

// testWakeupDescriptor looks at the descriptor before, in and after cells that await: there is one, which the user's own comes
// before, and which a handler of the loop's may replace.
func testWakeupDescriptor(f *suite) {
	b := f.launch()
	b.python(`import asyncio, os, signal, socket
def wakeup():
    fd = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(fd)
    return fd
files = len(os.listdir("/proc/self/fd"))`)
	b.want("await asyncio.sleep(0); print(wakeup() != -1)", "True")
	b.want("print(wakeup(), len(os.listdir('/proc/self/fd')) - files)", "-1 0")
	b.python("mine, _ = socket.socketpair(); mine.setblocking(False); _ = signal.set_wakeup_fd(mine.fileno())")
	b.want("await asyncio.sleep(0); print(wakeup() == mine.fileno())", "True")
	b.want("print(signal.set_wakeup_fd(-1) == mine.fileno())", "True")
	b.want(`came = []
asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, came.append, 1)
await asyncio.sleep(0); print(wakeup() != -1)`, "True")
	b.python("loops = wakeup()\nos.kill(os.getpid(), signal.SIGUSR1)")
	b.want("await asyncio.sleep(0); print(wakeup() == loops, loops != -1)", "True True")
	b.want("while not came: await asyncio.sleep(0.01)\nprint(came)", "[1]")
}

func testCellInCell(f *suite) {
	b := f.launch()
	b.want(`import threading
thread = threading.Thread(target=lambda: get_ipython().run_cell("print('in a thread')"))
thread.start(); thread.join()`, "in a thread")
	b.want(`import os, signal
signal.signal(signal.SIGINT, lambda *_: print("own handler"))
_ = get_ipython().run_cell("os.kill(os.getpid(), signal.SIGINT)")`, "own handler")
	b.want("1+1", "2")
}

// testInterruptAnytime interrupts cells that have just begun, and cells that are about to end. Python itself may begin to
// sleep just after a signal and sleep on: that one is asked twice, as users do, but most hear it the first time.
func testInterruptAnytime(f *suite) {
	b := f.launch()
	again := 0
	for i := range 60 {
		delay := time.Duration(i) * 50 * time.Microsecond
		sleeping := b.execute("import time; time.sleep(1000)")
		<-sleeping.Begun()
		<-time.After(delay)
		f.must(b.client.Interrupt(f.ctx()))
		select {
		case <-sleeping.Done():
			b.rest(sleeping)
			f.wantInterrupted(sleeping)
		case <-time.After(time.Second):
			again++
			b.interrupted(sleeping)
		}
		brief := b.execute("1+1")
		<-brief.Begun()
		<-time.After(delay)
		f.must(b.client.Interrupt(f.ctx()))
		b.rest(brief)
		if r := brief.Result(); r.Reason != "" || r.Status != kernels.StatusOK {
			f.wantInterrupted(brief)
		}
	}
	if again > 3 {
		f.Errorf("%d of 60 cells did not hear the first interrupt", again)
	}
	b.want("1+1", "2")
}

// interrupted interrupts an execution and wants it to end by that.
func (b *box) interrupted(e *kernels.Execution) {
	b.f.Helper()
	begun := time.Now()
	b.f.must(b.client.Interrupt(b.f.ctx()))
	b.rest(e)
	b.f.wantInterrupted(e)
	if took := time.Since(begun); took > 5*time.Second {
		b.f.Errorf("interrupted after %v", took)
	}
}

func (f *suite) wantInterrupted(e *kernels.Execution) {
	f.Helper()
	if r := e.Result(); r.Status != kernels.StatusError || r.Error.Name != "KeyboardInterrupt" {
		f.Errorf("result %+v", r)
	}
}

func testKillChildren(f *suite) {
	b := f.launch()
	e := b.execute(f.say("import subprocess\np = subprocess.Popen(['sleep', '1000'])\nprint('child', flush=True)\nprint(p.wait())", "child"))
	b.until(e, "child")
	n, err := b.client.KillChildren(f.ctx())
	if err != nil || n != 1 {
		f.Errorf("killed %d, %v", n, err)
	}
	b.rest(e)
	if r := e.Result(); r.Status != kernels.StatusOK {
		f.Errorf("result %+v", r)
	}
	b.want("1+1", "2")
}

func testRestart(f *suite) {
	b := f.launch()
	b.python(f.say("x = 1; open('kept', 'w').write('kept')", "set x 1"))
	e := b.execute(f.say(deaf+"print('go', flush=True)\nwhile True: time.sleep(100)", "print go\nstubborn 1000s"))
	b.until(e, "go")
	f.must(b.client.Restart(f.ctx(), time.Second))
	b.rest(e)
	if r := e.Result(); r.Status != kernels.StatusDied || r.Death == nil || !r.Death.Asked {
		f.Errorf("result %+v", r)
	}
	f.must(b.client.Ready(f.ctx()))
	_, r := b.run(f.say("x", "get x"))
	if r.Status != kernels.StatusError || r.Error.Name != "NameError" {
		f.Errorf("variables after a restart: %+v", r)
	}
	b.want(f.say("print(open('kept').read())", "print kept"), "kept")
}

// deaf makes Python ignore polite signals.
const deaf = "import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(s, signal.SIG_IGN)\n"

func testStats(f *suite) {
	b := f.launch()
	s, err := b.client.Stats(f.ctx())
	f.must(err)
	if s.Memory <= 0 || s.ShimMemory <= 0 || s.ShimMemory > 64<<20 {
		f.Errorf("stats %+v", s)
	}
	f.Logf("an idle kernel: %d MB, its shim: %.1f MB", s.Memory>>20, float64(s.ShimMemory)/(1<<20))
	if _, err := os.Stat("/proc/self/schedstat"); f.s.Fake || err != nil {
		return // nothing waits for a processor, or this host does not tell what does
	}
	b.want(crowd+"print('over')", "over")
	crowded, err := b.client.Stats(f.ctx())
	f.must(err)
	if crowded.Starved < s.Starved+100*time.Millisecond {
		f.Errorf("the kernel waited for a processor for %v before a crowd, and %v after it", s.Starved, crowded.Starved)
	}
}

// testUsed checks that a result says what its own cell used, and nothing of the one before it.
func testUsed(f *suite) {
	b := f.launch()
	_, r := b.run(f.say("import time\nblock = b'x' * (150 << 20)\nend = time.process_time() + .3\nwhile time.process_time() < end: pass\ndel block", "used 350ms 200000000"))
	if r.CPU < 290*time.Millisecond || r.CPU > time.Minute || r.PeakMemory < 150<<20 || r.PeakMemory > 1<<30 {
		f.Errorf("a cell that computes, and holds 150 MB: %v, %d bytes", r.CPU, r.PeakMemory)
	}
	if _, r = b.run(f.say("_ = sum(range(3 * 10**7))", "used 350ms 60000000")); r.CPU < 80*time.Millisecond { // one call, which nothing interrupts
		f.Errorf("a cell that adds up: %v", r.CPU)
	}
	_, r = b.run(f.say("1+1", "used 5ms 60000000"))
	if r.CPU <= 0 || r.CPU > 250*time.Millisecond || r.PeakMemory < 10<<20 || r.PeakMemory > 149<<20 {
		f.Errorf("1+1: %v, %d bytes", r.CPU, r.PeakMemory)
	}
}

// crowd has far more processes compute, beside the kernel, than there are processors.
const crowd = `import os, subprocess, sys, time
loop = "import time\nend = time.time() + 1\nwhile time.time() < end: pass"
cpus = os.sched_getaffinity(0)
os.sched_setaffinity(0, {min(cpus)})
many = [subprocess.Popen([sys.executable, "-c", loop]) for _ in range(4)]
end = time.time() + 1
while time.time() < end: pass
for p in many: p.wait()
os.sched_setaffinity(0, cpus)
`
