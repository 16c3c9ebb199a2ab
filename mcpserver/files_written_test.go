//go:build unix

package mcpserver

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// What a cell wrote stands in the line before the last, and in _meta.
func TestResultNamesFiles(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a").expect(t, false, "a", "[session s")
		dir := w.kernels.Launched()[0].Workspace
		if err := syscall.Mkfifo(dir+"/pipe", 0o600); err != nil {
			t.Fatal(err)
		}
		put(t, dir+"/out.csv", "1234")
		raw, _ := w.request(t.Context(), "tools/call", map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "print b"}})
		if !strings.Contains(string(raw), `Files: out.csv (new, 4 bytes)\n[session s · cell 2 · ok`) || !strings.Contains(string(raw), `"files":[{"path":"out.csv","new":true,"size":4}]`) {
			t.Error(string(raw))
		}
		w.call("list_files", map[string]any{"session_id": "s"}).expect(t, false, "pipe · pipe, socket or device", "out.csv")
		w.call("read_file", map[string]any{"session_id": "s", "path": "pipe"}).expect(t, true, "is a pipe")
		w.run("s", "print c").expect(t, false, "c\n[session s")
		w.get("s", 2, nil).expect(t, false, "Files: out.csv (new, 4 bytes)")
		for _, name := range []string{"tool.csv", "kept.csv", "other.csv"} {
			put(t, dir+"/"+name, "1")
		}
		if err := os.MkdirAll(dir+"/folder/deep", 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, dir+"/folder/deep/x", "1")
		w.run("s", "print d").expect(t, false, "Files: folder/deep/x (new, 1 byte), kept.csv")
		w.call("delete_file", map[string]any{"session_id": "s", "path": "tool.csv"}).expect(t, false)
		w.call("delete_file", map[string]any{"session_id": "s", "path": "folder", "recursive": true}).expect(t, false)
		if err := errors.Join(os.Remove(dir+"/out.csv"), os.Remove(dir+"/other.csv"), os.Symlink("kept.csv", dir+"/other.csv")); err != nil {
			t.Fatal(err)
		}
		w.run("s", "print e").expect(t, false, "e\nFiles: out.csv (deleted)\n[session s")
		w.run("s", "print f").expect(t, false, "f\n[session s")
	})
}
