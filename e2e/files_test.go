package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/rig"
)

const plotScript = `
import pathlib
import matplotlib
matplotlib.use("agg")
import matplotlib.pyplot as plt

def draw():
    plt.figure(figsize=(4, 3), dpi=100)
    plt.plot([1, 2, 3])
    plt.savefig("plots/line.png")

pathlib.Path("plots").mkdir(exist_ok=True)
draw()
rows = pathlib.Path("data/in.csv").read_text().split()
print(len(rows), "rows by", __file__)
`

// A model puts a script and data into a session that has never been, runs the script, finds what it made, and reads it.
func TestFilesRoundTrip(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		with := func(more ...any) map[string]any {
			args := map[string]any{"session_id": "files"}
			for i := 0; i < len(more); i += 2 {
				args[more[i].(string)] = more[i+1]
			}
			return args
		}
		must := func(tool string, args map[string]any, parts ...string) rig.Result {
			t.Helper()
			r := call(t, c, tool, args)
			if r.IsError {
				t.Errorf("%s failed:\n%s", tool, r.Text)
			}
			wantText(t, r.Text, parts...)
			return r
		}
		must("write_file", with("path", "scripts/plot.py", "content", plotScript), "Wrote scripts/plot.py")
		must("write_file", with("path", "data/in.csv", "content", "a,1\nb,2\nc,3\n"))
		r := must("execute_file", with("path", "scripts/plot.py"), "3 rows by /workspace/scripts/plot.py", "Files: plots/line.png (new, ", "cell 1 · ok")
		if strings.Contains(r.Text, "earlier session") {
			t.Errorf("the first cell is told of an earlier session:\n%s", r.Text)
		}
		must("execute_python", with("code", "rows, draw.__name__"), "'draw'")
		must("list_files", with("glob", "*.png"), "plots/line.png · ", "[1 file, ")
		must("read_file", with("path", "scripts/plot.py", "offset", 7, "limit", 1), "def draw():", "line")
		if r := must("read_file", with("path", "plots/line.png"), "400×300 pixels"); len(r.Images) != 1 || http.DetectContentType(r.Images[0]) != "image/png" {
			t.Errorf("%d images", len(r.Images))
		}
		// What the server wrote is the kernel's to change; a traceback names the file.
		must("execute_python", with("code", "open('data/in.csv', 'a').write('d,4\\n')\nimport os; os.rename('scripts/plot.py', 'scripts/old.py')"), "data/in.csv (changed, 16 bytes)")
		must("write_file", with("path", "bad.py", "content", "def f():\n    return 1 / 0\n\nf()\n"))
		r = call(t, c, "execute_file", with("path", "bad.py"))
		wantText(t, r.Text, "ZeroDivisionError", "/workspace/bad.py:2", "return 1 / 0")
		if !r.IsError {
			t.Error("a script that fails is no error")
		}
		// Cells write what the server cannot foresee: of other modes, and it can be read and deleted all the same.
		must("execute_python", with("code", "import os\nos.makedirs('own/deep'); open('own/deep/x','w').write('secret'); os.chmod('own/deep/x', 0o600)"))
		must("read_file", with("path", "own/deep/x"), "secret")
		must("delete_file", with("path", "own", "recursive", true))
		must("close_session", with())
		must("read_file", with("path", "data/in.csv"), "d,4")
	})
}

// Code in a kernel points names at what is not its own, and changes them while they are read and written.
func TestFilesDoNotEscape(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t), false)
		secret := filepath.Join(s.DataDir, "secret")
		if err := os.WriteFile(secret, []byte("TOP SECRET"), 0o600); err != nil {
			t.Fatal(err)
		}
		python(t, c, "evil", `
import os, socket
os.symlink("`+secret+`", "direct"); os.symlink("../../secret", "up"); os.symlink("`+s.DataDir+`", "dir"); os.symlink("/", "root")
os.mkfifo("pipe"); sock = socket.socket(socket.AF_UNIX); sock.bind("sock")
os.symlink("direct", "chain"); os.symlink("/proc/self/environ", "env")`)
		of := func(path string) map[string]any { return map[string]any{"session_id": "evil", "path": path} }
		for _, path := range []string{
			"direct", "up", "dir/secret", "root/etc/passwd", "chain", "env", "pipe", "sock", "../../secret", secret, "dir/cellblock.db", "/workspace/../etc/passwd", "dir/../secret",
		} {
			if r := call(t, c, "read_file", of(path)); !r.IsError || strings.Contains(r.Text, "SECRET") {
				t.Errorf("read %s: %s", path, r.Text)
			}
		}
		for _, path := range []string{"dir/new", "root/tmp/new", "../new", s.DataDir + "/new", "pipe"} {
			args := of(path)
			args["content"] = "x"
			if r := call(t, c, "write_file", args); !r.IsError {
				t.Errorf("write %s: %s", path, r.Text)
			}
		}
		for _, path := range []string{"dir/secret", "root/etc/passwd", "../../secret", "."} {
			args := of(path)
			args["recursive"] = true
			if r := call(t, c, "delete_file", args); !r.IsError {
				t.Errorf("delete %s: %s", path, r.Text)
			}
		}
		wantText(t, call(t, c, "list_files", map[string]any{"session_id": "evil"}).Text, "direct · link to ", "outside of the workspace and not followed", "pipe · pipe, socket")

		python(t, c, "evil", `
import threading, os
def race():
    while not os.path.exists("stop"):
        for make in (lambda: os.symlink("`+secret+`", "n"), lambda: os.mkfifo("n"), lambda: open("n", "w").write("mine"),
                     lambda: os.mkdir("n"), lambda: os.symlink("`+s.DataDir+`", "n")):
            try:
                make(); os.rename("n", "x")
            except OSError:
                try: os.rmdir("x")
                except OSError: pass
            try: os.unlink("n")
            except OSError:
                try: os.rmdir("n")
                except OSError: pass
thread = threading.Thread(target=race); thread.start()`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		for until := time.Now().Add(3 * time.Second); time.Now().Before(until); {
			for _, try := range []struct {
				tool, path string
			}{{"read_file", "x"}, {"read_file", "x/secret"}, {"write_file", "x/planted"}, {"write_file", "x"}, {"list_files", "x"}, {"delete_file", "x/planted"}} {
				args := of(try.path)
				if try.tool == "write_file" {
					args["content"] = "ours"
				}
				r, err := c.Call(ctx, try.tool, args, nil)
				if err != nil {
					t.Fatalf("%s: %v", try.tool, err)
				}
				if strings.Contains(r.Text, "SECRET") || strings.Contains(r.Text, "cellblock.db") {
					t.Fatalf("%s %s: %s", try.tool, try.path, r.Text)
				}
			}
		}
		python(t, c, "evil", "open('stop', 'w').close(); thread.join()")
		if b, err := os.ReadFile(secret); string(b) != "TOP SECRET" {
			t.Errorf("the secret: %q %v", b, err)
		}
		for _, name := range []string{"new", "planted", "../new"} {
			if _, err := os.Lstat(filepath.Join(s.DataDir, name)); err == nil {
				t.Errorf("%s was made in the data folder", name)
			}
		}
		if r := call(t, c, "close_session", map[string]any{"session_id": "evil", "delete_files": true}); r.IsError {
			t.Error(r.Text)
		}
	})
}

// Files are resources, and their owner's.
func TestFileResources(t *testing.T) {
	s := start(t, "auto")
	c := s.Connect(t, s.Token(t), false)
	python(t, c, "res", "open('a b.csv','w').write('x,y'); open('raw.bin','wb').write(bytes([0,255]))")
	list, err := c.ListResources(t.Context(), mcp.ListResourcesRequest{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, r := range list.Resources {
		kinds[r.URI] = r.MIMEType
	}
	if kind, ok := kinds["cellblock://sessions/res/files/a%20b.csv"]; !ok || kind != "text/csv" {
		t.Errorf("%v", kinds)
	}
	if text, blob := readResource(t, c, "cellblock://sessions/res/files/a%20b.csv"); text != "x,y" || blob != "" {
		t.Errorf("%q %q", text, blob)
	}
	if text, blob := readResource(t, c, "cellblock://sessions/res/files/raw.bin"); text != "" || blob != base64.StdEncoding.EncodeToString([]byte{0, 255}) {
		t.Errorf("%q %q", text, blob)
	}
	other := s.Connect(t, s.Token(t, "--subject", "somebody-else"), false)
	var request mcp.ReadResourceRequest
	request.Params.URI = "cellblock://sessions/res/files/raw.bin"
	if got, err := other.ReadResource(t.Context(), request); err == nil {
		t.Errorf("somebody else reads %+v", got)
	}
}

func readResource(t *testing.T, c *rig.Client, uri string) (text, blob string) {
	t.Helper()
	var request mcp.ReadResourceRequest
	request.Params.URI = uri
	got, err := c.ReadResource(t.Context(), request)
	if err != nil {
		t.Fatalf("%s: %v", uri, err)
	}
	switch contents := got.Contents[0].(type) {
	case mcp.TextResourceContents:
		return contents.Text, ""
	case mcp.BlobResourceContents:
		return "", contents.Blob
	}
	return "", ""
}

func TestFilesCommand(t *testing.T) {
	s := start(t, "auto")
	env := []string{"CELLBLOCK_URL=" + s.URL}
	run := func(stdin string, args ...string) (string, string, int) {
		t.Helper()
		return cellblockSplit(t, env, stdin, append([]string{"--data-dir", s.DataDir, "files"}, args...)...)
	}
	dir := t.TempDir()
	var picture bytes.Buffer
	img := image.NewRGBA(image.Rect(0, 0, 2000, 10))
	img.Set(3, 3, color.White)
	if err := png.Encode(&picture, img); err != nil {
		t.Fatal(err)
	}
	local := filepath.Join(dir, "wide.png")
	if err := os.WriteFile(local, picture.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, errs, code := run("", "put", "cli", local, "pictures/"); code != 0 || !strings.Contains(out, "Wrote pictures/wide.png") {
		t.Errorf("put: %d %s%s", code, out, errs)
	}
	if _, errs, code := run("from a pipe\n", "put", "cli", "-", "notes.txt"); code != 0 {
		t.Errorf("put -: %d %s", code, errs)
	}
	if out, _, code := run("", "ls", "cli"); code != 0 || !strings.Contains(out, "pictures/wide.png") || !strings.Contains(out, "notes.txt") {
		t.Errorf("ls: %d %s", code, out)
	}
	if out, _, code := run("", "get", "cli", "notes.txt", "-o", "-"); code != 0 || out != "from a pipe\n" {
		t.Errorf("get -: %d %q", code, out)
	}
	back := filepath.Join(dir, "back.png")
	if _, errs, code := run("", "get", "cli", "/workspace/pictures/wide.png", "-o", back); code != 0 {
		t.Errorf("get: %d %s", code, errs)
	}
	if raw, err := os.ReadFile(back); !bytes.Equal(raw, picture.Bytes()) {
		t.Errorf("what came back is another: %v", err)
	}
	if _, errs, code := run("", "get", "cli", "notes.txt", "-o", back); code == 0 || !strings.Contains(errs, "--force") {
		t.Errorf("get over a file: %d %s", code, errs)
	}
	if _, errs, code := run("", "get", "cli", "nothing", "-o", filepath.Join(dir, "nothing")); code != 66 || !strings.Contains(errs, "there is no") {
		t.Errorf("get of nothing: %d %s", code, errs)
	}
	if _, errs, code := run("", "rm", "cli", "pictures"); code == 0 || !strings.Contains(errs, "recursive") {
		t.Errorf("rm: %d %s", code, errs)
	}
	if out, errs, code := run("", "rm", "-r", "cli", "pictures", "notes.txt"); code != 0 || strings.Count(out, "Deleted") != 2 {
		t.Errorf("rm -r: %d %s%s", code, out, errs)
	}
	if _, errs, code := run("", "ls", "nobody"); code != 66 || !strings.Contains(errs, "there is no session") {
		t.Errorf("ls of no session: %d %s", code, errs)
	}
}
