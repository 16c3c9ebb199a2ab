package kernels_test

import (
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

func TestExecute(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	if err := c.Ready(ctx(t)); err != nil {
		t.Fatal(err)
	}
	if i := c.Info(); i.LanguageInfo.Name != "fake" {
		t.Fatalf("info %+v", i)
	}
	for _, tt := range []struct {
		name, code, want string
		status           kernels.Status
	}{
		{"result", "1+1", "execute_result:2", kernels.StatusOK},
		{"nothing", "", "", kernels.StatusOK},
		{"two streams in order", "print a\nstderr b\nprint c", "stdout:a | stderr:b | stdout:c", kernels.StatusOK},
		{"two plots at their place (item 7)", "print a\npng\nprint b\npng", "stdout:a | display_data:image/png,Figure | stdout:b | display_data:image/png,Figure", kernels.StatusOK},
		{"update and clear", "update x new\nclear", "update_display_data:new | clear_output", kernels.StatusOK},
		{"widget", "comm", "other:comm_open", kernels.StatusOK},
		{"error", "print a\nerror ValueError no", "stdout:a | error:ValueError", kernels.StatusError},
		{"stderr is no error (item 7)", "stderr warning", "stderr:warning", kernels.StatusOK},
		{"error reply without a name", "bareerror\nerror E v", "error:E", kernels.StatusError},
		{"aborted", "aborted", "", kernels.StatusAborted},
		{"tslab's abort", "abort", "", kernels.StatusAborted},
		{"unknown status", "oddstatus", "notice:… the kernel's reply has an unknown status: whether the code succeeded is not known …", kernels.StatusIncomplete},
		{"reply of another shape", "oddreply", "notice:… the kernel's reply could not be read: whether the code succeeded is not known …", kernels.StatusIncomplete},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, r := run(t, c, tt.code)
			if got != tt.want || r.Status != tt.status {
				t.Errorf("got %q %s, want %q %s", got, r.Status, tt.want, tt.status)
			}
			if r.Started.IsZero() || r.Ended.Before(r.Started) {
				t.Errorf("from %v to %v", r.Started, r.Ended)
			}
			if (r.Error != nil) != (tt.status == kernels.StatusError) {
				t.Errorf("error %+v", r.Error)
			}
		})
	}
}

func TestErrorIsKept(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	for _, code := range []string{"error ValueError bad value", "bareerror\nerror ValueError bad value"} {
		_, r := run(t, c, code)
		if r.Error == nil || r.Error.Name != "ValueError" || r.Error.Value != "bad value" || len(r.Error.Traceback) != 2 {
			t.Errorf("%q: %+v", code, r.Error)
		}
	}
}

// An execution ends on reply and idle, in whatever order, and what trails is not lost.
func TestEndsOnReplyAndIdle(t *testing.T) {
	const grace = 50 * time.Millisecond
	for _, tt := range []struct {
		name, code, want, reason string
		status                   kernels.Status
	}{
		{"idle before reply", "idlefirst\nprint a", "stdout:a", "", kernels.StatusOK},
		{"reply without idle", "noidle\nprint a", "stdout:a | notice:", "did not say that it had finished", kernels.StatusOK},
		{"idle without reply", "noreply\nprint a", "stdout:a | notice:", "reply never came", kernels.StatusIncomplete},
		{"error without idle", "noidle\nerror E v", "error:E | notice:", "did not say", kernels.StatusError},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Grace: grace})
			got, r := run(t, c, tt.code)
			if !strings.HasPrefix(got, tt.want) || r.Status != tt.status || !strings.Contains(r.Reason, tt.reason) {
				t.Errorf("got %q %s %q", got, r.Status, r.Reason)
			}
			if got, r := run(t, c, "1+1"); got != "execute_result:2" || r.Status != kernels.StatusOK {
				t.Errorf("the next cell: %q %s", got, r.Status)
			}
		})
	}
}

// A large output that takes longer than the grace to arrive, behind a reply that was quick, is not given up.
func TestSlowOutputIsWaitedFor(t *testing.T) {
	const grace = 50 * time.Millisecond
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Grace: grace})
	for _, code := range []string{"slowly 150ms late", "print a\nslowly 250ms late"} {
		if got, r := run(t, c, code); !strings.HasSuffix(got, "stdout:late") || r.Reason != "" || r.Status != kernels.StatusOK {
			t.Errorf("got %q %s %q", got, r.Status, r.Reason)
		}
	}
	begun := time.Now()
	if got, r := run(t, c, "slowly 10m never"); !strings.Contains(r.Reason, "did not say") || r.Status != kernels.StatusOK {
		t.Errorf("got %q %s %q", got, r.Status, r.Reason)
	}
	if took := time.Since(begun); took > 40*grace {
		t.Errorf("waited %v", took)
	}
}

// What is foreign or broken is dropped and counted, and never ends the reader.
func TestBrokenMessagesCostNothing(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	got, r := run(t, c, "print a\nbadjson\nbadheader\nnotype\nmanykeys 5000\nforeign x\norphan y\nprint b")
	if got != "stdout:a | stdout:b" || r.Status != kernels.StatusOK {
		t.Fatalf("got %q %s", got, r.Status)
	}
	if n := c.Counters(); n.Broken != 4 || n.Foreign != 2 {
		t.Fatalf("counters %+v", n)
	}
}

func TestNoticesAtTheirPlace(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	got, _ := run(t, c, "print a\nelided 20000\nprint b\ndropped\nprint c")
	want := "stdout:a | notice:… 200,000 bytes (20,000 lines) of stdout left out here … | stdout:b | " +
		"notice:… 1 broken message dropped here: wrong signature … | stdout:c"
	if got != want {
		t.Fatalf("got %q", got)
	}
}

// Late output belongs to its own execution and is not lost.
func TestLateOutput(t *testing.T) {
	type late struct{ text, parent string }
	lates := make(chan late, 4)
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{Late: func(o kernels.Output, parent string) bool { lates <- late{o.Text, parent}; return false }})
	e := execute(t, c, "late 20ms from the background")
	read(t, e)
	if got, _ := run(t, c, "sleep 60ms\nprint mine"); got != "stdout:mine" {
		t.Fatalf("another's output among %q", got)
	}
	if l := <-lates; l != (late{"from the background\n", e.ID()}) {
		t.Fatalf("got %+v", l)
	}
}

// A kernel that keeps one parent for all its threads tags late output with requests of our own: it is the last
// execution's.
func TestLateOutputUnderAnotherParent(t *testing.T) {
	lates := make(chan string, 1)
	_, c := start(t, kernelstest.KernelOptions{OneParent: true}, kernels.Options{Late: func(_ kernels.Output, parent string) bool { lates <- parent; return false }})
	e := execute(t, c, "late 30ms x")
	read(t, e)
	if _, err := c.Complete(ctx(t), "x", 1); err != nil {
		t.Fatal(err)
	}
	if parent := <-lates; parent != e.ID() {
		t.Fatalf("given to %q", parent)
	}
}

// After a restart of the server the caller knows the executions that ended before.
func TestLateOutputOfAnEarlierConnection(t *testing.T) {
	k, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "late 50ms x")
	read(t, e)
	_ = c.Close()
	lates := make(chan string, 1)
	connect(t, k, kernels.Options{
		Earlier: func(id string) bool { return id == e.ID() },
		Late:    func(_ kernels.Output, parent string) bool { lates <- parent; return false },
	})
	if parent := <-lates; parent != e.ID() {
		t.Fatalf("given to %q", parent)
	}
}

func TestExecuteRefuses(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	_, err := c.Execute(ctx(t), kernels.ExecuteRequest{Code: "\xff"})
	if fault.KindOf(err) != fault.Invalid {
		t.Errorf("invalid UTF-8: %v", err)
	}
	e, err := c.Execute(ctx(t), kernels.ExecuteRequest{Code: "wait", MsgID: "mine"})
	if err != nil || e.ID() != "mine" {
		t.Fatal(err)
	}
	if found, ok := c.Execution("mine"); !ok || found != e {
		t.Error("not found by its id")
	}
	_, err = c.Execute(ctx(t), kernels.ExecuteRequest{Code: strings.Repeat("x", stream.MaxSend)})
	if fault.KindOf(err) != fault.Invalid || !strings.Contains(err.Error(), "too large") {
		t.Errorf("more than a shim takes: %v", err)
	}
	if _, err := c.Execute(ctx(t), kernels.ExecuteRequest{MsgID: "mine"}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("an id twice: %v", err)
	}
}

func TestInput(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e := execute(t, c, "input name?\npassword secret?")
	for _, tt := range []struct {
		prompt, answer string
		password       bool
	}{{"name?", "Ada", false}, {"secret?", "x", true}} {
		out, err := e.Next(ctx(t))
		if err != nil || out.Kind != kernels.OutputInput || out.Text != tt.prompt || out.Password != tt.password {
			t.Fatalf("got %+v, %v", out, err)
		}
		if err := e.Reply(ctx(t), tt.answer); err != nil {
			t.Fatal(err)
		}
		next(t, e, "stdout:"+tt.answer)
	}
	if err := e.Reply(ctx(t), "again"); fault.KindOf(err) != fault.Conflict {
		t.Fatalf("an answer that nobody waits for: %v", err)
	}
}

// Nobody can answer, so the code must not wait.
func TestNoStdin(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	e, err := c.Execute(ctx(t), kernels.ExecuteRequest{Code: "input name?"})
	if err != nil {
		t.Fatal(err)
	}
	if got := briefs(read(t, e)); got != "error:StdinNotImplementedError" {
		t.Fatalf("got %q", got)
	}
}

func TestCompleteAndInspect(t *testing.T) {
	_, c := start(t, kernelstest.KernelOptions{}, kernels.Options{})
	got, err := c.Complete(ctx(t), "pr", 2)
	if err != nil || len(got.Matches) != 2 || got.CursorEnd != 2 {
		t.Errorf("complete: %+v, %v", got, err)
	}
	seen, err := c.Inspect(ctx(t), "print", 3, 0)
	if err != nil || !seen.Found || seen.Data["text/plain"] == nil {
		t.Errorf("inspect: %+v, %v", seen, err)
	}
}
