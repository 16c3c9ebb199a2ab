package viewer

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/mcpserver"
	"cellblock/sessions"
)

// Whatever an error's message and hint are, people read sentences. What is a name stays as it is.
func TestErrorsAreSentences(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "",
		"this link was used already":          "This link was used already.",
		"you may use cellblock-python:latest": "You may use cellblock-python:latest.",
		"images_build.ca_file is not set":     "images_build.ca_file is not set.",
		"cellblock-r:latest is not there":     "cellblock-r:latest is not there.",
		"session \"s\" is closed":             "Session \"s\" is closed.",
		"Type it again.":                      "Type it again.",
		"is it there?":                        "Is it there?",
		"wait":                                "Wait.",
		"wait, or close one; or try again":    "Wait, or close one; or try again.",
		"…":                                   "…",
		"5 files are too many":                "5 files are too many.",
		"put large data into files; \"x\" is one": "Put large data into files; \"x\" is one.",
	} {
		if got := sentence(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for _, err := range []error{
		fault.New(fault.Invalid, "the image is not allowed").WithHint("name another"),
		fault.New(fault.Unauthenticated, "this link was used already, or is too old").WithHint("Type `cellblock open` again for another one."),
		fmt.Errorf("outer: %w", fault.New(fault.Busy, "full").WithHint("close_session one that you do not need; call again")),
		errors.New("bare"),
	} {
		body := bodyForPeople(err)
		for _, text := range []string{body.Message, body.Hint} {
			if text != "" && (!strings.HasSuffix(text, ".") || strings.HasSuffix(text, "..")) {
				t.Errorf("%q is no sentence", text)
			}
		}
	}
}

// The hint that a model gets with an error stands below it, without what only models can do; most errors have none.
func TestHintsOfErrors(t *testing.T) {
	p := newPages(t)
	p.viewer.ErrorHint = mcpserver.Config{Sessions: p.sessions, Images: noImages{}, Toolsets: []string{mcpserver.ToolsetImages}}.ErrorHints()
	p.ran("ann", "s", "print a")
	e, err := p.sessions.Execution(t.Context(), sessions.Owner{Issuer: "test", Subject: "ann"}, "s", 1)
	if err != nil {
		t.Fatal(err)
	}
	s := p.viewer.newShown("s", e, e.Info())
	for _, tt := range []struct{ name, value, want string }{
		{"ModuleNotFoundError", "No module named 'torch'", `<p class="remark">torch is not installed, and the kernel has no network to install it: use what is there ` +
			`(importlib.metadata.distributions() lists it), or put a pure Python module into the workspace.</p>`},
		{"FileNotFoundError", "[Errno 2] No such file or directory: 'a.csv'", "none of your machine: it writes there, and what is not there can be uploaded.</p>"},
		{"ModuleNotFoundError", "No module named '<script>'", "&lt;script&gt; is not installed"},
		{"KeyError", "'region'", ""},
	} {
		html := string(s.html(&item{Kind: "failed", out: kernels.Output{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: tt.name, Value: tt.value}}}))
		if !strings.Contains(html, tt.want) || strings.Contains(html, "remark") != (tt.want != "") || strings.Contains(html, "install_package") {
			t.Errorf("%s: %s has\n%s", tt.name, tt.value, html)
		}
	}
}

// What a model is told of what a cell has printed stands once, behind all of it, whether the page is told or asks, and anew where
// something clears the cell afterwards.
func TestHintsOfWhatIsPrinted(t *testing.T) {
	p := newPages(t)
	p.viewer.PrintedHint = mcpserver.Config{Sessions: p.sessions, Images: noImages{}, Toolsets: []string{mcpserver.ToolsetImages}}.PrintedHints()
	b := p.signIn("ann", all...)
	p.ran("ann", "s", "print bash: \x1b[1mtree\x1b[0m: command not found\nresult after")
	p.ran("ann", "s", "print nothing of the kind")
	const hint = `<p class="remark">tree is not installed.</p>`
	page := &toldPage{cells: map[int]string{}, heads: map[int]string{}, items: map[int][]keyedHTML{}}
	b.hear("s", page, func() bool { return page.cursor == "3" })
	if !page.shows(1, hint) || page.shows(2, "remark") {
		t.Errorf("it is told of %+v", page)
	}
	views, err := p.viewer.cellViews(t.Context(), b.who.owner, "s", 1, 2)
	if err != nil {
		t.Fatal(err)
	}
	if items := views[0].Items; len(items) != 3 || string(items[2].HTML) != hint || len(views[1].Items) != 1 {
		t.Errorf("asked, it has %+v", views)
	}
	e, err := p.sessions.Execution(t.Context(), b.who.owner, "s", 1)
	if err != nil {
		t.Fatal(err)
	}
	s := p.viewer.newShown("s", e, e.Info())
	s.pull(e, &budget{outputs: maxPull, bytes: pullBytes})
	s.advise(nil)
	if _, changed, _ := s.take(); len(changed) != 3 || changed[2].Key != adviceKey {
		t.Errorf("%d items are new", len(changed))
	}
	s.advise(nil)
	if _, changed, _ := s.take(); len(changed) != 0 {
		t.Errorf("%d items are told twice", len(changed))
	}
	s.clear()
	if cleared, changed, _ := s.take(); !cleared || len(changed) != 1 {
		t.Errorf("after a clear %d items are told", len(changed))
	}
}

// noImages is a library that is never asked.
type noImages struct{ mcpserver.ImageLibrary }

// A cell is said to have been interrupted also where that took a restart of its kernel, with why; a kernel is said to have died only where
// it did so of itself.
func TestHowACellEnded(t *testing.T) {
	interrupt := sessions.InterruptReport{Ran: true, Rung: sessions.RungRestart}
	died := func(asked bool) kernels.Result {
		return kernels.Result{Status: kernels.StatusDied, Death: &kernels.Death{Cause: "the kernel is gone", Asked: asked}}
	}
	for name, tt := range map[string]struct {
		result                 sessions.Result
		status, label, failure string
	}{
		"it heard the interrupt":  {sessions.Result{Result: kernels.Result{Status: kernels.StatusError}, Interrupt: interrupt}, "stopped", "interrupted", ""},
		"it needed a restart":     {sessions.Result{Result: died(true), Interrupt: interrupt}, "stopped", "interrupted", "The kernel is gone."},
		"its kernel died":         {sessions.Result{Result: died(false)}, "failed", "kernel died", "The kernel is gone."},
		"its kernel died as well": {sessions.Result{Result: died(false), Interrupt: interrupt}, "failed", "kernel died", "The kernel is gone."},
		"its kernel was replaced": {sessions.Result{Result: died(true), Restarted: true}, "stopped", "kernel restarted", "The kernel is gone."},
		"its session was closed":  {sessions.Result{Result: died(true)}, "stopped", "kernel stopped", "The kernel is gone."},
		"its files were too many": {sessions.Result{Result: kernels.Result{Status: kernels.StatusError}, Interrupt: interrupt, Overrun: 11 << 30}, "stopped", "interrupted",
			"It was stopped because the workspace held 11 GiB, more than it may."},
		"they cost it the kernel": {sessions.Result{Result: died(true), Interrupt: interrupt, Overrun: 11 << 30}, "stopped", "interrupted",
			"It was stopped because the workspace held 11 GiB, more than it may. The kernel is gone."},
		"it lost a process": {sessions.Result{Result: kernels.Result{Status: kernels.StatusError, OOMKills: 1}}, "failed", "error",
			"A process of this session was killed while the cell ran, for want of memory."},
		"it went on without some": {sessions.Result{Result: kernels.Result{Status: kernels.StatusOK, OOMKills: 1200}}, "ok", "ok",
			"1,200 processes of this session were killed while the cell ran, for want of memory."},
		"its time was over": {sessions.Result{Result: died(true), Interrupt: interrupt, TimedOut: true}, "failed", "timed out", "The kernel is gone."},
	} {
		view := viewOf(sessions.ExecutionInfo{Phase: sessions.PhaseEnded, Result: tt.result})
		if view.Status != tt.status || view.Label != tt.label || view.Failure != tt.failure {
			t.Errorf("%s: %s, %q, %q", name, view.Status, view.Label, view.Failure)
		}
	}
}

// What to do is said where a kernel had too little memory, and not where it died of something else.
func TestWhatToDoAboutADeath(t *testing.T) {
	for oom, want := range map[bool]string{true: "Work on the data in pieces, use smaller types, or delete what is not needed.", false: ""} {
		r := sessions.Result{Result: kernels.Result{Status: kernels.StatusDied, Death: &kernels.Death{Cause: "the kernel is gone", OOM: oom}}}
		if view := viewOf(sessions.ExecutionInfo{Phase: sessions.PhaseEnded, Result: r}); view.Hint != want {
			t.Errorf("out of memory %v: %q", oom, view.Hint)
		}
	}
}

// What never ran can be run by whom may, by a button; nothing else can.
func TestWhatNeverRanCanBeRun(t *testing.T) {
	never := fault.New(fault.Unavailable, "the server restarted before this cell ran").WithHint("run it again")
	ended := sessions.ExecutionInfo{Number: 1, Phase: sessions.PhaseEnded}
	withErr := func(change func(*sessions.ExecutionInfo)) sessions.ExecutionInfo {
		info := ended
		info.Err = never
		change(&info)
		return info
	}
	for name, tt := range map[string]struct {
		info sessions.ExecutionInfo
		want bool
	}{
		"it never ran":     {withErr(func(*sessions.ExecutionInfo) {}), true},
		"it was cancelled": {withErr(func(info *sessions.ExecutionInfo) { info.Result.Cancelled = true }), false},
		"it was taken back": {withErr(func(info *sessions.ExecutionInfo) {
			info.Err = fault.New(fault.Cancelled, "a person in the viewer took this cell back before it ran")
		}), false},
		"a script": {withErr(func(info *sessions.ExecutionInfo) { info.File = "a.py" }), true},
		"it ran":   {ended, false},
	} {
		html, err := partial("cell-head", viewOf(tt.info))
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(html, `class="again"`); got != tt.want {
			t.Errorf("%s: %s", name, html)
		}
		if tt.info.Err != nil && (!strings.Contains(html, "before ") || strings.Contains(strings.ToLower(html), "run it again.")) {
			t.Errorf("%s says %s", name, html)
		}
	}
	p := newPages(t)
	b := p.signIn("ann", all...)
	for i, file := range []string{"", "a.py"} {
		if _, err := p.sessions.Execute(t.Context(), b.who.owner, sessions.Request{SessionID: "s", Language: "python", Code: "print 1", File: file, Caller: "model"}); err != nil {
			t.Fatal(err)
		}
		b.ended("s", 2*i+1)
		b.want(202, "POST", fmt.Sprintf("/s/s/cells/%d/run", 2*i+1), nil)
		if again := b.ended("s", 2*i+2); again.Code != "print 1" || again.File != file || again.Caller != sessions.Person {
			t.Errorf("what ran is %q of %q, of %s", again.Code, again.File, again.Caller)
		}
	}
}

func TestHintsForPeople(t *testing.T) {
	for hint, want := range map[string]string{
		"": "",
		"list_sessions names the ones there are; executing code with a session_id starts it":          "",
		"wait a minute; close_session makes room":                                                     "wait a minute",
		"close_session makes room; or try again later":                                                "try again later",
		"set images_build.ca_file":                                                                    "set images_build.ca_file",
		"close_session one that you do not need; idle: a, b; or try again later":                      "close one that you do not need; idle: a, b; or try again later",
		"close_session one that you do not need; or try again later":                                  "close one that you do not need; or try again later",
		"use another session_id, or close_session this one first: its files stay":                     "use another session, or close this one first: its files stay",
		"wait for them, use another session_id for work that can run beside it, or interrupt_session": "wait for them, use another session for work that can run beside it, or interrupt it",
		"make it again from the same packages (create_image). Or close the session (close_session keeps its files), and name another image in its next call.": "make it again from the same packages. Or close the session, and name another image in its next call.",
		"call again later, its variables may be there still; restart_session gives it up for a fresh kernel":                                                  "try again later, its variables may be there still",
	} {
		if got := hintForPeople(hint); got != want {
			t.Errorf("%q became %q, want %q", hint, got, want)
		}
	}
	page := newPages(t).signIn("ann", all...).page("GET", "/s/nosuch", "same-origin", nil)
	if text := page.Body.String(); page.Code != http.StatusNotFound || strings.Contains(text, "list_sessions") || strings.Contains(text, "session_id") {
		t.Errorf("%d: %s", page.Code, text)
	}
}

// A cell that never ran, and one that cannot be read, are told of as the page's own errors are. What a button beside it does is not said.
func TestHintsOfCells(t *testing.T) {
	never := fault.New(fault.Unavailable, "the cell did not run").WithHint("call again; restart_session gives the session a fresh kernel")
	if view := viewOf(sessions.ExecutionInfo{Phase: sessions.PhaseEnded, Err: never}); view.Failure != "The cell did not run." || view.Hint != "" {
		t.Errorf("the cell that never ran says %q, %q", view.Failure, view.Hint)
	}
	p := newPages(t)
	p.ran("ann", "s", "print 1")
	b := block{v: p.viewer, owner: p.signIn("ann", all...).who.owner, id: "s"}
	if view := b.view(t.Context(), sessions.ExecutionInfo{Number: 9}); view.Failure == "" || toolWords.MatchString(view.Hint) {
		t.Errorf("the cell that is not there says %q, %q", view.Failure, view.Hint)
	}
}
