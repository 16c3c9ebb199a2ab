package escape

import (
	"fmt"
	"strings"
	"testing"
)

// bombs are cells that take all they can get of something. Each must end, in whatever way, and the next cell of the same
// session must work.
var bombs = []struct {
	what, code string
	// says is in the result where the limit is one that code meets as an error; empty where it may end in several ways.
	says string
}{
	{"processes", `
import os, time, signal
children = []
try:
    for _ in range(100_000):
        pid = os.fork()
        if pid == 0:
            time.sleep(60); os._exit(0)
        children.append(pid)
except OSError as e:
    print("stopped at", type(e).__name__, len(children) < 300)
for pid in children:
    os.kill(pid, signal.SIGKILL); os.waitpid(pid, 0)
`, "stopped at BlockingIOError True"},
	{"processes that nobody reaps", `
import subprocess
r = subprocess.run(["/bin/sh", "-c", "bomb() { bomb | bomb & }; bomb; sleep 2"], capture_output=True, text=True, timeout=60)
print("came back")
`, ""},
	{"threads", `
import threading, time
stop, n = threading.Event(), 0
try:
    while n < 100_000:
        threading.Thread(target=stop.wait, daemon=True).start(); n += 1
except RuntimeError:
    print("stopped", n < 300)
stop.set()
`, "stopped True"},
	{"memory", "x = []\nwhile True: x.append(bytearray(64 << 20))", ""},
	{"memory in /tmp", fill("/tmp"), "stopped: No space left on device"},
	{"memory in /dev/shm", fill("/dev/shm"), ""},
	{"descriptors", `
import os
fds = []
try:
    while True: fds.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    print("stopped:", e.strerror, len(fds) < 5000)
for fd in fds: os.close(fd)
`, "stopped: Too many open files True"},
	{"one huge file", `
import signal, os
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
try:
    with open("huge", "wb") as f: f.truncate(1 << 42)
    print("no limit")
except OSError as e:
    print("stopped:", e.strerror)
os.path.exists("huge") and os.remove("huge")
`, "stopped: File too large"},
	{"the workspace", `
import os
os.makedirs("full", exist_ok=True)
n = 0
while True:
    with open("full/%d" % n, "wb") as f: f.write(os.urandom(1 << 20) * 64)
    n += 1
`, ""},
	{"prints", "while True: print('x' * 100_000)", "Variables are kept"},
	{"the processor", `
import subprocess, os
ps = [subprocess.Popen(["/bin/sh", "-c", "while :; do :; done"]) for _ in range(20)]
import time; time.sleep(3)
for p in ps: p.kill(); p.wait()
print("came back")
`, ""},
	{"the end of its own kernel", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", "Variables are lost"},
	{"the end of its own shim", "import os, signal, time\nos.kill(1, signal.SIGTERM)\ntime.sleep(20)", ""},
	{"everything of its user", "import os, signal, time\nos.kill(-1, signal.SIGKILL)\ntime.sleep(5)", ""},
}

// fill writes into a folder until that is full.
func fill(folder string) string {
	return fmt.Sprintf(`
try:
    with open("%[1]s/x", "wb") as f:
        while True: f.write(b"x" * (1 << 20))
except OSError as e:
    print("stopped:", e.strerror)
import os; os.remove("%[1]s/x")
`, folder)
}

// TestBombs lets each bomb go off in a session of its own, while another owner works.
func TestBombs(t *testing.T) {
	needFull(t)
	eachWorld(t, func(w *world) {
		before := w.server.Memory(t)
		for _, b := range bombs {
			session := "bomb-" + strings.NewReplacer(" ", "-", "/", "").Replace(b.what)
			r := w.call(w.attacker, "execute_python", map[string]any{"session_id": session, "code": b.code, "timeout_seconds": 10, "wait_seconds": 150})
			if !strings.Contains(r.Text, b.says) {
				w.Errorf("%s: %q is missing in: %s", b.what, b.says, r.Text)
			}
			if strings.Contains(r.Text, "still running") {
				w.Errorf("%s: it did not end: %s", b.what, r.Text)
			}
			if next := w.python(w.attacker, session, "print('works')"); !strings.Contains(next.Text, "works") {
				w.Errorf("%s: the session does not work afterwards: %s", b.what, next.Text)
			}
			w.bystanderWorks()
			w.call(w.attacker, "close_session", map[string]any{"session_id": session, "delete_files": true})
			w.Logf("%s: %.160q", b.what, r.Text)
		}
		if after := w.server.Memory(t); after > before+300<<20 {
			w.Errorf("the server took %d MB, and takes %d MB", before>>20, after>>20)
		}
	}, "--profiles-session-memory", "512MB", "--profiles-session-pids", "200", "--sessions-workspace-max-bytes", "600MB")
}
