package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kill ends the server as nobody would, and waits until it is gone.
func (s *server) kill(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.exited
}

// What a result has told is there after the server was killed: the same text, the same image, and what was going on.
func TestHistoryOutlivesTheServer(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime)
		token := s.token(t)
		c := s.connect(t, token)
		printed := python(t, c, "kept", "for i in range(10_000): print('line', i)")
		plot := python(t, c, "kept", "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()")
		failed := python(t, c, "kept", "{}['missing']")
		running := call(t, c, "execute_python", map[string]any{"session_id": "kept", "wait_seconds": 2,
			"code": "import time\nprint('begun', flush=True)\ntime.sleep(600)"})
		wantText(t, running.text, "begun", "still running", "execution_id=4")
		s.kill(t)

		s = startIn(t, dir, runtime)
		c = s.connect(t, token)
		get := func(number int) result {
			t.Helper()
			return call(t, c, "get_execution", map[string]any{"session_id": "kept", "execution_id": number})
		}
		for number, before := range map[int]result{1: printed, 2: plot, 3: failed} {
			after := get(number)
			if after.text != before.text || after.isError != before.isError || len(after.images) != len(before.images) {
				t.Errorf("cell %d is told as\n%s\nbefore the kill it was\n%s", number, after.text, before.text)
				continue
			}
			for i := range after.images {
				if after.images[i].Data != before.images[i].Data {
					t.Errorf("image %d of cell %d is another one", i, number)
				}
			}
		}
		call(t, c, "interrupt_session", map[string]any{"session_id": "kept"})
		wantText(t, get(4).text, "begun", "KeyboardInterrupt")
		wantText(t, python(t, c, "kept", "print('on')").text, "cell 5", "on")
		wantText(t, call(t, c, "list_executions", map[string]any{"session_id": "kept"}).text, "line", "missing", "interrupted", "on")

		// A close that deletes the files deletes this, too.
		if r := call(t, c, "close_session", map[string]any{"session_id": "kept", "delete_files": true}); r.isError {
			t.Fatal(r.text)
		}
		if gone := get(1); !gone.isError || strings.Contains(gone.text, "line") {
			t.Errorf("after the deletion: %s", gone.text)
		}
		blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "*", "*", "*"))
		if err != nil || len(blobs) != 0 {
			t.Errorf("after the deletion there are %v, %v", blobs, err)
		}
	})
}

// A damaged history is an error with a hint at the start, not a server that forgets.
func TestDamagedHistoryIsToldAtTheStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "cellblock.db"), []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	said, code := cellblock(t, nil, "", "serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--run-dir", t.TempDir(), "--provisioner", "local")
	if code != 69 {
		t.Errorf("exit status %d", code)
	}
	wantText(t, said, "no database", "backup")
}
