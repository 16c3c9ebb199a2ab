package mcpserver

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

// content is one of a resource's contents.
type content struct {
	URI, MIMEType, Text, Blob string
	Meta                      map[string]struct{ Offset, Next, Characters, Lines int64 } `json:"_meta"`
}

// read is resources/read.
func (w *world) read(uri string) ([]content, *mcp.JSONRPCErrorDetails) {
	w.t.Helper()
	raw, rpcError := w.request(w.t.Context(), "resources/read", map[string]any{"uri": uri})
	if rpcError != nil {
		return nil, rpcError
	}
	var r struct{ Contents []content }
	if err := json.Unmarshal(raw, &r); err != nil {
		w.t.Fatal(err)
	}
	return r.Contents, nil
}

var moreAt = regexp.MustCompile(`\n… [\d,]+ characters? more: (\S+) …$`)

// What a result leaves out can be read to its last character: by the tool, and as a resource.
func TestWholeOutputCanBeRead(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		var want strings.Builder
		for i := range 30_000 {
			fmt.Fprintf(&want, "%d\n", i)
		}
		got := w.run("s", "count 30000")
		got.expect(t, false, "0\n1\n2\n", "left out here; get_execution(", "29999\n[session s · cell 1 · ok")
		gap := regexp.MustCompile(`(?s)(.*)\n… [\d,]+ characters \([\d,]+ lines\) left out here; get_execution\(session_id="s", execution_id=1, offset=(\d+)\)`).FindStringSubmatch(got.texts[0])
		if gap == nil {
			t.Fatal(got.texts[0][19_000:21_000])
		}
		offset, _ := strconv.Atoi(gap[2])
		if !strings.HasPrefix(want.String(), gap[1]+"\n") || offset != len(gap[1]) {
			t.Errorf("the head of %d characters, the gap is said to be at %d", len(gap[1]), offset)
		}

		paged, calls := "", 0
		for next := "0"; next != ""; calls++ {
			page := w.get("s", 1, map[string]any{"offset": json.Number(next)})
			paged += page.texts[0]
			next = ""
			if m := regexp.MustCompile(`offset=(\d+)\)\]$`).FindStringSubmatch(page.texts[1]); m != nil {
				next = m[1]
			}
		}
		w.get("s", 1, map[string]any{"offset": want.Len()}).expect(t, false, "characters 168,890 to 168,890 of 168,890")
		w.get("s", 1, map[string]any{"offset": want.Len() + 1}).expect(t, true, "offset: the output has 168,890 characters", "offset=0")
		if paged != want.String() || calls != (want.Len()+defaultBudget.chars-1)/defaultBudget.chars {
			t.Errorf("%d characters in %d pages, want %d", len(paged), calls, want.Len())
		}

		paged, calls = "", 0
		for uri := "cellblock://sessions/s/executions/1/output"; uri != ""; calls++ {
			contents, rpcError := w.read(uri)
			if rpcError != nil || len(contents) != 1 || contents[0].MIMEType != "text/plain" || contents[0].URI != uri {
				t.Fatal(uri, rpcError, len(contents))
			}
			m := contents[0].Meta[ExecutionMeta]
			if m.Characters != int64(want.Len()) || m.Lines != 30_000 || m.Offset != int64(len(paged)) {
				t.Errorf("%+v", m)
			}
			paged += contents[0].Text[:m.Next-m.Offset]
			uri = ""
			if more := moreAt.FindStringSubmatch(contents[0].Text); more != nil {
				uri = more[1]
			}
		}
		if paged != want.String() {
			t.Errorf("%d characters in %d readings", len(paged), calls)
		}
		if c, _ := w.read("cellblock://sessions/s/executions/1/output?limit=1000000"); c[0].Text != want.String() {
			t.Error("not in one piece")
		}
		if c, _ := w.read("cellblock://sessions/s/executions/1/output?offset=168880&limit=5"); !strings.HasPrefix(c[0].Text, want.String()[168880:168885]+"\n… 5 characters more") {
			t.Errorf("%q", c[0].Text)
		}
		if c, _ := w.read("cellblock://sessions/s/executions/1/output?offset=999999"); c[0].Text != "" {
			t.Errorf("behind the end: %q", c[0].Text)
		}
	})
}

// A client that knows resource links gets one, and only where something was left out; an older one would refuse the result.
func TestLinks(t *testing.T) {
	long := stdout(strings.Repeat("x\ny\n", 25_000))
	for _, tt := range []struct {
		name  string
		at    place
		out   kernels.Output
		links int
		hint  bool
	}{
		{"short", place{session: "s", execution: 1, links: true}, stdout("x"), 0, false},
		{"long", place{session: "s", execution: 1, links: true}, long, 1, true},
		{"an older client", place{session: "s", execution: 1}, long, 0, true},
		{"a part", place{session: "s", execution: 1, links: true, partial: true}, long, 1, false},
		{"nowhere", place{}, long, 0, false},
		{"lost before it came here", place{session: "s", execution: 1, links: true}, elided(stream.Elided{Stream: "stdout", Bytes: 5}), 0, false},
	} {
		a := newArea()
		a.place = tt.at
		a.add(tt.out)
		links, hint := 0, false
		for _, b := range a.blocks(defaultBudget, bounds{}) {
			switch c := b.(type) {
			case mcp.ResourceLink:
				links++
				if c.URI != "cellblock://sessions/s/executions/1/output" {
					t.Errorf("%s: %s", tt.name, c.URI)
				}
			case mcp.TextContent:
				hint = hint || strings.Contains(c.Text, "get_execution(")
			}
		}
		if links != tt.links || hint != tt.hint {
			t.Errorf("%s: %d links, hint %v", tt.name, links, hint)
		}
	}
	for revision, want := range map[string]bool{"": false, "2024-11-05": false, "2025-03-26": false, "2025-06-18": true, "2025-11-25": true, "2026-07-28": true} {
		if knowsLinks(revision) != want {
			t.Error(revision)
		}
	}
}

func TestSingleOutputs(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a\npng\nstderr b\nresult 7\nerror E x")
		for index, want := range []struct{ mime, text string }{{"text/plain", "a\n"}, {"image/png", ""}, {"text/plain", "b\n"}, {"text/plain", "7"}, {"text/plain", "Traceback\nE: x"}} {
			contents, rpcError := w.read("cellblock://sessions/s/executions/1/outputs/" + strconv.Itoa(index))
			if rpcError != nil || contents[0].MIMEType != want.mime || contents[0].Text != want.text || (contents[0].Blob == "") != (want.mime == "text/plain") {
				t.Errorf("%d: %+v %+v", index, contents, rpcError)
			}
		}
		contents, _ := w.read("cellblock://sessions/s/executions/1/outputs/1")
		if len(contents) != 2 || contents[1].Text != "Figure" {
			t.Errorf("all forms: %+v", contents)
		}
		whole, _ := w.read("cellblock://sessions/s/executions/1/output")
		if want := "a\n[image/png: cellblock://sessions/s/executions/1/outputs/1]\n[stderr] b\n7\nTraceback\nE: x"; whole[0].Text != want {
			t.Errorf("whole: %q", whole[0].Text)
		}
		w.run("s", "print now\nlate 1s from a thread")
		time.Sleep(2 * time.Second)
		if whole, _ := w.read("cellblock://sessions/s/executions/2/output"); whole[0].Text != "now\nfrom a thread\n" {
			t.Errorf("late: %q", whole[0].Text)
		}
		if one, err := w.read("cellblock://sessions/s/executions/2/outputs/1"); err != nil || one[0].Text != "from a thread\n" {
			t.Errorf("late: %+v", one)
		}
	})
}

func TestFormsOfAnOutput(t *testing.T) {
	out := display("audio/wav", "UklGRg==\n", "application/json", map[string]int{"a": 1}, "text/html", []string{"<p>", "x"}, "image/svg+xml", "<svg/>", "video/mp4", "no base64!")
	var got []string
	for _, c := range formsOf(out, "u") {
		switch f := c.(type) {
		case mcp.TextResourceContents:
			got = append(got, f.MIMEType+" "+f.Text)
		case mcp.BlobResourceContents:
			got = append(got, f.MIMEType+" blob "+f.Blob)
		}
	}
	if want := `application/json {"a":1}|audio/wav blob UklGRg==|image/svg+xml <svg/>|text/html <p>x|video/mp4 nobase64!`; strings.Join(got, "|") != want {
		t.Errorf("got %s", strings.Join(got, "|"))
	}
}

func TestResourcesThatAreNotThere(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		for _, uri := range []string{
			"cellblock://sessions/s/executions/2/output", "cellblock://sessions/t/executions/1/output", "cellblock://sessions/s/executions/0/output",
			"cellblock://sessions/s/executions/1/output?offset=-1", "cellblock://sessions/s/executions/1/output?ofset=1",
			"cellblock://sessions/s/executions/1/outputs/7", "cellblock://sessions/s/executions/1/outputs/-1", "cellblock://sessions/s/executions/1/outputs/x",
			"cellblock://sessions/../executions/1/output", "cellblock://sessions/s/executions/1/output/x", "cellblock://elsewhere/s/executions/1/output", "file:///etc/passwd", "",
		} {
			if c, rpcError := w.read(uri); rpcError == nil {
				t.Errorf("%s: %+v", uri, c)
			}
		}
	})
}

// Resources are their owner's, and need the scope to read sessions.
func TestResourcesBelongToSomebody(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		lists := func() (resources, templates string) {
			a, _ := w.request(t.Context(), "resources/list", map[string]any{})
			b, _ := w.request(t.Context(), "resources/templates/list", map[string]any{})
			return string(a), string(b)
		}
		if r, tt := lists(); !strings.Contains(r, `"uri":"cellblock://sessions/s/executions/1/output"`) || strings.Count(tt, "uriTemplate") != 5 {
			t.Errorf("%s\n%s", r, tt)
		}
		w.owner = sessions.Owner{Subject: "mallory"}
		if _, rpcError := w.read("cellblock://sessions/s/executions/1/output"); rpcError == nil || !strings.Contains(rpcError.Message, "there is no session") {
			t.Errorf("another owner: %+v", rpcError)
		}
		if r, _ := lists(); strings.Contains(r, "executions") {
			t.Errorf("another owner: %s", r)
		}
		w.owner, w.scopes = sessions.Owner{Subject: "alice"}, []string{"python:execute"}
		if _, rpcError := w.read("cellblock://sessions/s/executions/1/output"); rpcError == nil || !strings.Contains(rpcError.Message, `needs the scope "sessions:read"`) {
			t.Errorf("without the scope: %+v", rpcError)
		}
		if r, tt := lists(); !strings.Contains(r, `"resources":[]`) || !strings.Contains(tt, `"resourceTemplates":[]`) {
			t.Errorf("without the scope: %s %s", r, tt)
		}
	})
}

// A list tells of each session, alive or not, enough to choose one.
func TestListedNotebookTellsOfItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := storetest.NewMemory()
		w := newWorld(t, func(c *sessions.Config) { c.Store = store })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.run("s", "print a")
		listed := func() string {
			raw, _ := w.request(t.Context(), "resources/list", map[string]any{})
			return string(raw)
		}
		expectText(t, listed(), `"annotations":{"lastModified":"2000-01-01T00:00:00Z"}`, `"description":"Python, 1 cell"`, `"executions":1`)
		time.Sleep(time.Minute)
		w.call("close_session", map[string]any{"session_id": "s"})
		expectText(t, listed(), `"description":"Python, 1 cell; the session ended at 2000-01-01T00:01:00Z: the session was closed"`,
			`"ended":"2000-01-01T00:01:00Z"`, `"language":"python"`, `"why":"the session was closed"`)
	})
}

// A transcript is the same in pages as in one, however its text came.
func FuzzTranscript(f *testing.F) {
	f.Add("a\nb\r", "c\x1b[31m\n", "漢字\n", int64(2), int64(3))
	f.Fuzz(func(t *testing.T, a, b, c string, offset, size int64) {
		if offset < 0 || size <= 0 || offset > 1<<20 || size > 1<<20 {
			return
		}
		write := func(from, to int64) *transcript {
			tr := &transcript{from: from, to: to}
			tr.screen.Out = tr.take
			for i, out := range []kernels.Output{stdout(a), stdout(b), stderr(c), result(a), stdout(c), stdout(a)} {
				out.Text = strings.ToValidUTF8(out.Text, "?")
				tr.add(sessions.Numbered{Output: out, Index: i, Next: i + 1})
			}
			tr.screen.Flush()
			return tr
		}
		whole := []rune(write(0, 1<<40).text.String())
		part := write(offset, offset+size)
		from, to := min(offset, int64(len(whole))), min(offset+size, int64(len(whole)))
		if got, want := part.text.String(), string(whole[from:to]); got != want || part.chars != int64(len(whole)) {
			t.Errorf("%q of %q, want %q (%d of %d)", got, string(whole), want, part.chars, len(whole))
		}
		if !utf8.ValidString(part.text.String()) {
			t.Error("no text")
		}
	})
}

func TestFaultsKeepTheirText(t *testing.T) {
	if got := fault.Text(notAnAddress("x\x1b[31m")); strings.Contains(got, "\x1b") || !strings.Contains(got, "Hint: ") {
		t.Error(got)
	}
}

// An address that is read names what it says: within bounds, and in its usual spelling it is the same again.
func FuzzAddresses(f *testing.F) {
	for _, uri := range []string{notebookURI("s"), outputURI("s", 1) + "?offset=0&limit=5", "cellblock://sessions/s/executions/2/outputs/3", fileURI("s", "a b/ü%.csv") + "?offset=7",
		"cellblock://sessions/s/log", "cellblock://sessions//files//", "cellblock://sessions/s/files/../x?offset=-1", "cellblock://u@sessions/s/notebook#x", "cellblock://sessions/%2f/executions/9223372036854775808/output"} {
		f.Add(uri)
	}
	f.Fuzz(func(t *testing.T, uri string) {
		a, err := parseAddress(uri, maxPage)
		switch {
		case err != nil && fault.KindOf(err) != fault.NotFound:
			t.Errorf("%q: %v", uri, err)
		case err == nil && (a.index < 0 || a.offset < 0 || a.limit < 1 || a.limit > maxPage || (a.execution < 1) != (a.part != "")):
			t.Errorf("%q is read as %+v", uri, a)
		}
		file, err := parseFileURI(uri)
		if err != nil {
			if fault.KindOf(err) != fault.NotFound {
				t.Errorf("%q: %v", uri, err)
			}
			return
		}
		again, err := parseFileURI(fileURI(url.PathEscape(file.session), file.path))
		if err != nil || file.offset < 0 || again.session != file.session || again.path != file.path {
			t.Errorf("%q is read as %+v, and its usual spelling as %+v: %v", uri, file, again, err)
		}
	})
}
