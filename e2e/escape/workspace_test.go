package escape

import (
	"strings"
	"testing"
)

// trap is a workspace full of what a server must not follow, wait for, or believe.
const trap = `
import os, socket, subprocess
os.symlink("/etc/passwd", "link")
os.symlink("../../../../../../etc/passwd", "up")
os.symlink("/", "root")
os.symlink("/workspace", "me")
os.symlink("link2", "link1"); os.symlink("link1", "link2")
os.mkfifo("pipe")
s = socket.socket(socket.AF_UNIX); s.bind("sock")
os.makedirs("deep/" + "/".join("d" * 100 for _ in range(20)), exist_ok=True)
os.mkdir("closed"); open("closed/x", "w").write("x"); os.chmod("closed", 0)
open("strange\nname\x1b[31m", "w").write("x")
open(b"not\xfftext", "w").write("x")
open("sparse", "wb").truncate(3 << 30)
open("script.html", "w").write("<script>alert(1)</script>")
open("bomb.png", "wb").write(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
print("set")
`

// TestWorkspace has the server work on the trap with every tool of files.
func TestWorkspace(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.wantText(w.attack(trap), "set")
		in := func(tool string, args map[string]any) string {
			args["session_id"] = w.attacked
			return w.call(w.attacker, tool, args).Text
		}
		for _, path := range []string{"link", "up", "root/etc/passwd", "link1", "pipe", "sock", "closed/x", "sparse", "me/link", "../x", "/etc/passwd"} {
			text := in("read_file", map[string]any{"path": path})
			if strings.Contains(text, "root:") || strings.Contains(text, "daemon") {
				w.Errorf("read_file %s: %s", path, text)
			}
		}
		for _, path := range []string{"root/tmp/x", "up", "link", "pipe", "me/../../x", "closed/y", "link1/x"} {
			_ = in("write_file", map[string]any{"path": path, "content": "x"})
			_ = in("execute_file", map[string]any{"path": path})
		}
		list := in("list_files", map[string]any{})
		if strings.Contains(list, "\x1b") || strings.Contains(list, "strange\nname") {
			w.Errorf("a file's name reaches the list as it is: %q", list)
		}
		_ = in("delete_file", map[string]any{"path": "root"})
		w.wantText(w.attack("import os; print('passwd' in os.listdir('/etc'))"), "True")
		r := w.call(w.attacker, "close_session", map[string]any{"session_id": w.attacked, "delete_files": true})
		w.wantText(r)
	})
}
