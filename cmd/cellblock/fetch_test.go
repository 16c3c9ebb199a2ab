package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mark3labs/mcp-go/client"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// object is a JSON object.
type object = map[string]any

// clientOf is a client of such a server.
func clientOf(t *testing.T, answer func(method string, params object) (object, error)) *client.Client {
	t.Helper()
	c, err := dialMCP(t.Context(), serverOf(t, answer), "token", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// serverOf is the endpoint of a server that answers calls of tools, their list and reads as it is told here. An answer that is an error is the
// protocol's own.
func serverOf(t *testing.T, answer func(method string, params object) (object, error)) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     any
			Method string
			Params object
		}
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil || asked.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		said := object{"jsonrpc": "2.0", "id": asked.ID}
		switch asked.Method {
		case "initialize":
			said["result"] = object{"protocolVersion": "2025-06-18", "capabilities": object{"tools": object{}, "resources": object{}}, "serverInfo": object{"name": "s", "version": "1"}}
		case "tools/call", "tools/list", "resources/read":
			if result, err := answer(asked.Method, asked.Params); err != nil {
				said["error"] = object{"code": -32602, "message": err.Error()}
			} else {
				said["result"] = result
			}
		default:
			said["error"] = object{"code": -32601, "message": "no such method"}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(said)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// having answers list_sessions with some sessions.
func having(ids ...string) func(string, object) (object, error) {
	rows := []any{}
	for _, id := range ids {
		rows = append(rows, object{"session_id": id})
	}
	return func(string, object) (object, error) {
		return object{"content": []any{}, "structuredContent": object{"sessions": rows}}, nil
	}
}

// filePart is a part of a file as a server sends it.
func filePart(content string, size any) object {
	return object{"contents": []any{object{"uri": "cellblock://sessions/a/files/f", "mimeType": "application/octet-stream",
		"blob": base64.StdEncoding.EncodeToString([]byte(content)), "_meta": object{mcpserver.FileMeta: object{"size": size}}}}}
}

// A file appears here whole or not at all, whatever the server sends.
func TestFilesAreFetchedWholeOrNotAtAll(t *testing.T) {
	for name, tt := range map[string]struct {
		parts []object
		want  string // of the file
		kind  fault.Kind
		said  string
	}{
		"in parts":                 {[]object{filePart("ab", 5), filePart("cd", 5), filePart("e", 5)}, "abcde", 0, ""},
		"an empty one":             {[]object{filePart("", 0)}, "", 0, ""},
		"it grows meanwhile":       {[]object{filePart("ab", 4), filePart("cd", 6)}, "", fault.Conflict, "changed while it was fetched"},
		"it shrinks meanwhile":     {[]object{filePart("ab", 4), filePart("", 2)}, "", fault.Conflict, "Fetch it again"},
		"parts without an end":     {[]object{filePart("ab", 4), filePart("", 4)}, "", fault.Conflict, "Fetch it again"},
		"of less than no bytes":    {[]object{filePart("ab", -1)}, "", fault.Internal, "not known"},
		"of nobody knows how many": {[]object{filePart("ab", "2")}, "", fault.Internal, "not known"},
		"two files":                {[]object{{"contents": append(filePart("a", 1)["contents"].([]any), filePart("b", 1)["contents"].([]any)...)}}, "", fault.Internal, "2 contents"},
		"a text":                   {[]object{{"contents": []any{object{"uri": "a", "text": "a"}}}}, "", fault.Internal, "not known"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			asked := 0
			c := clientOf(t, func(string, object) (object, error) {
				if asked++; asked > len(tt.parts) {
					return nil, errors.New("asked too often")
				}
				return tt.parts[asked-1], nil
			})
			err := saveFile("got", false, io.Discard, io.Discard, func(w io.Writer) error { return getFile(t.Context(), c, "a", "f", w) })
			if tt.said == "" {
				if text, readErr := os.ReadFile("got"); err != nil || readErr != nil || string(text) != tt.want {
					t.Errorf("%q, %v, %v", text, err, readErr)
				}
				return
			}
			if err == nil || fault.KindOf(err) != tt.kind || !strings.Contains(fault.Text(err), tt.said) {
				t.Errorf("%v, %v", fault.KindOf(err), err)
			}
			if left, _ := os.ReadDir("."); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// What somebody else puts there while a file is fetched stays, and so does what a link points to.
func TestFetchedFilesReplaceNothingUnasked(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fetch := func(meanwhile func()) func(io.Writer) error {
		return func(w io.Writer) error {
			meanwhile()
			_, err := io.WriteString(w, "fetched")
			return err
		}
	}
	write("target", "mine")
	if err := saveFile("new", false, io.Discard, io.Discard, fetch(func() { write("new", "mine") })); fault.KindOf(err) != fault.Conflict {
		t.Errorf("put there meanwhile: %v", err)
	}
	if err := saveFile("link", true, io.Discard, io.Discard, fetch(func() { _ = os.Symlink("target", "link") })); fault.KindOf(err) != fault.Conflict {
		t.Errorf("a link: %v", err)
	}
	for _, name := range []string{"new", "target"} {
		if text, _ := os.ReadFile(name); string(text) != "mine" {
			t.Errorf("%s is %q", name, text)
		}
	}
	if err := saveFile("new", true, io.Discard, io.Discard, fetch(func() {})); err != nil {
		t.Error(err)
	}
	if text, _ := os.ReadFile("new"); string(text) != "fetched" {
		t.Errorf("with --force: %q", text)
	}
	if err := saveFile("nowhere/new", false, io.Discard, io.Discard, fetch(func() {})); fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), "open nowhere/new: no such") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

// An upload is ended once, with as many bytes as the file has; one whose file cannot be read on is not ended at all.
func TestFilesAreStoredWholeOrNotAtAll(t *testing.T) {
	broken := errors.New("the disk is broken")
	zeros := func(n int64) io.Reader { return io.LimitReader(zeroes{}, n) }
	for name, tt := range map[string]struct {
		local    io.Reader
		calls    int
		whole    bool
		received int64
	}{
		"an empty one":              {zeros(0), 1, true, 0},
		"a small one":               {zeros(3), 1, true, 3},
		"as large as a part":        {zeros(putPart), 2, true, putPart},
		"one that cannot be read":   {iotest.ErrReader(broken), 0, false, 0},
		"one that breaks in a part": {io.MultiReader(zeros(putPart+5), iotest.ErrReader(broken)), 1, false, putPart},
	} {
		t.Run(name, func(t *testing.T) {
			calls, ended, received := 0, 0, int64(0)
			c := clientOf(t, func(_ string, params object) (object, error) {
				args := params["arguments"].(object)
				part, err := base64.StdEncoding.DecodeString(args["content"].(string))
				if err != nil {
					return nil, err
				}
				if offset, _ := args["offset"].(float64); int64(offset) != received {
					t.Errorf("a part for %v after %d bytes", offset, received)
				}
				if args["upload"] == nil || len(part) == 0 {
					ended++
				}
				calls, received = calls+1, received+int64(len(part))
				return object{"content": []any{object{"type": "text", "text": "stored"}}}, nil
			})
			said, err := putFile(t.Context(), c, "a", "f", tt.local)
			if calls != tt.calls || received != tt.received || (ended == 1) != tt.whole || (said == "stored") != tt.whole || (err == nil) != tt.whole {
				t.Errorf("%d calls, %d bytes, ended %d times: %q, %v", calls, received, ended, said, err)
			}
			if !tt.whole && !errors.Is(err, broken) {
				t.Error(err)
			}
		})
	}
}

// zeroes never ends.
type zeroes struct{}

func (zeroes) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
