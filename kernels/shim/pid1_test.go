//go:build linux

package shim

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// unshare runs a command as pid 1 of a pid namespace.
func unshare(t testing.TB) []string {
	t.Helper()
	kernelstest.Need(t, os.Geteuid() == 0, "root, for a pid namespace,")
	return []string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc"}
}

// stopInside ends a shim under unshare, which does not pass SIGTERM on: the shim is its only child.
func stopInside(t testing.TB, b *shimProcess, c *client) {
	t.Helper()
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", b.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(children)))
	if err != nil || unix.Kill(pid, unix.SIGTERM) != nil {
		t.Fatalf("no shim among %q", children)
	}
	c.close()
	select {
	case <-b.done:
	case <-time.After(patience):
		t.Fatal("the shim does not end")
	}
}

// As pid 1 the shim reaps what the kernel's children leave behind, and nothing survives it.
func TestPid1(t *testing.T) {
	b, c := ready(t, nil, unshare(t)...)
	if e := c.event(stream.EventStarted); e.PID == 0 || e.PID > 100 {
		t.Fatalf("started %+v", e)
	}
	// Orphans: their parent ends at once, then they do.
	r := c.run(`import subprocess, os, time
for i in range(20): subprocess.run(['sh', '-c', 'sh -c "sleep 0.05; exit 7" & exit 0'])
subprocess.run(['setsid', 'sh', '-c', 'sleep 600 & exit 0'])
def state(pid):
    try: return open(f'/proc/{pid}/stat').read().rsplit(')', 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError): pass # it has been reaped meanwhile
left = None
for i in range(600):
    states = [s for s in map(state, filter(str.isdigit, os.listdir('/proc'))) if s]
    left = [s for s in states if s == 'Z'], len(states)
    if left == ([], 3): break
    time.sleep(0.05)
left`)
	if r.result != "([], 3)" { // shim, kernel, sleep
		t.Fatalf("zombies, processes: %s %v", r.result, r.reply)
	}
	if r := c.must(stream.OpKillChildren, 0); r.Killed != 1 {
		t.Fatalf("killed %d, want the orphaned sleep", r.Killed)
	}
	c.must(stream.OpRestart, 5*time.Second)
	c.nudge()
	if r := c.run("1+1"); r.result != "2" {
		t.Fatal("no answer after a restart")
	}
	stopInside(t, b, c)
}

// User code cannot connect to the shim; servers outside can.
func TestPeerOutside(t *testing.T) {
	b, c := ready(t, func(c *stream.Config) { c.PeerOutside = true }, unshare(t)...)
	path := strings.TrimPrefix(b.config.Listen, "unix:")
	r := c.run(fmt.Sprintf(`import socket, struct
s = socket.socket(socket.AF_UNIX)
s.connect(%q)
try:
    s.sendall(struct.pack('>IB', 14, 1) + b'{"version":1}')
    got = s.recv(100)
except OSError: got = b''
got`, path))
	if r.result != "b''" {
		t.Fatalf("user code was answered: %s %v", r.result, r.reply)
	}
	if r := c.run("1+1"); r.result != "2" {
		t.Fatal("the server's connection was disturbed")
	}
	stopInside(t, b, c)
}

// And the other way round: without its own namespace everybody is inside.
func TestPeerInside(t *testing.T) {
	config := testConfig(t)
	config.PeerOutside, config.Argv = true, []string{"sleep", "600"}
	startBinary(t, config)
	nc := connectSocket(t, config)
	defer nc.Close()
	_ = stream.NewWriter(nc).WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version})
	_ = nc.SetReadDeadline(time.Now().Add(patience))
	if _, err := stream.NewReader(nc, 1000).ReadFrame(); err == nil {
		t.Fatal("a peer of the same pid namespace was answered")
	} else if ne, ok := err.(net.Error); ok && ne.Timeout() {
		t.Fatal("the connection was not closed")
	}
}

// The OOM killer takes the kernel, not the shim, and the shim knows.
func TestOOM(t *testing.T) {
	group := memoryGroup(t, 300<<20)
	script := fmt.Sprintf(`echo $$ > %s/cgroup.procs; exec "$@"`, group)
	_, c := ready(t, func(c *stream.Config) { c.CgroupDir = group }, "sh", "-c", script, "sh")
	if s := c.must(stream.OpStats, 0).Stats; s.MemoryLimit != 300<<20 || s.Memory < 20<<20 || s.Memory > 300<<20 {
		t.Fatalf("%+v", s)
	}
	c.execute("x = []\nwhile True: x.append(bytearray(10 << 20))")
	if e := c.event(stream.EventExited); !e.Exit.OOM || e.Exit.Signal != "SIGKILL" || e.Exit.Asked {
		t.Fatalf("exited %+v", e.Exit)
	}
	c.must(stream.OpRestart, 0)
	c.nudge()
	if r := c.run("1+1"); r.result != "2" {
		t.Fatal("no answer after a restart")
	}
	if r := c.run("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'open(\"/proc/self/oom_score_adj\", \"w\").write(\"1000\"); bytearray(400 << 20)']).returncode"); r.result != "-9" {
		t.Fatalf("a process that needs too much memory ends with %+v", r)
	}
	c.execute("import os\nos.kill(os.getpid(), 9)")
	if e := c.find("second exit", func(f frame) bool {
		return f.event != nil && f.event.Exit != nil && f.event.Incarnation == 2
	}).event; e.Exit.OOM {
		t.Fatalf("killed by itself, and reported as OOM: %+v", e.Exit)
	}
}

// memoryGroup makes a control group with a memory limit, of version 1 or 2.
func memoryGroup(t *testing.T, limit int64) string {
	t.Helper()
	kernelstest.Need(t, os.Geteuid() == 0, "root, for a control group,")
	name := fmt.Sprintf("cellblock-test-%d", os.Getpid())
	for _, g := range [][2]string{{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"/sys/fs/cgroup", "memory.max"}} {
		dir := filepath.Join(g[0], name)
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		f, err := os.OpenFile(filepath.Join(dir, g[1]), os.O_WRONLY, 0) // it is there, or the folder is no group
		if err != nil {
			continue
		}
		_, err = fmt.Fprint(f, limit)
		if errors.Join(err, f.Close()) == nil {
			return dir
		}
	}
	kernelstest.Need(t, false, "a writable memory control group")
	return ""
}
