package mcpserver

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/audit"
	"cellblock/mcpserver/transport"
	"cellblock/sessions"
)

// showsApps are the capabilities of a client that shows apps.
func showsApps() map[string]any {
	return map[string]any{"extensions": map[string]any{transport.AppsExtension: map[string]any{"mimeTypes": []string{transport.AppType}}}}
}

// withApp gives a world a page, whose items are the texts that a cell has printed.
func (w *world) withApp() *world {
	w.service.App = &App{Page: "<!doctype html><title>Cell</title>", Cell: func(e *sessions.Execution, q AppQuery) (cell AppCell) {
		for out := range e.SoFar(0) {
			cell.Items = append(cell.Items, AppPart{HTML: out.Text})
		}
		phase, _ := e.Phase()
		cell.Status, cell.Label = string(phase), phaseText(e.Info())
		return cell
	}}
	w.server = w.service.server()
	return w
}

// say sends a request and returns the answer as it came.
func (c *httpClient) say(id int, method string, params map[string]any) string {
	c.t.Helper()
	resp := c.do(c.t.Context(), id, method, params)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// hello is what a server says of itself.
func (c *httpClient) hello() string {
	if c.version >= mcp.ProtocolVersion20260728 {
		return c.say(1, "server/discover", map[string]any{})
	}
	return c.say(1, "initialize", map[string]any{"protocolVersion": c.version, "capabilities": c.capabilities, "clientInfo": map[string]any{"name": "t", "version": "1"}})
}

// Who shows no apps gets, byte for byte, what a server without them says.
func TestOthersHearNothingOfApps(t *testing.T) {
	for _, version := range []string{mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728} {
		a, b := dial(t, serveHTTP(t, newWorld(t)), version), dial(t, serveHTTP(t, newWorld(t).withApp()), version)
		if a, b := a.hello(), b.hello(); a != b || strings.Contains(b, "extensions") {
			t.Errorf("%s: the server says\n%s\nand not\n%s", version, b, a)
		}
		for _, method := range []string{"tools/list", "resources/list", "resources/templates/list"} {
			if a, b := a.say(2, method, map[string]any{}), b.say(2, method, map[string]any{}); a != b {
				t.Errorf("%s: %s is\n%s\nand not\n%s", version, method, b, a)
			}
		}
		call := map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "1+1"}}
		if strings.Contains(b.say(3, "tools/call", call), `"ui`) {
			t.Errorf("%s: a result tells of apps", version)
		}
		if got := b.call(t.Context(), 4, "show_cel", nil); !strings.Contains(got, "there is no tool") || strings.Contains(got, showCell) {
			t.Errorf("%s: %s", version, got)
		}
	}
}

func TestAppsAreListed(t *testing.T) {
	w := newWorld(t).withApp()
	url := serveHTTP(t, w)
	for _, version := range []string{mcp.ProtocolVersion20251125, mcp.ProtocolVersion20260728} {
		c := dialAs(t, url, version, showsApps())
		if got := c.hello(); !strings.Contains(got, `"extensions":{"`+transport.AppsExtension+`":{}}`) {
			t.Errorf("%s: %s", version, got)
		}
		var list struct {
			Result struct {
				Tools []struct {
					Name, Description string
					Meta              map[string]json.RawMessage `json:"_meta"`
				}
			}
		}
		if err := json.Unmarshal([]byte(c.say(2, "tools/list", map[string]any{})), &list); err != nil {
			t.Fatal(err)
		}
		for _, tool := range list.Result.Tools {
			want := map[string]string{"execute_python": `{"resourceUri":"` + appURI + `"}`, ExecuteFile: `{"resourceUri":"` + appURI + `"}`,
				showCell: `{"visibility":["app"]}`, interruptCell: `{"visibility":["app"]}`}[tool.Name]
			if got := string(tool.Meta["ui"]); got != want {
				t.Errorf("%s: %s has %s", version, tool.Name, got)
			}
			if strings.Contains(want, "visibility") && !strings.HasPrefix(tool.Description, "Not for models, which ") {
				t.Errorf("a model that is told of %s after all reads %q", tool.Name, tool.Description)
			}
		}
		if len(list.Result.Tools) != 17 {
			t.Errorf("%s: %d tools", version, len(list.Result.Tools))
		}
		got := c.say(3, "resources/read", map[string]any{"uri": appURI})
		for _, part := range []string{`"mimeType":"text/html;profile=mcp-app"`, `Cell\u003c/title`, `"prefersBorder":true`, `"connectDomains":[]`} {
			if !strings.Contains(got, part) && !strings.Contains(got, strings.ReplaceAll(part, `\u003c`, "<")) {
				t.Errorf("%s: the page: %s", version, got)
			}
		}
	}
	if w.scopes = nil; !strings.Contains(dialAs(t, url, mcp.ProtocolVersion20260728, showsApps()).say(4, "resources/read", map[string]any{"uri": appURI}), "Cell") {
		t.Error("the page needs a scope")
	}
}

// shownAt is what show_cell tells.
func (w *world) shownAt(args map[string]any) (cell AppCell, c called) {
	w.t.Helper()
	c = w.call(showCell, args)
	if !c.isError {
		if err := json.Unmarshal(c.structured, &cell); err != nil {
			w.t.Fatal(err)
		}
	}
	return cell, c
}

func TestShowCellWaitsForNews(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.withApp()
		w.execute("s", "print a\nsleep 15s\nprint b\nsleep 3s", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		used, _ := w.service.Sessions.Get(t.Context(), w.owner, "s")
		began, seen := time.Now(), ""
		for i, want := range []struct {
			after time.Duration
			items int
			ended bool
		}{{0, 1, false}, {10 * time.Second, 1, false}, {15 * time.Second, 2, false}, {18 * time.Second, 2, true}, {18 * time.Second, 2, true}} {
			cell, _ := w.shownAt(map[string]any{"session_id": "s", "execution_id": 1, "seen": seen})
			if time.Since(began) != want.after || len(cell.Items) != want.items || cell.Ended != want.ended || cell.Interrupts != !want.ended {
				t.Errorf("%d: after %v %+v", i, time.Since(began), cell)
			}
			seen = cell.Seen
		}
		if now, _ := w.service.Sessions.Get(t.Context(), w.owner, "s"); now.LastUsed.After(used.LastUsed.Add(18 * time.Second)) {
			t.Errorf("a look was a use: %v", now.LastUsed)
		}
		time.Sleep(time.Hour)
		before, _ := w.service.Sessions.Get(t.Context(), w.owner, "s")
		w.shownAt(map[string]any{"session_id": "s", "execution_id": 1})
		if now, _ := w.service.Sessions.Get(t.Context(), w.owner, "s"); now.LastUsed != before.LastUsed || now.Ends != before.Ends {
			t.Errorf("a look put off the end of the kernel: %+v", now)
		}
	})
}

// A page that shows a call whose number it does not know finds its cell by what the call runs, also before it has come.
func TestShowCellFindsARunningCell(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.withApp()
		w.run("s", "print x") // an earlier one of the same code
		found := func(args map[string]any) string {
			began := time.Now()
			cell, _ := w.shownAt(args)
			return strings.TrimSpace(cell.Status + " " + cell.Session + strings.Repeat("+", cell.Number) + " " + time.Since(began).String())
		}
		if got := found(map[string]any{"session_id": "s", "code": "print x"}); got != "absent  10s" {
			t.Errorf("one that has ended: %s", got)
		}
		if got := found(map[string]any{"session_id": "new", "code": "print x"}); got != "absent  10s" {
			t.Errorf("in no session: %s", got)
		}
		const code = "print x\nsleep 60s"
		late := func(args map[string]any) string {
			came := make(chan string)
			go func() { came <- found(args) }()
			time.Sleep(4 * time.Second)
			call := maps.Clone(args)
			call["wait_seconds"] = 0
			w.call("execute_python", call)
			return <-came
		}
		if got := late(map[string]any{"session_id": "later", "code": code}); got != "queued later+ 4s" {
			t.Errorf("in a session that it names: %s", got)
		}
		if got := found(map[string]any{"code": code}); got != "absent  10s" {
			t.Errorf("another conversation's cell: %s", got)
		}
		if got := late(map[string]any{"code": code}); !regexp.MustCompile(`^queued \w+-\w+-\d+\+ 4s$`).MatchString(got) {
			t.Errorf("in a session that is made for it: %s", got)
		}
		w.call("write_file", map[string]any{"session_id": "s", "path": "a.py", "content": "1"})
		w.call(ExecuteFile, map[string]any{"session_id": "s", "path": "/workspace/a.py", "wait_seconds": 0})
		w.owner = sessions.Owner{Subject: "mallory"}
		for _, args := range []map[string]any{{"session_id": "later", "code": code}, {"code": code}} {
			if got := found(args); got != "absent  10s" {
				t.Errorf("another owner's %v: %s", args, got)
			}
		}
	})
}

func TestWantedCells(t *testing.T) {
	for name, tt := range map[string]struct {
		want wanted
		info sessions.ExecutionInfo
		is   bool
	}{
		"its code":          {wanted{code: "1"}, sessions.ExecutionInfo{Code: "1", Phase: sessions.PhaseRunning}, true},
		"other code":        {wanted{code: "1"}, sessions.ExecutionInfo{Code: "1 ", Phase: sessions.PhaseQueued}, false},
		"it has ended":      {wanted{code: "1"}, sessions.ExecutionInfo{Code: "1", Phase: sessions.PhaseEnded}, false},
		"its script":        {wanted{path: "a/b.py"}, sessions.ExecutionInfo{File: "a/b.py", Code: "x", Phase: sessions.PhaseRunning}, true},
		"from the root":     {wanted{path: "/workspace/a/b.py"}, sessions.ExecutionInfo{File: "a/b.py", Phase: sessions.PhaseRunning}, true},
		"another script":    {wanted{path: "ab.py"}, sessions.ExecutionInfo{File: "b.py", Phase: sessions.PhaseRunning}, false},
		"code, no script":   {wanted{path: "b.py"}, sessions.ExecutionInfo{Code: "b.py", Phase: sessions.PhaseRunning}, false},
		"what a script has": {wanted{code: "x"}, sessions.ExecutionInfo{File: "b.py", Code: "x", Phase: sessions.PhaseRunning}, false},
	} {
		if tt.want.is(tt.info) != tt.is {
			t.Errorf("%s: not %v", name, tt.is)
		}
	}
}

// A page gets no more than its caller may read, and stops nothing that he may not stop.
func TestPagesAreRefusedWhatTheirCallersAre(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.withApp()
		w.execute("s", "print secret\nwait", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		all, cell := w.scopes, map[string]any{"session_id": "s", "execution_id": 1}
		for _, tt := range []struct {
			owner  string
			scopes []string
			tool   string
			says   string
		}{
			{"alice", []string{ScopeRead}, showCell, "secret"},
			{"alice", []string{"python:execute"}, showCell, "secret"},
			{"alice", []string{ScopeFilesRead, ScopeManage}, showCell, ScopeRead},
			{"mallory", all, showCell, "no session"},
			{"mallory", all, interruptCell, "no session"},
			{"alice", []string{ScopeRead, "python:execute"}, interruptCell, ScopeManage},
		} {
			w.owner, w.scopes = sessions.Owner{Subject: tt.owner}, tt.scopes
			got := w.call(tt.tool, cell)
			if said := got.String() + string(got.structured); got.isError == (tt.says == "secret") || !strings.Contains(said, tt.says) || got.isError && strings.Contains(said, "secret") {
				t.Errorf("%s of %s with %v: %s", tt.tool, tt.owner, tt.scopes, said)
			}
		}
		w.owner, w.scopes = sessions.Owner{Subject: "alice"}, []string{ScopeRead}
		if shown, _ := w.shownAt(cell); shown.Interrupts {
			t.Error("who may not interrupt has a button for it")
		}
		w.scopes = all
		for _, args := range []map[string]any{{"session_id": "s"}, {"session_id": "s", "execution_id": 0}, {"execution_id": 1}, {"session_id": "s", "execution_id": 1, "have": slices.Repeat([]string{"a"}, maxHave+1)}} {
			if _, got := w.shownAt(args); !got.isError {
				t.Errorf("%v is no error", args)
			}
		}
	})
}

// A person stops the cell that he saw, and no other; the model is told who has stopped it.
func TestInterruptCell(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.withApp()
		w.run("s", "print a")
		w.execute("s", "wait", map[string]any{"wait_seconds": 0})
		synctest.Wait()
		w.call(interruptCell, map[string]any{"session_id": "s", "execution_id": 1}).expect(t, false, "does not run")
		if cell, _ := w.shownAt(map[string]any{"session_id": "s", "execution_id": 2}); cell.Ended {
			t.Fatal("another cell was stopped")
		}
		w.call(interruptCell, map[string]any{"session_id": "s", "execution_id": 2}).expect(t, false, "interrupted")
		w.get("s", 2, nil).expect(t, true, "A person in the viewer interrupted this cell")
		w.call(interruptCell, map[string]any{"session_id": "s", "execution_id": 2}).expect(t, false, "does not run")
	})
}

// Looks are counted, apart from what the model calls: however many pages a conversation has open, it goes on.
func TestLooksAreCountedApart(t *testing.T) {
	w, lines := auditedWorld(t, false)
	w.service.Limiter = NewLimiter(1, 2)
	w.withApp()
	w.run("s", "print a")
	for i, want := range []bool{false, false, true, true} {
		if _, got := w.shownAt(map[string]any{"session_id": "s", "execution_id": 1}); got.isError != want {
			t.Errorf("look %d: %s", i, got)
		}
	}
	w.get("s", 1, nil).expect(t, false, "a")
	if got := looksIn(lines()); got != "answered s 1, denied s 0" {
		t.Errorf("%v", got)
	}
}

// looksIn are the looks that an audit log tells of.
func looksIn(lines []map[string]any) string {
	var looks []string
	for _, line := range lines {
		if line["tool"] == showCell {
			number, _ := line["execution"].(float64)
			looks = append(looks, fmt.Sprintf("%v %v %v", line["event"], line["session"], number))
		}
	}
	return strings.Join(looks, ", ")
}

// A page asks for news again and again: the audit log is told once who looks at which cell, and of each look that is refused.
func TestLooksAreToldOnce(t *testing.T) {
	w, lines := auditedWorld(t, false)
	w.withApp()
	w.run("s", "print a")
	w.run("s", "print b")
	alice := w.owner
	for _, number := range []int{1, 1, 2, 1, 3, 3} {
		w.shownAt(map[string]any{"session_id": "s", "execution_id": number})
	}
	w.owner = sessions.Owner{Subject: "mallory"}
	w.shownAt(map[string]any{"session_id": "s", "execution_id": 1})
	w.owner = alice
	w.get("s", 1, nil)
	w.get("s", 1, nil)
	all := lines()
	if got := looksIn(all); got != "answered s 1, answered s 2, answered s 0, answered s 0, answered s 0" {
		t.Errorf("%v", got)
	}
	if n := len(slices.DeleteFunc(all, func(line map[string]any) bool { return line["tool"] != getExecution })); n != 2 {
		t.Errorf("of 2 readings of the model's it is told %d", n)
	}
}

func TestToldAgain(t *testing.T) {
	var log lookLog
	now, one := time.Now(), audit.Entry{Subject: "ann", Session: "s", Execution: 1}
	elsewhere := one
	elsewhere.Address = "192.0.2.1"
	for i, tt := range []struct {
		entry audit.Entry
		after time.Duration
		first bool
	}{{one, 0, true}, {one, toldAgain - 1, false}, {elsewhere, toldAgain - 1, true}, {one, toldAgain, true}, {one, toldAgain + 1, false}} {
		if log.first(tt.entry, now.Add(tt.after)) != tt.first {
			t.Errorf("%d: not %v", i, tt.first)
		}
	}
	for i := range 2 * maxTold {
		log.first(audit.Entry{Execution: i}, now)
	}
	if len(log.looks) > maxTold {
		t.Errorf("%d are remembered", len(log.looks))
	}
}
