package mcpserver

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"unicode/utf8"

	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/files"
)

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func pngOf(t testing.TB, width, height int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func (w *world) write(path string, content []byte) called {
	w.t.Helper()
	return w.call("write_file", map[string]any{"session_id": "s", "path": path, "content": base64.StdEncoding.EncodeToString(content), "encoding": "base64"})
}

func TestFileTools(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		of := func(path string) map[string]any { return map[string]any{"session_id": "s", "path": path} }
		w.call("list_files", of("")).expect(t, true, `there is no session "s"`, "write_file")
		w.call("write_file", map[string]any{"session_id": "s", "path": "/workspace/sub/a.py", "content": "print(1)\nx = 2\n"}).
			expect(t, false, "Wrote sub/a.py in session s, 15 bytes.")
		w.call("write_file", map[string]any{"session_id": "s", "path": "sub/a.py", "content": "print(1)\n"}).expect(t, false, "Replaced sub/a.py")
		w.call("write_file", map[string]any{"session_id": "s", "path": "a", "content": "%", "encoding": "base64"}).expect(t, true, "content:")
		w.call("write_file", map[string]any{"session_id": "s", "path": "a", "content": "%", "encoding": "hex"}).expect(t, true, "text or base64, got hex")
		w.write("plot.png", pngOf(t, 3000, 20)).expect(t, false, "plot.png")
		w.write("fake.png", []byte("\x89PNG\r\n\x1a\nbroken")).expect(t, false)
		w.write("data.bin", []byte{0, 1, 2}).expect(t, false)

		got := w.call("list_files", map[string]any{"session_id": "s"})
		got.expect(t, false, "data.bin · 3 bytes · ", "sub/ · folder · ", "sub/a.py · 9 bytes", "[4 files, ", "1 folder]")
		var listed struct {
			Files []struct {
				Path, Type string
				Size       int64
			}
			TotalFiles int `json:"total_files"`
		}
		if err := json.Unmarshal(got.structured, &listed); err != nil || listed.TotalFiles != 4 || len(listed.Files) != 5 || listed.Files[0].Type != "file" {
			t.Errorf("%s %v", got.structured, err)
		}
		w.call("list_files", map[string]any{"session_id": "s", "glob": "*.py"}).expect(t, false, "sub/a.py · 9 bytes", "[1 file, 9 bytes]")
		w.call("list_files", map[string]any{"session_id": "s", "glob": "["}).expect(t, true, "glob:")

		w.call("read_file", of("sub/a.py")).expect(t, false, "print(1)\n", "[sub/a.py · lines 1 to 1 of 1 · 9 bytes]")
		w.call("read_file", of("plot.png")).expect(t, false, "(image/png)", "[plot.png · 3000×20 pixels · ", "the original is cellblock://sessions/s/files/plot.png")
		w.call("read_file", of("fake.png")).expect(t, false, "[fake.png · image/png · 14 bytes: it cannot be shown, as image/png cannot be decoded: ", "write a smaller one")
		w.call("read_file", of("data.bin")).expect(t, false, "[data.bin · application/octet-stream · 3 bytes: neither text")
		for name, content := range map[string]string{"bell.txt": strings.Repeat("\a", 300), "latin.txt": "Z\xfcrich\n"} {
			w.call("write_file", map[string]any{"session_id": "s", "path": name, "content": base64.StdEncoding.EncodeToString([]byte(content)), "encoding": "base64"})
		}
		w.call("read_file", of("bell.txt")).expect(t, false, "[bell.txt · text/plain · 300 bytes: neither text")
		w.call("read_file", of("latin.txt")).expect(t, false, "[latin.txt · text/plain · 7 bytes: not UTF-8;", `encoding="latin-1"`)
		w.call("write_file", map[string]any{"session_id": "s", "path": "x", "content": "{}", "encoding": "base64"}).expect(t, true, "is not base64", "leave encoding out")
		w.call("read_file", of("nothing")).expect(t, true, `there is no "nothing"`, "list_files")
		w.call("read_file", of("../../etc/passwd")).expect(t, true, "not in the session's workspace")
		w.call("read_file", of("sub")).expect(t, true, "is a folder", "list_files")

		w.call("execute_file", of("sub/a.py")).expect(t, false, `/sub/a.py"`, "[session s · cell 1 · ok")
		w.call("list_executions", map[string]any{"session_id": "s"}).expect(t, false, "1 · ok", "· run sub/a.py")
		if first := w.book("s").Cells[0].Source; !strings.HasPrefix(first, "# run sub/a.py\n") {
			t.Errorf("the notebook has %q", first)
		}
		w.call("execute_file", of("nothing.py")).expect(t, true, `there is no "nothing.py"`)
		w.call("execute_file", of("data.bin")).expect(t, true, "does not end like a script", "language: python (.py)")
		w.call("execute_file", map[string]any{"session_id": "s", "path": "data.bin", "language": "Python"}).expect(t, false, `/data.bin"`, "ok")
		w.call("execute_file", map[string]any{"session_id": "s", "path": "sub/a.py", "language": "cobol"}).expect(t, true, `"cobol" does not run here`, "it may be python (.py)")
		w.call("execute_file", map[string]any{"session_id": "s", "path": "sub/a.py", "args": []string{"--n", `a"b`, "{path}"}}).expect(t, false, `/sub/a.py" ["--n","a\"b","{path}"]`, "ok")
		w.call("list_executions", map[string]any{"session_id": "s"}).expect(t, false, `· run sub/a.py --n 'a"b' '{path}'`)
		w.call("execute_file", map[string]any{"session_id": "s", "path": "sub/a.py", "args": "--n 3"}).expect(t, true, "args: must be a list of strings")
		w.call("execute_file", map[string]any{"session_id": "s", "path": "sub/a.py", "wait_seconds": -1}).expect(t, true, "wait_seconds")

		w.call("delete_file", of("sub")).expect(t, true, "recursive=true")
		w.call("delete_file", map[string]any{"session_id": "s", "path": "sub", "recursive": true}).expect(t, false, "Deleted the folder sub of session s.")
		w.call("close_session", map[string]any{"session_id": "s"}).expect(t, false, "files are kept")
		w.call("read_file", of("data.bin")).expect(t, false, "3 bytes")
		w.owner.Subject = "mallory"
		w.call("read_file", of("data.bin")).expect(t, true, `there is no session "s"`)
		w.owner.Subject = "alice"
		w.call("close_session", map[string]any{"session_id": "s", "delete_files": true}).expect(t, false, "deleted")
		w.call("list_files", of("")).expect(t, true, `there is no session "s"`)
	})
}

// execute_file needs the scope of the script's language, whatever else the caller may run.
func TestExecuteFileNeedsTheLanguage(t *testing.T) {
	w := newWorld(t, func(c *sessions.Config) { c.Runtimes["bash"] = sessions.Runtime{RunFile: "source {path}"} })
	w.scopes = []string{"bash:execute", ScopeFilesRead, ScopeFilesWrite}
	w.write("a.py", nil).expect(t, false)
	w.call("execute_file", map[string]any{"session_id": "s", "path": "a.py"}).expect(t, true, `needs the scope "python:execute"`)
	if n := len(w.kernels.Launched()); n != 0 {
		t.Errorf("%d kernels were launched", n)
	}
}

// A script of any language runs, in a session of that language.
func TestExecuteFileInAnyLanguage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) {
			c.Runtimes["javascript"] = sessions.Runtime{RunFile: "print js {path}"}
			c.Runtimes["julia"] = sessions.Runtime{}
			c.Runtimes["lua"] = sessions.Runtime{RunFile: "print lua {path}"}
		})
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.scopes = append(w.scopes, "javascript:execute", "julia:execute", "lua:execute")
		for _, name := range []string{"a.MJS", "b.lua", "c.jl", "d.py", "e", "f.rb"} {
			w.write(name, nil).expect(t, false)
		}
		of := func(session, name string, more ...string) map[string]any {
			args := map[string]any{"session_id": session, "path": name}
			if len(more) > 0 {
				args["language"] = more[0]
			}
			return args
		}
		w.call("execute_file", of("s", "a.MJS")).expect(t, false, "js ", `/a.MJS"`, "ok")
		w.call("execute_file", of("s", "e", "javascript")).expect(t, false, "js ", `/e"`)
		w.call("execute_file", of("s", "d.py")).expect(t, true, "javascript session, it cannot run python")
		w.call("execute_file", of("s", "d.py", "javascript")).expect(t, false, "js ", `/d.py"`)
		w.call("execute_file", map[string]any{"session_id": "s", "path": "a.MJS", "args": []string{"-v"}}).expect(t, true, "args: a script in JavaScript gets none here")
		w.call("execute_file", map[string]any{"session_id": "s", "path": "a.MJS", "args": []string{}}).expect(t, false, "ok")
		w.call("execute_file", of("s", "c.jl")).expect(t, true, "Julia cannot run files", "let code do it")
		w.call("execute_file", of("s", "b.lua")).expect(t, true, "it cannot run lua")
		w.call("execute_file", of("s", "f.rb")).expect(t, true, "does not end like a script", "python (.py), javascript (.js, .mjs, .cjs), julia (.jl), lua (.lua)")
		w.call("execute_file", of("s", "e")).expect(t, true, `"e" does not end like`)
	})
}

func TestLiteral(t *testing.T) {
	for text, want := range map[string]string{`a"b`: `"a\"b"`, "a\nb": `"a\nb"`, "<é😀>": `"<é😀>"`, `a\`: `"a\\"`} {
		if got := literal(text); got != want {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestReadLines(t *testing.T) {
	const text = "one\ntwo\n\nfour\nfive"
	for _, tt := range []struct {
		in                string
		from, most, chars int
		want              someLines
	}{
		{text, 1, 99, 99, someLines{text, 1, 5, 5, false}},
		{text, 2, 2, 99, someLines{"two\n\n", 2, 3, 5, false}},
		{text, 5, 9, 99, someLines{"five", 5, 5, 5, false}},
		{text, 9, 9, 99, someLines{"", 9, 8, 5, false}},
		{text, 1, 99, 9, someLines{"one\ntwo\n\n", 1, 3, 5, false}},
		{text, 1, 99, 8, someLines{"one\ntwo\n", 1, 2, 5, false}},
		{text, 4, 99, 3, someLines{"fou", 4, 4, 5, true}},
		{"", 1, 99, 99, someLines{"", 1, 0, 0, false}},
		{"a\x1b[31m\xff\u009b\r\n", 1, 9, 99, someLines{"a␛[31m\ufffd\ufffd\r\n", 1, 1, 1, false}},
		{strings.Repeat("é", 100_000), 1, 9, 50_000, someLines{strings.Repeat("é", 50_000), 1, 1, 1, true}},
	} {
		if got := readLines(strings.NewReader(tt.in), tt.from, tt.most, tt.chars); got != tt.want {
			t.Errorf("%.20q from %d: %+.200v", tt.in, tt.from, got)
		}
	}
}

// Reading on from where a part ends gives the whole.
func FuzzReadLines(f *testing.F) {
	f.Add("a\nbb\n\nccc", 4)
	f.Fuzz(func(t *testing.T, text string, chars int) {
		if chars < 1 || chars > 1<<20 || !utf8.ValidString(text) {
			return
		}
		got, calls := "", 0
		for from := 1; calls < 2+strings.Count(text, "\n"); calls++ {
			p := readLines(io.LimitReader(strings.NewReader(text), 1<<20), from, 1<<30, chars)
			if got += p.text; p.cut || p.to >= p.total {
				if !p.cut && got != visible(text) {
					t.Errorf("%q of %q", got, text)
				}
				return
			}
			if p.to < from {
				t.Fatalf("no progress from line %d of %q", from, text)
			}
			from = p.to + 1
		}
		t.Errorf("%d calls", calls)
	})
}

func TestFileResources(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a")
		w.write("d/a b#.csv", []byte("x,y\n")).expect(t, false)
		w.write("plot.png", pngOf(t, 4, 4)).expect(t, false)
		w.write(".hidden/x", nil).expect(t, false)
		list := func() string {
			raw, _ := w.request(t.Context(), "resources/list", map[string]any{})
			return string(raw)
		}
		csv := "cellblock://sessions/s/files/d/a%20b%23.csv"
		if got := list(); !strings.Contains(got, `"uri":"`+csv+`"`) || !strings.Contains(got, `"mimeType":"text/csv"`) || strings.Contains(got, "hidden") {
			t.Error(got)
		}
		if c, err := w.read(csv); err != nil || c[0].Text != "x,y\n" || c[0].MIMEType != "text/csv" {
			t.Errorf("%+v %+v", c, err)
		}
		if c, err := w.read("cellblock://sessions/s/files/plot.png"); err != nil || c[0].Blob != base64.StdEncoding.EncodeToString(pngOf(t, 4, 4)) || c[0].MIMEType != "image/png" {
			t.Errorf("%+v %+v", c, err)
		}
		for _, uri := range []string{
			"cellblock://sessions/s/files/", "cellblock://sessions/s/files/nothing", "cellblock://sessions/s/files/../x", "cellblock://sessions/t/files/plot.png",
			"cellblock://sessions/s/files/%2e%2e/%2e%2e/x", "cellblock://sessions/s/files/%2fetc%2fpasswd", "cellblock://sessions/s/files/plot.png?x=1", "cellblock://sessions/../files/x",
		} {
			if c, err := w.read(uri); err == nil {
				t.Errorf("%s: %+v", uri, c)
			}
		}
		w.scopes = []string{ScopeRead}
		if _, err := w.read(csv); err == nil || !strings.Contains(err.Message, `"files:read"`) || strings.Contains(list(), "files/") {
			t.Errorf("without the scope: %+v", err)
		}
		w.scopes, w.owner = []string{ScopeFilesRead}, sessions.Owner{Subject: "mallory"}
		if _, err := w.read(csv); err == nil || strings.Contains(list(), "files/") {
			t.Errorf("another owner: %+v", err)
		}
	})
}

func TestFileURIsAreReadAsTheyAreWritten(t *testing.T) {
	for _, name := range []string{"a", "a/b c", "100%.txt", "a?b=1#c", "é/😀", "a+b:c@d"} {
		uri := fileURI("s", name)
		if u, err := url.Parse(uri); err != nil || u.String() == "" {
			t.Error(uri, err)
		}
		if a, err := parseFileURI(uri); err != nil || a.session != "s" || a.path != name || a.part {
			t.Errorf("%s: %+v %v", uri, a, err)
		}
		if a, err := parseFileURI(uri + "?offset=12"); err != nil || a.path != name || !a.part || a.offset != 12 {
			t.Errorf("%s: %+v %v", uri, a, err)
		}
	}
	for _, query := range []string{"?offset=-1", "?offset=x", "?offset=", "?limit=1", "?offset=1&limit=2", "#a"} {
		if a, err := parseFileURI(fileURI("s", "a") + query); err == nil {
			t.Errorf("%s: %+v", query, a)
		}
	}
}

func TestFilesLine(t *testing.T) {
	r := sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}
	if got := filesLine(r); got != "" {
		t.Error(got)
	}
	r.Files = []files.Change{{Path: "plot.png", New: true, Size: 12 << 10}, {Path: "a\nb\x1b[31m", Size: 1}}
	if got := filesLine(r); got != `Files: plot.png (new, 12 KiB), "a\nb\x1b[31m" (changed, 1 byte)` {
		t.Error(got)
	}
	long := r
	long.Files = []files.Change{{Path: strings.Repeat("é", 240) + ".csv", Size: 1}, r.Files[0]}
	if got, want := filesLine(long), "Files: "+strings.Repeat("é", 40)+"…"+strings.Repeat("é", 35)+".csv (changed, 1 byte), plot.png (new, 12 KiB)"; got != want {
		t.Error(got)
	}
	r.MoreFiles = 1200
	if got := filesLine(r); !strings.HasSuffix(got, "1 byte) and 1,200 more") {
		t.Error(got)
	}
}
