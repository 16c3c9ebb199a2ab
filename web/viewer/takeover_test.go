package viewer

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/web/viewer/live"
)

// Every route of editor and panel is closed to strangers, to those without its scope, to those of another owner and, where it
// changes something, to other sites' pages.
func TestWhoMayTakeOver(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	type route struct {
		pattern, query string
		body           any
		scope          string
		status         int // for who has the scope
	}
	run, read, filesRead, filesWrite := "python:execute", "sessions:read", "files:read", "files:write"
	table := []route{
		{"POST /s/{id}/run", "", map[string]any{"code": "print b"}, run, 202},
		{"POST /s/{id}/cells/{number}/run", "", nil, run, 202},
		{"POST /s/{id}/takeback", "", map[string]any{"cell": 9}, run, 404},
		{"POST /s/{id}/restore", "", nil, run, 409},
		{"POST /s/{id}/answer", "", map[string]any{"cell": 1, "prompt": "x", "line": ""}, run, 409},
		{"POST /s/{id}/complete", "", map[string]any{"code": "pr", "cursor": 2}, run, 200},
		{"POST /s/{id}/inspect", "", map[string]any{"code": "pr", "cursor": 2}, run, 200},
		{"GET /s/{id}/earlier", "", nil, read, 200},
		{"GET /s/{id}/variables", "", nil, read, 200}, // which says that of this language they are not known
		{"GET /s/{id}/details", "", nil, read, 200},
		{"GET /s/{id}/notebook", "", nil, read, 200},
		{"GET /s/{id}/files", "", nil, filesRead, 200},
		{"GET /s/{id}/preview", "?path=a.txt", nil, filesRead, 200},
		{"GET /s/{id}/picture", "?path=a.txt", nil, filesRead, 400},
		{"GET /s/{id}/download", "?path=a.txt", nil, filesRead, 200},
		{"POST /s/{id}/upload", "?path=b.txt&word=w&offset=0", []byte("x"), filesWrite, 200},
		{"POST /s/{id}/uploaded", "?path=b.txt", map[string]any{"word": "w", "size": 1}, filesWrite, 200},
		{"POST /s/{id}/delete", "?path=b.txt", map[string]any{}, filesWrite, 200},
	}
	put(t, p.signIn("ann", all...), "s", "a.txt", "text")
	known := map[string]bool{}
	stranger := &browser{pages: p}
	for _, r := range table {
		known[r.pattern] = true
		method, path, _ := strings.Cut(r.pattern, " ")
		path = strings.NewReplacer("{id}", "s", "{number}", "1").Replace(path) + r.query
		without := slices.DeleteFunc(slices.Clone(all), func(scope string) bool { return scope == r.scope })
		forger := p.signIn("ann", all...)
		forger.csrf = "forged"
		for name, c := range map[string]struct {
			b    *browser
			want int
		}{
			"a stranger": {stranger, 401}, "without " + r.scope: {p.signIn("ann", without...), 403}, "another owner": {p.signIn("bob", all...), 404},
			"a forger": {forger, 403},
		} {
			if name == "a forger" && method == "GET" || name == "another owner" && r.scope == filesWrite && !strings.HasSuffix(r.pattern, "delete") {
				continue // who sends a file to a session of his own makes it
			}
			if got := c.b.send(method, path, r.body); got.Code != c.want {
				t.Errorf("%s, %s: %d, want %d: %s", r.pattern, name, got.Code, c.want, got.Body)
			}
		}
		if got := p.signIn("ann", "sessions:read", r.scope).send(method, path, r.body); got.Code != r.status {
			t.Errorf("%s: %d, want %d: %s", r.pattern, got.Code, r.status, got.Body)
		}
	}
	for _, r := range slices.Concat(p.viewer.editorRoutes(), p.viewer.panelRoutes()) {
		if !known[r.pattern] {
			t.Errorf("nobody has tried %s", r.pattern)
		}
	}
}

func TestRunCell(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	b.want(202, "POST", "/s/s/run", map[string]any{"code": "print mine"})
	if info := b.ended("s", 2); info.Caller != sessions.Person || info.Code != "print mine" {
		t.Errorf("%+v", info)
	}
	for name, body := range map[string]any{
		"nothing": nil, "no JSON": []byte("x"), "two": []byte(`{"code":"a"}{"code":"b"}`), "more": []byte(`{"code":"a","caller":"me"}`),
		"empty": map[string]any{"code": " "}, "NUL": map[string]any{"code": "a\x00"}, "too long": map[string]any{"code": strings.Repeat("x", sessions.MaxCode+1)},
		"much too long": map[string]any{"code": strings.Repeat("x", maxCodeBody)},
	} {
		if got := b.send("POST", "/s/s/run", body); got.Code != 400 {
			t.Errorf("%s: %d %s", name, got.Code, got.Body)
		}
	}
	b.want(404, "POST", "/s/none/run", map[string]any{"code": "print a"})
	var cells []earlierCell
	if err := json.Unmarshal([]byte(b.want(200, "GET", "/s/s/earlier", nil)), &cells); err != nil || fmt.Sprint(cells) != "[{2 print mine} {1 print a}]" {
		t.Errorf("%v %v", cells, err)
	}
}

// Whoever writes is told what fits and what it is, unless a cell runs, which is not disturbed.
func TestAssist(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	at := map[string]any{"code": "pr", "cursor": 2}
	if got := b.want(200, "POST", "/s/s/complete", at); !strings.Contains(got, `{"matches":[{"text":"print"},{"text":"printf"}],"start":0,"end":2`) {
		t.Error(got)
	}
	if got := b.want(200, "POST", "/s/s/inspect", at); !strings.Contains(got, "a word") {
		t.Error(got)
	}
	b.want(400, "POST", "/s/s/complete", map[string]any{"code": "pr", "cursor": 3})
	b.want(202, "POST", "/s/s/run", map[string]any{"code": "wait"})
	b.until("s", func(d desk) bool { return d.Running == 2 })
	b.want(429, "POST", "/s/s/complete", at)
	b.want(409, "POST", "/s/s/interrupt", map[string]any{"cell": 1000})
	b.want(200, "POST", "/s/s/interrupt", nil)
	if info := b.ended("s", 2); !info.Result.Interrupt.Ran {
		t.Errorf("%+v", info)
	}
}

// A cell that waits is taken back by whoever may run cells and, where no person has sent it, stop what runs; one that runs is not.
func TestTakeBack(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	b.want(202, "POST", "/s/s/run", map[string]any{"code": "wait"})
	b.until("s", func(d desk) bool { return d.Running == 2 })
	e, err := p.sessions.Execute(t.Context(), b.who.owner, sessions.Request{SessionID: "s", Language: "python", Code: "print b", Caller: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	if page := b.want(200, "GET", "/s/s", nil); !strings.Contains(page, `aria-label="Take cell 3 back"`) || strings.Contains(page, "Take cell 2 back") {
		t.Error("the cell that waits, and it alone, has no button")
	}
	cell := map[string]any{"cell": 3}
	p.signIn("ann", "sessions:read", "sessions:manage").want(403, "POST", "/s/s/takeback", cell)
	runs := p.signIn("ann", "sessions:read", "python:execute")
	if got := runs.want(403, "POST", "/s/s/takeback", cell); !strings.Contains(got, "sessions:manage") {
		t.Error(got)
	}
	if page := runs.want(200, "GET", "/s/s", nil); strings.Contains(page, "data-manages") || !strings.Contains(page, `class="takeback others"`) {
		t.Error("who may not take back a model's cell has a button for it")
	}
	runs.want(202, "POST", "/s/s/run", map[string]any{"code": "print mine"})
	runs.want(200, "POST", "/s/s/takeback", map[string]any{"cell": 4})
	b.want(409, "POST", "/s/s/takeback", map[string]any{"cell": 2})
	b.want(404, "POST", "/s/s/takeback", map[string]any{"cell": 9})
	b.want(200, "POST", "/s/s/takeback", cell)
	if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled || !strings.Contains(err.Error(), "a person in the viewer took this cell back") {
		t.Error(err)
	}
	b.want(409, "POST", "/s/s/takeback", cell)
	b.want(200, "POST", "/s/s/interrupt", nil)
	if info := b.ended("s", 2); info.Result.Interrupt.Caller != sessions.Person {
		t.Errorf("%+v", info.Result.Interrupt)
	}
}

// until follows the desk of a session until it is so.
func (b *browser) until(id string, so func(desk) bool) (found desk) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	met := fault.New(fault.Conflict, "met")
	err := b.viewer.deskTopic(b.who, id)(ctx, "", func(e live.Event) error {
		if found = e.Data.(desk); so(found) {
			return met
		}
		return nil
	})
	if err != met {
		b.t.Fatalf("%v; at last %+v", err, found)
	}
	return found
}

// A cell that asks is answered by a person, once; who may only look is not shown what it asks.
func TestAnswer(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b, reader := p.signIn("ann", all...), p.signIn("ann", "sessions:read")
	for _, kind := range []string{"input", "password"} {
		b.want(202, "POST", "/s/s/run", map[string]any{"code": kind + " name?"})
		d := b.until("s", func(d desk) bool { return d.Prompt != nil })
		if d.Prompt.Text != "name?" || d.Prompt.Password != (kind == "password") || d.Prompt.Cell != d.Running {
			t.Errorf("%+v", d.Prompt)
		}
		if seen := reader.until("s", func(desk) bool { return true }); seen.Prompt != nil {
			t.Errorf("a reader sees %+v", seen.Prompt)
		}
		answer := map[string]any{"cell": d.Prompt.Cell, "prompt": d.Prompt.ID, "line": "Ada"}
		b.want(409, "POST", "/s/s/answer", map[string]any{"cell": d.Prompt.Cell, "prompt": "another", "line": ""})
		b.want(200, "POST", "/s/s/answer", answer)
		b.ended("s", d.Prompt.Cell)
		b.want(409, "POST", "/s/s/answer", answer)
	}
}

// What a lost kernel had is had again, and who asked for it is told what is not.
func TestRestore(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	for n := 2; n <= 3; n++ {
		b.want(202, "POST", "/s/s/run", map[string]any{"code": "input name?"})
		d := b.until("s", func(d desk) bool { return d.Prompt != nil && d.Prompt.Cell == n })
		b.want(200, "POST", "/s/s/answer", map[string]any{"cell": n, "prompt": d.Prompt.ID, "line": "Ada"})
		b.ended("s", n)
	}
	b.want(200, "POST", "/s/s/restart", nil)
	want := `{"complete":false,"ran":1,"said":"1 cell ran again. Cells 2 and 3 were left out: each reads input()."}`
	if got := strings.TrimSpace(b.want(200, "POST", "/s/s/restore", nil)); got != want {
		t.Error(got)
	}
	if info := b.ended("s", 4); info.Restores != 1 || info.Caller != sessions.Person {
		t.Errorf("%+v", info)
	}
}

// What becomes of a restoration is said in full.
func TestWhatWasRestored(t *testing.T) {
	ran := sessions.RestoredCell{Original: 1, Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}}
	left := func(n int) (cells []sessions.RestoredCell) {
		for i := range n {
			cells = append(cells, sessions.RestoredCell{Original: i + 2, Skipped: "it reads input()"})
		}
		return cells
	}
	failed := sessions.RestoredCell{Original: 2, Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusError}}}
	for want, r := range map[string]sessions.RestoreReport{
		"1 cell ran again.": {Cells: []sessions.RestoredCell{ran}},
		"0 cells ran again. 2 cells had been run again before.":                                                   {Done: 2},
		"1 cell ran again. Cell 2 was left out: it reads input().":                                                {Cells: append(left(1), ran)},
		"0 cells ran again. Cells 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 2 others were left out: each reads input().": {Cells: left(12)},
		"1 cell ran again. It stopped: the cell failed. 3 cells not reached. 1 earlier cell no longer kept.":      {Cells: []sessions.RestoredCell{ran, failed}, Stopped: "the cell failed.", Left: 3, Missing: 1},
		"1 cell ran again. Only the last kernel's cells: those of kernels before it did not run again.":           {Cells: []sessions.RestoredCell{ran}, From: 2, Earlier: 1},
	} {
		said, complete := restored(r)
		if said != want || complete == (strings.Contains(want, "left out") || r.Stopped != "" || r.Earlier > 0) {
			t.Errorf("%q, %v; want %q", said, complete, want)
		}
	}
}

// A server that ends waits for no restoration, and none goes on for who has signed out.
func TestRestoreEndsWithTheServer(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	b.want(200, "POST", "/s/s/restart", nil)
	p.viewer.Drain()
	want := `{"complete":false,"ran":0,"said":"0 cells ran again. It stopped: the server is shutting down. 1 cell not reached."}`
	if got := strings.TrimSpace(b.want(200, "POST", "/s/s/restore", nil)); got != want {
		t.Error(got)
	}
	permit := p.viewer.permitSignedIn(httptest.NewRequest("POST", "/s/s/restore", nil), b.who)
	if err := permit(""); err != nil {
		t.Error(err)
	}
	if err := p.signIns.End(b.who.signIn); err != nil {
		t.Fatal(err)
	}
	if err := permit(""); fault.KindOf(err) != fault.Unauthenticated {
		t.Errorf("signed out: %v", err)
	}
}

// Those who look see what the session uses.
func TestSamplesTopic(t *testing.T) {
	p := newPages(t)
	p.ran("ann", "s", "print a")
	b := p.signIn("ann", all...)
	met := fault.New(fault.Conflict, "met")
	var first map[string]any
	err := p.viewer.samplesTopic(b.who, "s")(t.Context(), "", func(e live.Event) error { first = e.Data.(map[string]any); return met })
	if err != met || first["first"] != true || len(first["samples"].([]sample)) != 1 {
		t.Errorf("%v %v", first, err)
	}
}
