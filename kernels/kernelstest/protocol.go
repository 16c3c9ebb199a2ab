package kernelstest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
)

// TestKernel is the suite that every kernel of ours passes, whatever its language: what a client relies on of the protocol
// (Jupyter messaging). Its cases share one kernel.
func TestKernel(t *testing.T, s Setup, d Dialect) {
	f := &suite{T: t, s: s, dir: ShortDir(t)}
	f.p = f.provisioner()
	b := f.launch()
	for _, c := range []struct {
		name string
		need string // of the dialect
		test func(*talk)
		// values tells that it is about results, of which terminals have none.
		values bool
	}{
		{"it says what it is", d.Language, testInfo, false},
		{"a value is a result, and state stays", d.Set, testStateStays, true},
		{"state stays", d.Set, func(k *talk) { k.want(k.d.Set, ""); k.want(k.d.Get, k.d.Shown) }, false},
		{"streams keep their order", d.Print, testStreams, false},
		{"output comes while the cell runs", d.PrintThenWork, testLive, false},
		{"fifty thousand prints, none lost", d.Count, testCount, false},
		{"an error has a name, a value and the user's frames", d.Fail, testFail, false},
		{"an error of syntax has its line", d.Broken, testBroken, false},
		{"an error ends what waits behind it, if that is wanted", d.Fail, testStopOnError, false},
		{"silent cells show no result and do not count", d.Get, testSilent, true},
		{"expressions beside the code", d.Get, testExpressions, true},
		{"display of HTML, SVG, JSON and PNG", d.Display, testDisplay, false},
		{"a display is updated", d.Update, testUpdate, false},
		{"a question is answered", d.Ask, testAsk, false},
		{"a question that nobody can answer fails", d.Ask, testNobody, false},
		{"an endless loop is interrupted, and state stays", d.Loop, func(k *talk) { k.interrupted(d.Loop) }, false},
		{"a wait is interrupted, and state stays", d.Wait, func(k *talk) { k.interrupted(d.Wait) }, false},
		{"a program is interrupted, and state stays", d.Child, func(k *talk) { k.interrupted(d.Child) }, false},
		{"a question is interrupted, and state stays", d.Ask, testInterruptedQuestion, false},
		{"late output is its own cell's", d.Late, testLate, false},
		{"what programs print is their cell's", d.Program, func(k *talk) { k.want(d.Program, "program") }, false},
		{"completion", d.Complete, testComplete, false},
		{"inspection", d.Inspect, testInspect, false},
	} {
		if c.need == "" || d.Terminal && c.values {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			own := *f
			own.T = t
			c.test(&talk{box: &box{f: &own, spec: b.spec, handle: b.handle, client: b.client}, d: d})
		})
	}
}

// Running is a kernel that a test of one kernel's own abilities talks to.
type Running struct{ box *box }

// Launch launches the kernel that s describes and waits until it is ready. It ends with the test.
func Launch(t *testing.T, s Setup) *Running {
	t.Helper()
	f := &suite{T: t, s: s, dir: ShortDir(t)}
	f.p = f.provisioner()
	return &Running{f.launch()}
}

// Want runs code that must succeed and compares its text, without the space around it.
func (r *Running) Want(code, text string) {
	r.box.f.Helper()
	r.box.want(code, text)
}

// Run runs code that must succeed and returns its text: streams and the plain text of results, in order.
func (r *Running) Run(code string) string {
	r.box.f.Helper()
	return r.box.python(code)
}

// Try runs code and returns its text, and how it ended.
func (r *Running) Try(code string) (string, kernels.Result) {
	r.box.f.Helper()
	return r.box.run(code)
}

// Begin begins to run code, and returns when its output holds a mark.
func (r *Running) Begin(code, mark string) *kernels.Execution {
	r.box.f.Helper()
	e := r.box.execute(code)
	r.box.until(e, mark)
	return e
}

// Answer runs code that asks, gives it the answers, behind which there are no more, and returns its text.
func (r *Running) Answer(code string, answers ...string) string {
	f := r.box.f
	f.Helper()
	e, err := r.box.client.Execute(f.ctx(), kernels.ExecuteRequest{Code: code, StoreHistory: true, AllowStdin: true})
	f.must(err)
	var text strings.Builder
	for {
		out, err := e.Next(f.ctx())
		if err == io.EOF {
			return text.String()
		}
		f.must(err)
		if out.Kind != kernels.OutputInput {
			text.WriteString(outputText(out))
			continue
		}
		answer := "\x04"
		if len(answers) > 0 {
			answer, answers = answers[0], answers[1:]
		}
		f.must(e.Reply(f.ctx(), answer))
	}
}

// Workspace is the kernel's folder on this host.
func (r *Running) Workspace() string { return r.box.spec.Workspace }

// Interrupt interrupts what runs.
func (r *Running) Interrupt(ctx context.Context) error { return r.box.client.Interrupt(ctx) }

// Fail runs code that must fail and returns its text, and the error's name and traceback.
func (r *Running) Fail(code string) (text, name string, traceback []string) {
	r.box.f.Helper()
	text, result := r.box.run(code)
	if result.Status != kernels.StatusError {
		r.box.f.Fatalf("%s: %+v", result.Status, result)
	}
	return text, result.Error.Name, result.Error.Traceback
}

// Interrupted runs code that does not end, and interrupts it.
func (r *Running) Interrupted(code string) {
	r.box.f.Helper()
	k := &talk{box: r.box}
	e := k.execute(code)
	<-e.Begun()
	k.interrupt(e)
}

// talk is one case of TestKernel.
type talk struct {
	*box
	d Dialect
}

func testInfo(k *talk) {
	info := k.client.Info()
	if info.LanguageInfo.Name != k.d.Language || !strings.HasPrefix(info.ProtocolVersion, "5.") || info.LanguageInfo.FileExtension == "" {
		k.f.Errorf("%+v", info)
	}
}

func testStateStays(k *talk) {
	k.want(k.d.Set, "")
	first := k.outputs(k.d.Get)
	again := k.outputs(k.d.Get)
	if len(first) != 1 || first[0].Kind != kernels.OutputResult || outputText(first[0]) != k.d.Shown+"\n" {
		k.f.Fatalf("%+v", first)
	}
	if len(again) != 1 || again[0].ExecutionCount != first[0].ExecutionCount+1 {
		k.f.Errorf("after result %d came %+v", first[0].ExecutionCount, again)
	}
}

func testStreams(k *talk) {
	var said []string
	for _, out := range k.outputs(k.d.Print) {
		said = append(said, out.Stream+":"+out.Text)
	}
	slices.Sort(said) // of two streams nobody promises an order
	text := strings.Join(said, "")
	if k.d.Terminal && text == "stdout:out\nerr\nagain\n" {
		return
	}
	if text != "stderr:err\nstdout:out\nstdout:again\n" && text != "stderr:err\nstdout:again\nstdout:out\n" && text != "stderr:err\nstdout:out\nagain\n" {
		k.f.Errorf("%q", text)
	}
}

func testLive(k *talk) {
	e := k.execute(k.d.PrintThenWork)
	begun := time.Now()
	k.until(e, "first")
	first := time.Since(begun)
	if rest := k.rest(e); !strings.Contains(rest, "second") || first > time.Second {
		k.f.Errorf("the first text came after %v, then %q", first, rest)
	}
}

func testCount(k *talk) {
	var want strings.Builder
	for i := range 50_000 {
		fmt.Fprintln(&want, i)
	}
	if got := k.python(k.d.Count); got != want.String() {
		k.f.Errorf("%d bytes came, want %d", len(got), want.Len())
	}
}

func testFail(k *talk) {
	_, r := k.run(k.d.Fail)
	k.wantError(r, k.d.ErrorName, k.d.ErrorValue)
	lines := strings.Split(strings.TrimSpace(plainText(strings.Join(r.Error.Traceback, "\n"))), "\n")
	if last := lines[len(lines)-1]; last != k.d.ErrorName+": "+k.d.ErrorValue {
		k.f.Errorf("the last line is %q", last)
	}
	if k.d.Terminal {
		return
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"line 4", "-> 4 ", "-> 2 ", "in f", strings.TrimSpace(strings.Split(k.d.Fail, "\n")[1])} {
		if !strings.Contains(text, want) {
			k.f.Errorf("no %q in the traceback:\n%s", want, text)
		}
	}
}

func testBroken(k *talk) {
	_, r := k.run(k.d.Broken)
	if r.Status != kernels.StatusError || r.Error.Name != "SyntaxError" {
		k.f.Fatalf("%+v", r)
	}
	text := plainText(strings.Join(r.Error.Traceback, "\n"))
	if !strings.Contains(text, "line 2") || !strings.Contains(text, strings.Split(k.d.Broken, "\n")[1]) || !strings.Contains(text, "^") {
		k.f.Errorf("%s", text)
	}
}

func (k *talk) wantError(r kernels.Result, name, value string) {
	k.f.Helper()
	if r.Status != kernels.StatusError || r.Error == nil || r.Error.Name != name || r.Error.Value != value || len(r.Error.Traceback) == 0 {
		k.f.Fatalf("%+v, %+v", r, r.Error)
	}
}

func testStopOnError(k *talk) {
	var all []*kernels.Execution
	for _, code := range []string{k.d.PrintThenWork, k.d.Fail, k.d.Get} {
		e, err := k.client.Execute(k.f.ctx(), kernels.ExecuteRequest{Code: code, StoreHistory: true, StopOnError: true})
		k.f.must(err)
		all = append(all, e)
	}
	var ends []kernels.Status
	for _, e := range all {
		k.rest(e)
		ends = append(ends, e.Result().Status)
	}
	if want := []kernels.Status{kernels.StatusOK, kernels.StatusError, kernels.StatusAborted}; !slices.Equal(ends, want) {
		k.f.Errorf("%v, want %v", ends, want)
	}
	_, r := k.run(k.d.Fail)                 // and not the one behind it, where that is not wanted
	for r.Status == kernels.StatusAborted { // a busy kernel still ends what was waiting
		_, r = k.run(k.d.Fail)
	}
	k.wantError(r, k.d.ErrorName, k.d.ErrorValue)
	k.want(k.d.Get, k.d.Shown)
}

func testSilent(k *talk) {
	before := k.outputs(k.d.Get)
	e, err := k.client.Execute(k.f.ctx(), kernels.ExecuteRequest{Code: k.d.Get, Silent: true})
	k.f.must(err)
	if text := k.rest(e); text != "" || e.Result().Status != kernels.StatusOK {
		k.f.Errorf("%q, %+v", text, e.Result())
	}
	if after := k.outputs(k.d.Get); after[0].ExecutionCount != before[0].ExecutionCount+1 {
		k.f.Errorf("%d after %d", after[0].ExecutionCount, before[0].ExecutionCount)
	}
}

func testExpressions(k *talk) {
	e, err := k.client.Execute(k.f.ctx(), kernels.ExecuteRequest{Silent: true, UserExpressions: map[string]string{"right": k.d.Get, "wrong": "no_such_name"}})
	k.f.must(err)
	k.rest(e)
	var answers map[string]struct {
		Status string
		Data   map[string]string
		EName  string
	}
	k.f.must(json.Unmarshal(e.Result().UserExpressions, &answers))
	if a := answers["right"]; a.Status != "ok" || a.Data["text/plain"] != k.d.Shown {
		k.f.Errorf("%+v", a)
	}
	if a := answers["wrong"]; a.Status != "error" || a.EName == "" {
		k.f.Errorf("%+v", a)
	}
}

func testDisplay(k *talk) {
	var shown []kernels.Output
	for _, out := range k.outputs(k.d.Display) {
		if out.Kind == kernels.OutputDisplay {
			shown = append(shown, out)
		}
	}
	want := []struct{ mime, text string }{
		{"text/html", `"\u003cb\u003ea\u003c/b\u003e"`}, {"image/svg+xml", `"\u003csvg xmlns=\"http://www.w3.org/2000/svg\"/\u003e"`}, {"application/json", `{"a":1}`},
		{"image/png", `"` + onePixel + `"`},
	}
	if len(shown) != len(want) {
		k.f.Fatalf("%d displays came: %+v", len(shown), shown)
	}
	for i, w := range want {
		var got, expected any
		_ = json.Unmarshal(shown[i].Data[w.mime], &got)
		k.f.must(json.Unmarshal([]byte(w.text), &expected))
		if text, ok := got.(string); ok {
			got = strings.TrimSpace(text)
		}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			k.f.Errorf("%s: %s", w.mime, shown[i].Data)
		}
	}
}

func testUpdate(k *talk) {
	outs := slices.DeleteFunc(k.outputs(k.d.Update), func(out kernels.Output) bool { return out.Kind == kernels.OutputResult })
	if len(outs) != 2 || outs[0].Kind != kernels.OutputDisplay || outs[1].Kind != kernels.OutputUpdate ||
		outs[0].DisplayID == "" || outs[0].DisplayID != outs[1].DisplayID || !strings.Contains(outputText(outs[1]), "two") {
		k.f.Errorf("%+v", outs)
	}
}

func testAsk(k *talk) {
	e := k.ask()
	k.f.must(e.Reply(k.f.ctx(), "Ada"))
	if text := k.rest(e); strings.TrimSpace(text) != "hello Ada" || e.Result().Status != kernels.StatusOK {
		k.f.Errorf("%q, %+v", text, e.Result())
	}
	e = k.ask()
	k.f.must(e.Reply(k.f.ctx(), "\x04nobody is there"))
	k.rest(e)
	k.wantError(e.Result(), "EOFError", "nobody is there")
}

// ask asks, and returns when the question has come.
func (k *talk) ask() *kernels.Execution {
	k.f.Helper()
	e, err := k.client.Execute(k.f.ctx(), kernels.ExecuteRequest{Code: k.d.Ask, StoreHistory: true, AllowStdin: true})
	k.f.must(err)
	for {
		out, err := e.Next(k.f.ctx())
		k.f.must(err)
		if out.Kind == kernels.OutputInput {
			if out.Text != "name? " {
				k.f.Errorf("asked %q", out.Text)
			}
			return e
		}
	}
}

func testNobody(k *talk) {
	_, r := k.run(k.d.Ask)
	if r.Status != kernels.StatusError || !strings.Contains(r.Error.Value, "nobody can answer") {
		k.f.Errorf("%+v, %+v", r, r.Error)
	}
}

// interrupted runs a cell that prints "begun" and does not end, and interrupts it.
func (k *talk) interrupted(code string) {
	k.python(k.d.Set)
	e := k.execute(code)
	k.until(e, "begun")
	k.interruptAndCheck(e)
}

func testInterruptedQuestion(k *talk) {
	k.python(k.d.Set)
	k.interruptAndCheck(k.ask())
}

func (k *talk) interruptAndCheck(e *kernels.Execution) {
	k.f.Helper()
	k.interrupt(e)
	k.want(k.d.Get, k.d.Shown)
}

// interrupt interrupts what runs, and wants it to end with that.
func (k *talk) interrupt(e *kernels.Execution) {
	k.f.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(k.f.ctx(), 20*time.Second)
	defer cancel()
	// A program may not have been started yet when its cell says that it begins.
	for again := time.NewTicker(500 * time.Millisecond); ; {
		k.f.must(k.client.Interrupt(ctx))
		select {
		case <-e.Done():
			again.Stop()
		case <-again.C:
			continue
		case <-ctx.Done():
			k.f.Fatal("it was not interrupted")
		}
		break
	}
	k.rest(e)
	if r := e.Result(); r.Status != kernels.StatusError || r.Error.Name != "KeyboardInterrupt" {
		k.f.Errorf("%+v, %+v", r, r.Error)
	}
	if took := time.Since(begun); took > 5*time.Second {
		k.f.Errorf("it took %v", took)
	}
}

func testLate(k *talk) {
	e := k.execute(k.d.Late)
	k.rest(e)
	second := k.execute(k.d.Pause)
	for {
		out, err := second.Next(k.f.ctx())
		if err == io.EOF {
			return
		}
		k.f.must(err)
		if strings.Contains(outputText(out), "late") {
			k.f.Errorf("it is another cell's: %+v", out)
		}
	}
}

func testComplete(k *talk) {
	c, err := k.client.Complete(k.f.ctx(), k.d.Complete, len(k.d.Complete))
	k.f.must(err)
	if !slices.Contains(c.Matches, k.d.Completed) || c.CursorStart != 0 || c.CursorEnd != len(k.d.Complete) {
		k.f.Errorf("%+v", c)
	}
}

func testInspect(k *talk) {
	i, err := k.client.Inspect(k.f.ctx(), k.d.Inspect, len(k.d.Inspect), 0)
	k.f.must(err)
	if !i.Found || !strings.Contains(plainText(string(i.Data["text/plain"])), k.d.Inspected) {
		k.f.Errorf("%s", i.Data["text/plain"])
	}
}

// outputs runs code that must succeed and returns what came.
func (k *talk) outputs(code string) []kernels.Output {
	k.f.Helper()
	e := k.execute(code)
	var outs []kernels.Output
	for {
		out, err := e.Next(k.f.ctx())
		if err == io.EOF {
			break
		}
		k.f.must(err)
		outs = append(outs, out)
	}
	if r := e.Result(); r.Status != kernels.StatusOK {
		k.f.Fatalf("%s: %+v", r.Status, r.Error)
	}
	return outs
}

var ansi = regexp.MustCompile(`\x1b\[[0-9;]*m|\\u001b\[[0-9;]*m`)

// plainText is text without its colours.
func plainText(text string) string { return ansi.ReplaceAllString(text, "") }
