package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// What a result has told is there after the server was killed: the same text, the same image, and what was going on.
func TestHistoryOutlivesTheServer(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		s := startIn(t, dir, runtime, noPool)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		printed := python(t, c, "kept", "for i in range(10_000): print('line', i)")
		plot := python(t, c, "kept", "import matplotlib.pyplot as plt\nplt.plot([1, 2, 3]); plt.show()")
		failed := python(t, c, "kept", "{}['missing']")
		running := call(t, c, "execute_python", map[string]any{"session_id": "kept", "wait_seconds": 2,
			"code": "import time\nprint('begun', flush=True)\ntime.sleep(600)"})
		wantText(t, running.Text, "begun", "still running", "execution_id=4")
		s.Kill(t)

		s = startIn(t, dir, runtime, noPool)
		c = s.Connect(t, token, false)
		get := func(number int) rig.Result {
			t.Helper()
			return call(t, c, "get_execution", map[string]any{"session_id": "kept", "execution_id": number})
		}
		for number, before := range map[int]rig.Result{1: printed, 2: plot, 3: failed} {
			after := get(number)
			if after.Text != before.Text || after.IsError != before.IsError || len(after.Images) != len(before.Images) {
				t.Errorf("cell %d is told as\n%s\nbefore the kill it was\n%s", number, after.Text, before.Text)
				continue
			}
			for i := range after.Images {
				if !bytes.Equal(after.Images[i], before.Images[i]) {
					t.Errorf("image %d of cell %d is another one", i, number)
				}
			}
		}
		call(t, c, "interrupt_session", map[string]any{"session_id": "kept"})
		wantText(t, get(4).Text, "begun", "KeyboardInterrupt")
		wantText(t, python(t, c, "kept", "print('on')").Text, "cell 5", "on")
		wantText(t, call(t, c, "list_executions", map[string]any{"session_id": "kept"}).Text, "line", "missing", "interrupted", "on")

		// A close that deletes the files deletes this, too.
		if r := call(t, c, "close_session", map[string]any{"session_id": "kept", "delete_files": true}); r.IsError {
			t.Fatal(r.Text)
		}
		if gone := get(1); !gone.IsError || strings.Contains(gone.Text, "line") {
			t.Errorf("after the deletion: %s", gone.Text)
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
