package kernelstest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/kernels"
)

// Setup says what TestProvisioner tests.
type Setup struct {
	// New returns a provisioner of the installation whose state lives in dir; called twice with one dir it stands for a
	// restarted server. It may skip the test. What it must release besides Close goes into t.Cleanup.
	New func(t *testing.T, dir string) kernels.Provisioner
	// Kernelspec is a Python kernel's, Image what it runs in.
	Kernelspec kernels.Kernelspec
	Image      string
	// Serve serves what kernels connect to; nil: they have no way out, unless a case gives them one.
	Serve kernels.ServeTunnel
	// Fake tells that the kernels run scripts and not Python: what needs real user code is left out.
	Fake bool
	// Weak tells that the provisioner isolates nothing, by design: what it does not claim to enforce is left out, also
	// where nothing may be skipped.
	Weak bool
	// Carried tells that the same provisioner passes all of the suite on the same engine, and that only the way of the stream
	// is another here: of what has nothing to do with that (what a kernel may do, and what it computes) nothing is repeated.
	Carried bool
	// Twin tells that the same image passes all of the suite on another engine, with the same shim and carrier: of what they
	// alone decide (what a kernel computes, prints and makes of an interrupt) nothing is repeated.
	Twin bool
}

// TestProvisioner is the suite that every provisioner passes. Each case says in its name what a user relies on. It goes on
// when it has returned, as parallel subtests do: what it needs is released in t.Cleanup.
func TestProvisioner(t *testing.T, s Setup) {
	for _, group := range []struct {
		name  string
		cases []suiteCase
	}{{"life", lifeCases}, {"end", endCases}, {"fail", failCases}, {"limits", limitCases}, {"isolation", isolationCases}, {"egress", egressCases}, {"output", outputCases}} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel() // each case has an installation of its own, and mostly waits
			for _, c := range group.cases {
				t.Run(c.name, func(t *testing.T) { c.run(t, s) })
			}
		})
	}
}

// suiteCase is one case of the suite.
type suiteCase struct {
	name   string
	traits traits
	test   func(*suite)
}

// traits of a case say where it is left out.
type traits uint

const (
	plain traits = 0
	// real ones need user code in Python.
	real traits = 1 << iota
	// carried ones are about the stream: connections that end and come again, much that flows, a shim that must outlive it all.
	carried
	// inner ones are decided by the image's kernel and the shim beside it, in whatever they have been put.
	inner
)

func (c suiteCase) run(t *testing.T, s Setup) {
	if s.Fake && c.traits&real != 0 || s.Carried && c.traits&carried == 0 || s.Twin && c.traits&inner != 0 {
		return // not a skip: there is nothing that could be tested
	}
	dir := ShortDir(t)
	f := &suite{T: t, s: s, dir: dir}
	f.secret = secretOfServer()
	f.p = f.provisioner()
	c.test(f)
}

// secretOfServer puts a secret into the environment of whoever launches the kernels, for all cases, and returns it. It stays:
// suites may run side by side.
var secretOfServer = sync.OnceValue(func() string {
	secret := rand.Text()
	if err := os.Setenv("CELLBLOCK_TEST_SECRET", secret); err != nil {
		panic(err)
	}
	return secret
})

// suite is one case at work: an installation with a provisioner.
type suite struct {
	*testing.T
	s      Setup
	dir    string
	p      kernels.Provisioner
	secret string
}

// provisioner returns a new provisioner of the installation, as after a restart of the server.
func (f *suite) provisioner() kernels.Provisioner {
	f.Helper()
	p := f.s.New(f.T, f.dir)
	f.Cleanup(func() { _ = p.Close() })
	return p
}

// say returns the code that the kernels understand.
func (f *suite) say(python, script string) string {
	if f.s.Fake {
		return script
	}
	return python
}

// patience bounds every single wait of the suite.
const patience = 60 * time.Second

func (f *suite) ctx() context.Context {
	c, cancel := context.WithTimeout(context.Background(), patience)
	f.Cleanup(cancel)
	return c
}

func (f *suite) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// suiteLimits are what kernels of the suite run under, unless a case says otherwise.
var suiteLimits = kernels.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 128, FileSize: 64 << 20, Tmp: 64 << 20, Files: 1024}

// spec returns a Spec with a workspace of its own.
func (f *suite) spec() kernels.Spec {
	f.Helper()
	return kernels.Spec{
		ID: newKernelID(), Kernelspec: f.s.Kernelspec, Image: f.s.Image, Workspace: Workspace(f.T, f.p),
		Limits: suiteLimits, Labels: map[string]string{"test": "suite"},
	}
}

func newKernelID() string { return strings.ToLower(rand.Text()) }

// box is a launched kernel and a client of it.
type box struct {
	f      *suite
	spec   kernels.Spec
	handle kernels.Handle
	client *kernels.Client
	over   bool
}

// launch launches a kernel that edit may change, and waits until it is ready.
func (f *suite) launch(edit ...func(*kernels.Spec)) *box {
	f.Helper()
	b := f.start(edit...)
	if err := b.client.Ready(f.ctx()); err != nil {
		f.Fatalf("not ready: %v\nlogs: %s", err, b.handle.Logs(f.ctx()))
	}
	return b
}

// start launches a kernel and connects to its shim.
func (f *suite) start(edit ...func(*kernels.Spec)) *box {
	f.Helper()
	spec := f.spec()
	spec.Egress = f.s.Serve != nil
	for _, e := range edit {
		e(&spec)
	}
	h, err := f.p.Launch(f.ctx(), spec)
	f.must(err)
	b := &box{f: f, spec: spec, handle: h}
	f.Cleanup(b.stop)
	b.client = f.connect(h, kernels.Options{KernelID: spec.ID})
	b.client.ServeEgress(f.s.Serve)
	return b
}

// stop stops the kernel for good; once.
func (b *box) stop() {
	if b.over {
		return
	}
	b.over = true
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.handle.Stop(ctx, 0); err != nil {
		b.f.Errorf("stop: %v", err)
	}
	_ = b.handle.Close()
}

func (f *suite) connect(d kernels.Dialer, o kernels.Options) *kernels.Client {
	f.Helper()
	c, err := kernels.Connect(f.ctx(), d, o)
	f.must(err)
	f.Cleanup(func() { _ = c.Close() })
	return c
}

func (b *box) execute(code string) *kernels.Execution {
	b.f.Helper()
	e, err := b.client.Execute(b.f.ctx(), kernels.ExecuteRequest{Code: code, StoreHistory: true})
	b.f.must(err)
	return e
}

// run runs code to its end and returns its text: streams and the plain text of results, in order.
func (b *box) run(code string) (string, kernels.Result) {
	b.f.Helper()
	e := b.execute(code)
	text := b.rest(e)
	return text, e.Result()
}

// rest reads an execution to its end and returns its text.
func (b *box) rest(e *kernels.Execution) string {
	b.f.Helper()
	var text strings.Builder
	for {
		out, err := e.Next(b.f.ctx())
		if err == io.EOF {
			return text.String()
		}
		b.f.must(err)
		text.WriteString(outputText(out))
	}
}

func outputText(out kernels.Output) string {
	var plain string
	if json.Unmarshal(out.Data["text/plain"], &plain) == nil {
		return plain + "\n"
	}
	if out.Notice != nil {
		return "[" + out.Notice.String() + "]\n"
	}
	return out.Text
}

// python runs code that must succeed and returns its text.
func (b *box) python(code string) string {
	b.f.Helper()
	text, r := b.run(code)
	if r.Status != kernels.StatusOK {
		b.f.Fatalf("%s: %+v\n%s\n%v\noutput: %s", r.Status, r.Error, code, r.Death, text)
	}
	return text
}

// want runs code and compares its text, without the space around it.
func (b *box) want(code, text string) {
	b.f.Helper()
	if got := strings.TrimSpace(b.python(code)); got != text {
		b.f.Errorf("got %q, want %q", got, text)
	}
}

// until reads outputs until their text holds what a cell prints when it has come so far.
func (b *box) until(e *kernels.Execution, mark string) {
	b.f.Helper()
	var text string
	for !strings.Contains(text, mark) {
		out, err := e.Next(b.f.ctx())
		if err != nil {
			b.f.Fatalf("before %q: %v, result %+v; so far: %q", mark, err, e.Result(), text)
		}
		text += outputText(out)
	}
}

// ids returns the kernels that the provisioner lists.
func (f *suite) ids(p kernels.Provisioner) []string {
	f.Helper()
	refs, err := p.List(f.ctx())
	f.must(err)
	ids := []string{}
	for _, r := range refs {
		if r.Provisioner != p.Name() {
			f.Errorf("a ref of %q in the list of %q", r.Provisioner, p.Name())
		}
		ids = append(ids, r.KernelID)
	}
	return ids
}

// soon fails unless ch is closed within a second, more or less.
func (f *suite) soon(ch <-chan struct{}, what string) {
	f.Helper()
	begun := time.Now()
	select {
	case <-ch:
	case <-time.After(patience):
		f.Fatalf("%s was never noticed", what)
	}
	if took := time.Since(begun); took > 1500*time.Millisecond {
		f.Errorf("%s was noticed after %v", what, took)
	}
}
