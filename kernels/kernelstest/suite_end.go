package kernelstest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// endCases are about kernels that end, failCases about those that never came.
var endCases = []suiteCase{
	{"item 4: the kernel's exit is noticed within a second", carried, testKernelExit},
	{"item 4: a kernel that kills itself", real, testKernelKill},
	{"an earlier cell's words are not a kernel's last", real, testLastWords},
	{"item 4: the container's exit is noticed within a second", carried, testContainerExit},
	{"stop is quick for a kernel that obeys", plain, testStopPolite},
	{"stop ladder: a kernel that is busy gets TERM", real, testStopTerm},
	{"stop ladder: a kernel that ignores TERM is gone after the grace", carried, testStopLadder},
	{"item 10: nothing is left of a stopped kernel", carried, testNothingLeft},
	{"attach to a stopped kernel is ErrGone", carried, testAttachGone},
	{"attach to a foreign ref is Invalid", plain, testAttachForeign},
}

var failCases = []suiteCase{
	{"a launch that fails leaves nothing", carried, testLaunchFails},
	{"a launch that is given up leaves nothing", carried, testLaunchCancelled},
	{"a kernel whose command is missing says so", plain, testMissingCommand},
	{"a kernel that fails at start says its own words", real, testFailingCommand},
}

func testKernelExit(f *suite) {
	b := f.launch()
	e := b.execute(f.say("print('go', flush=True)\nimport os, time\ntime.sleep(0.2)\nos._exit(3)", "print go\nsleep 200ms\nexit 3"))
	queued := b.execute("1+1")
	b.until(e, "go")
	f.soon(e.Done(), "the kernel's exit")
	f.soon(queued.Done(), "the kernel's exit, by a cell in the queue,")
	f.soon(b.client.Done(), "the kernel's exit, by the client,")
	r := e.Result()
	if r.Status != kernels.StatusDied || r.Death == nil || r.Death.Exit == nil || r.Death.Exit.Code != 3 {
		f.Errorf("result %+v, death %+v", r, r.Death)
	}
	if !strings.Contains(b.client.Err().Error(), "status 3") || fault.KindOf(b.client.Err()) != fault.Died {
		f.Errorf("error %v", b.client.Err())
	}
}

func testKernelKill(f *suite) {
	b := f.launch()
	e := b.execute("import os; os.kill(os.getpid(), 9)")
	f.soon(e.Done(), "the kernel's death")
	if r := e.Result(); r.Death == nil || r.Death.Exit == nil || r.Death.Exit.Signal != "SIGKILL" || r.Death.OOM {
		f.Errorf("result %+v, death %+v", r, r.Death)
	}
}

func testLastWords(f *suite) {
	b := f.launch()
	b.want("import os, subprocess\nsubprocess.run(['sh', '-c', 'echo earlier words >&2']).returncode", "earlier words\n0")
	b.want("1", "1")
	e := b.execute("os._exit(3)")
	f.soon(e.Done(), "the kernel's exit")
	if r := e.Result(); r.Death == nil || r.Death.Cause != "the kernel exited with status 3" {
		f.Errorf("death %+v", r.Death)
	}
}

func testContainerExit(f *suite) {
	b := f.launch()
	e := b.execute(f.say("print('go', flush=True)\nimport time; time.sleep(1000)", "print go\nwait"))
	b.until(e, "go")
	other, err := f.provisioner().Attach(f.ctx(), b.handle.Ref())
	f.must(err)
	f.must(other.Stop(f.ctx(), 0))
	_ = other.Close()
	f.soon(b.handle.Exited(), "the container's exit")
	f.soon(e.Done(), "the container's exit, by a cell,")
	f.soon(b.client.Done(), "the container's exit, by the client,")
	var dead *kernels.DeathError
	if !errors.As(b.client.Err(), &dead) {
		f.Errorf("error %v", b.client.Err())
	}
}

func testStopPolite(f *suite) {
	b := f.launch()
	begun := time.Now()
	f.must(b.handle.Stop(f.ctx(), 20*time.Second))
	if took := time.Since(begun); took > 9*time.Second {
		f.Errorf("stopped after %v: not politely", took)
	}
	f.stopped(b)
}

// stopped wants a kernel to be gone, and a second Stop to do no harm.
func (f *suite) stopped(b *box) {
	f.Helper()
	f.soon(b.handle.Exited(), "the end")
	if s := b.handle.Status(); !s.Asked {
		f.Errorf("status %+v, not asked", s)
	}
	if ids := f.ids(f.p); len(ids) != 0 {
		f.Errorf("still listed: %v", ids)
	}
	f.must(b.handle.Stop(f.ctx(), time.Second))
	f.soon(b.client.Done(), "the end, by the client,")
	if _, err := b.client.Execute(f.ctx(), kernels.ExecuteRequest{}); fault.KindOf(err) != fault.Died {
		f.Errorf("execute on a stopped kernel: %v", err)
	}
}

func testStopTerm(f *suite) {
	const grace = 10 * time.Second // of which a machine that is busy needs more than a moment
	b := f.launch()
	e := b.execute(`import os, signal
def term(*_):
    open('term', 'w').close()
    os._exit(0)
signal.signal(signal.SIGTERM, term)
print('go', flush=True)
while True: pass`)
	b.until(e, "go")
	begun := time.Now()
	f.must(b.handle.Stop(f.ctx(), grace))
	took := time.Since(begun)
	if _, err := os.Stat(filepath.Join(b.spec.Workspace, "term")); err != nil {
		f.Errorf("killed without TERM, after %v", took)
	}
	f.stopped(b)
}

func testStopLadder(f *suite) {
	const grace = 2 * time.Second
	b := f.launch()
	e := b.execute(f.say(deaf+"print('go', flush=True)\nwhile True: time.sleep(100)", "print go\nstubborn 1000s"))
	b.until(e, "go")
	begun := time.Now()
	f.must(b.handle.Stop(f.ctx(), grace))
	if took := time.Since(begun); took > grace+5*time.Second {
		f.Errorf("stopped after %v, with %v of grace", took, grace)
	}
	f.stopped(b)
	if _, err := e.Next(f.ctx()); err != io.EOF {
		f.Errorf("the cell: %v", err)
	}
	if r := e.Result(); r.Status != kernels.StatusDied {
		f.Errorf("result %+v", r)
	}
}

func testNothingLeft(f *suite) {
	b := f.launch()
	b.python(f.say("import subprocess\np = subprocess.Popen(['setsid', 'sleep', '1000'])\nimport os\nos.makedirs('a/b/c'); open('a/b/c/file', 'w').write('x'); os.chmod('a/b/c/file', 0o400)", "print go"))
	if !f.s.Fake && len(processesOf(b.spec.ID)) == 0 {
		f.Log("no process of this host names the kernel: what is left of it cannot be seen here")
	}
	f.must(b.handle.Stop(f.ctx(), time.Second))
	f.noProcesses(b.spec.ID)
	if err := os.RemoveAll(b.spec.Workspace); err != nil {
		f.Errorf("the server cannot remove what the kernel wrote: %v", err)
	}
}

// processesOf returns the processes of this host whose command line or environment names a kernel, but for this one.
func processesOf(id string) []string {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	var found []string
	for _, dir := range dirs {
		if dir == fmt.Sprintf("/proc/%d", os.Getpid()) {
			continue
		}
		cmdline, _ := os.ReadFile(dir + "/cmdline")
		environ, _ := os.ReadFile(dir + "/environ")
		if strings.Contains(string(cmdline), id) || strings.Contains(string(environ), id) {
			found = append(found, dir+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

func testAttachGone(f *suite) {
	b := f.launch()
	f.must(b.handle.Stop(f.ctx(), 0))
	for name, p := range map[string]kernels.Provisioner{"the same": f.p, "another": f.provisioner()} {
		if h, err := p.Attach(f.ctx(), b.handle.Ref()); !errors.Is(err, kernels.ErrGone) {
			f.Errorf("%s provisioner: %v, %v", name, h, err)
		}
	}
}

func testAttachForeign(f *suite) {
	for _, ref := range []kernels.Ref{
		{},
		{Provisioner: "another", Version: 1, KernelID: newKernelID()},
		{Provisioner: f.p.Name(), Version: 9999, KernelID: newKernelID()},
	} {
		if _, err := f.p.Attach(f.ctx(), ref); fault.KindOf(err) != fault.Invalid {
			f.Errorf("%+v: %v", ref, err)
		}
	}
	ref := kernels.Ref{Provisioner: f.p.Name(), Version: 1, KernelID: "../../../../etc"}
	if _, err := f.p.Attach(f.ctx(), ref); err == nil {
		f.Error("attached to a path")
	}
}

func testLaunchFails(f *suite) {
	for name, edit := range map[string]func(*kernels.Spec){
		"no id":             func(s *kernels.Spec) { s.ID = "" },
		"an id with dots":   func(s *kernels.Spec) { s.ID = "../../etc/passwd" },
		"no workspace":      func(s *kernels.Spec) { s.Workspace = "" },
		"a workspace away":  func(s *kernels.Spec) { s.Workspace = filepath.Join(f.dir, "no", "such") },
		"a workspace file":  func(s *kernels.Spec) { s.Workspace = f.file() },
		"a missing image":   func(s *kernels.Spec) { s.Image = "cellblock-test/no-such-image:none"; f.onlyWithImages(s) },
		"a workspace of ..": func(s *kernels.Spec) { s.Workspace += "/../../../no-such-folder" },
	} {
		spec := f.spec()
		edit(&spec)
		h, err := f.p.Launch(f.ctx(), spec)
		if err == nil {
			f.Errorf("%s: launched", name)
			_ = h.Stop(f.ctx(), 0)
			continue
		}
		if k := fault.KindOf(err); k != fault.Invalid && k != fault.Unavailable && k != fault.NotFound {
			f.Errorf("%s: kind %v: %v", name, k, err)
		}
		f.nothingOf(spec.ID)
	}
}

func (f *suite) file() string {
	path := filepath.Join(ShortDir(f.T), "file")
	f.must(os.WriteFile(path, nil, 0o600))
	return path
}

// onlyWithImages makes a spec invalid where images do not matter, so that its case is about something.
func (f *suite) onlyWithImages(s *kernels.Spec) {
	if !f.p.Capabilities().Images {
		s.ID = ""
	}
}

func (f *suite) nothingOf(id string) {
	f.Helper()
	if ids := f.ids(f.p); len(ids) > 0 {
		f.Errorf("left in the list: %v", ids)
	}
	if id == "" {
		return
	}
	f.noProcesses(id)
}

// noProcesses fails unless no process of this host names the kernel.
func (f *suite) noProcesses(id string) {
	f.Helper()
	// What an engine keeps beside a container (conmon) ends a little after it, and nothing tells when.
	again, late := time.NewTicker(50*time.Millisecond), time.After(10*time.Second)
	defer again.Stop()
	for left := processesOf(id); len(left) > 0; left = processesOf(id) {
		select {
		case <-again.C:
		case <-late:
			f.Errorf("processes left: %v", left)
			return
		}
	}
}

func testLaunchCancelled(f *suite) {
	for _, after := range []time.Duration{0, 5 * time.Millisecond, 30 * time.Millisecond, 200 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		spec := f.spec()
		h, err := f.p.Launch(ctx, spec)
		cancel()
		if err == nil {
			f.must(h.Stop(f.ctx(), 0)) // quick enough
			_ = h.Close()
		}
		f.nothingOf(spec.ID)
	}
}

// comeUp launches a kernel with a command and returns why it did not come up, and in which words.
func (f *suite) comeUp(argv ...string) (words string, err error) {
	f.Helper()
	spec := f.spec()
	spec.Kernelspec.Argv = argv
	h, err := f.p.Launch(f.ctx(), spec)
	if err != nil {
		return err.Error(), err
	}
	b := &box{f: f, spec: spec, handle: h}
	f.Cleanup(b.stop)
	b.client, err = kernels.Connect(f.ctx(), h, kernels.Options{KernelID: spec.ID})
	if err == nil {
		f.Cleanup(func() { _ = b.client.Close() })
		err = b.client.Ready(f.ctx())
	}
	words = fmt.Sprint(err) + h.Logs(f.ctx())
	var dead *kernels.DeathError
	if errors.As(err, &dead) && dead.Death.Exit != nil {
		words += dead.Death.Exit.Output
	}
	return words, err
}

func testMissingCommand(f *suite) {
	words, err := f.comeUp("/no/such/python3", "-m", "ipykernel_launcher", "-f", "{connection_file}")
	if k := fault.KindOf(err); k != fault.Died && k != fault.Invalid && k != fault.Unavailable {
		f.Fatalf("got %v", err)
	}
	if !strings.Contains(words, "/no/such/python3") {
		f.Errorf("not told why: %s", words)
	}
}

func testFailingCommand(f *suite) {
	words, err := f.comeUp(f.s.Kernelspec.Argv[0], "-c", "import sys; print('last words', file=sys.stderr); sys.exit(7)")
	var dead *kernels.DeathError
	if !errors.As(err, &dead) {
		f.Fatalf("got %v", err)
	}
	if !strings.Contains(words, "last words") || dead.Death.Exit == nil || dead.Death.Exit.Code != 7 {
		f.Errorf("%v, exit %+v: %s", err, dead.Death.Exit, words)
	}
}
