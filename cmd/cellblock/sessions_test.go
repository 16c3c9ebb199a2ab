package main

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
	"cellblock/notebook"
)

func TestTables(t *testing.T) {
	ago := func(d time.Duration) string { return time.Now().Add(-d).UTC().Format(time.RFC3339) }
	var b strings.Builder
	if err := printSessions(&b, []sessionRow{
		{ID: "a", Language: "python", Profile: "lab", Image: "ml", State: "busy", BusySeconds: 90.4, Queue: 2, Executions: 7, LastUsed: ago(3 * time.Minute), Ends: ago(-5*time.Hour - time.Minute)},
		{ID: "b", Language: "python", State: "ended", Executions: 1, LastUsed: ago(2 * time.Hour), Ended: ago(time.Hour), Why: "the session was closed"},
		{ID: "idle", Language: "python", State: "culled", Executions: 1},
		{ID: "longer", State: "ended"},
	}); err != nil {
		t.Fatal(err)
	}
	if want := `SESSION   LANGUAGE   PROFILE   IMAGE   STATE                       CELLS   USED        ENDS
a         python     lab       ml      busy for 1 min, 2 waiting   7       3 min ago   in 5 h
b         python     -         -       ended                       1       2 h ago     60 min ago
idle      python     -         -       stopped                     1       -           -
longer    -          -         -       ended                       -       -           -
`; b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
	b.Reset()
	if err := printCells(&b, []cellRow{
		{ID: 1, Status: "ok", Code: "x = 1 …", Generation: 1, Started: ago(49 * time.Hour), Seconds: 1.5},
		{ID: 2, Status: "queued", Code: "x"},
	}); err != nil {
		t.Fatal(err)
	}
	if want := `CELL   STATUS   TOOK    STARTED      GENERATION   CODE
1      ok       1.5 s   2 days ago   1            x = 1 …
2      queued   -       -            -            x
`; b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

// An error that a tool tells is the command's own: its kind, and so the exit status, its words, its hint.
func TestFaultOf(t *testing.T) {
	failed := func(text string, kind any) *mcp.CallToolResult {
		r := mcp.NewToolResultError(text)
		if kind != nil {
			r.Meta = &mcp.Meta{AdditionalFields: map[string]any{mcpserver.ErrorMeta: map[string]any{"kind": kind}}}
		}
		return r
	}
	for _, tt := range []struct {
		result        *mcp.CallToolResult
		kind          fault.Kind
		message, hint string
	}{
		{failed("Error: gone\nHint: look", "not_found"), fault.NotFound, "gone", "look"},
		{failed("Error: gone", "busy"), fault.Busy, "gone", ""},
		{failed("an older server's", nil), fault.Internal, "an older server's", ""},
		{failed("Error: novel", "unheard of"), fault.Internal, "novel", ""},
		{failed("Error: odd", 7), fault.Internal, "odd", ""},
	} {
		if err := faultOf(tt.result); fault.KindOf(err) != tt.kind || err.Error() != tt.message || fault.Hint(err) != tt.hint {
			t.Errorf("%v: %v, %q, %q", tt.result.Content, fault.KindOf(err), err, fault.Hint(err))
		}
	}
}

// Who sees no sessions is told of the other servers on the data folder, unless he has named one.
func TestNoSessionsHere(t *testing.T) {
	inEmptyFolder(t)
	t.Setenv("CELLBLOCK_TOKEN", "token")
	data := os.Getenv("CELLBLOCK_DATA_DIR")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	here := serverOf(t, having())
	for _, url := range []string{"http://127.0.0.1:1/mcp", here} {
		held, err := takeSlot(data, serveSlot)
		if err != nil {
			t.Fatal(err)
		}
		defer held.release()
		if err := leaveAddress(data, held.name, url); err != nil {
			t.Fatal(err)
		}
	}
	for _, named := range []bool{false, true} {
		args := []string{"sessions", "ls"}
		if named {
			args = append(args, "--url", here)
		}
		var said strings.Builder
		root := newRoot()
		root.SetArgs(args)
		root.SetErr(&said)
		if err := root.ExecuteContext(t.Context()); err != nil || !strings.Contains(said.String(), "No sessions") ||
			strings.Contains(said.String(), "add --url http://127.0.0.1:1/mcp") == named || strings.Contains(said.String(), here) {
			t.Errorf("%v: %v, %q", args, err, said.String())
		}
	}
}

// A cell is shown as exec shows it, also one that has failed; what is not there is the command's own error.
func TestShowCell(t *testing.T) {
	c := clientOf(t, func(_ string, params object) (object, error) {
		args, _ := params["arguments"].(map[string]any)
		if params["name"] != "get_execution" || args["session_id"] != "a" || args["wait_seconds"] != 0.0 {
			t.Errorf("%v", params)
		}
		if args["execution_id"] != 3.0 {
			return object{"isError": true, "content": []any{object{"type": "text", "text": "Error: there is no such cell"}},
				"_meta": object{mcpserver.ErrorMeta: object{"kind": "not_found"}}}, nil
		}
		return object{"isError": true, "content": []any{object{"type": "text", "text": "ZeroDivisionError"},
			object{"type": "text", "text": `still running; read on with get_execution(session_id="a", execution_id=3, since=1)`}}}, nil
	})
	var stdout, stderr strings.Builder
	o := execOptions{session: "a"}
	if err := showCell(t.Context(), c, o, 3, &stdout, &stderr); err != nil || stdout.String() != "ZeroDivisionError\n" ||
		stderr.String() != "still running; read on with `cellblock sessions show a 3`\n" {
		t.Errorf("%v, %q, %q", err, stdout.String(), stderr.String())
	}
	if err := showCell(t.Context(), c, o, 4, &stdout, &stderr); fault.KindOf(err) != fault.NotFound {
		t.Errorf("%v", err)
	}
}

func TestCodeOf(t *testing.T) {
	code := codeOf(&notebook.Notebook{Cells: []*notebook.Cell{
		{Type: notebook.Markdown, Source: "text"}, {Type: notebook.Code, Source: " \n"}, {Type: notebook.Code, Source: "%%bash\nls"}, {Type: notebook.Raw, Source: "raw"},
	}})
	if len(code) != 1 || firstLine(code[0].Source) != "%%bash …" {
		t.Errorf("%+v", code)
	}
	if got := firstLine("\n" + strings.Repeat("x", 200)); got != strings.Repeat("x", 79)+" …" {
		t.Errorf("a long line: %q", got)
	}
	if got := firstLine("a\x1b[31m\tb"); got != "a [31m b" {
		t.Errorf("a line that is no text: %q", got)
	}
}
