//go:build linux

package local

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// escapes tries what user code must not be able to do and prints, as JSON, how each try failed: an errno's name, or "ok".
const escapes = `
import ctypes, errno, fcntl, glob, json, os, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
found = {"fds": sorted(int(p) for p in os.listdir("/proc/self/fd"))}
def attempt(name, f):
    try:
        r = f()
        found[name] = "ok" if r is None else str(r)
    except OSError as e:
        found[name] = errno.errorcode.get(e.errno, str(e.errno))
def call(name, *args):
    def f():
        ctypes.set_errno(0)
        if getattr(libc, name)(*args) == -1:
            raise OSError(ctypes.get_errno(), "")
    return f
def syscall(nr, *args): return call("syscall", nr, *args)
def write(path):
    def f():
        with open(path, "w") as g: g.write("x")
    return f
def connect(family, address):
    def f():
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(2)
        s.connect(address)
    return f
hostpid, port, abstract = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
attempt("ptrace the shim", call("ptrace", 16, 1, 0, 0))
for f in "environ", "mem", "maps", "stat":
    attempt("read shim's " + f, lambda: open("/proc/1/" + f, "rb").read(1) and None)
attempt("list shim's fds", lambda: os.listdir("/proc/1/fd") and None)
attempt("become root", lambda: os.setuid(0))
attempt("signal a host process", lambda: os.kill(hostpid, 0))
attempt("abstract socket of the host", connect(socket.AF_UNIX, "\0" + abstract))
attempt("loopback of the host", connect(socket.AF_INET, ("127.0.0.1", port)))
attempt("the internet", connect(socket.AF_INET, ("1.1.1.1", 53)))
attempt("vsock", lambda: socket.socket(40, socket.SOCK_STREAM) and None)
attempt("packet socket", lambda: socket.socket(17, socket.SOCK_RAW) and None)
attempt("new user namespace", call("unshare", 0x10000000))
attempt("new mount namespace", call("unshare", 0x20000))
attempt("join a namespace", lambda: call("setns", os.open("/proc/self/ns/net", 0), 0)())
attempt("mount", call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
attempt("umount", call("umount2", b"/workspace", 2))
attempt("chroot", lambda: os.chroot("/tmp"))
attempt("perf", syscall(298 if os.uname().machine == "x86_64" else 241, None, 0, -1, -1, 0))
attempt("bpf", syscall(321 if os.uname().machine == "x86_64" else 280, 0, None, 0))
attempt("userfaultfd", syscall(323 if os.uname().machine == "x86_64" else 282, 0))
attempt("keyctl", syscall(250 if os.uname().machine == "x86_64" else 219, 0, -3, 0))
attempt("io_uring", syscall(425, 1, None))
attempt("clone3", syscall(435, None, 0))
if os.uname().machine == "x86_64":
    attempt("x32 getpid", syscall(0x40000000 + 39))
attempt("push terminal input", lambda: fcntl.ioctl(0, 0x5412, b"x") and None)
attempt("hostname", write("/proc/sys/kernel/hostname"))
for path in "/x", "/usr/x", "/etc/x", "/dev/x", "/bin/x", "/sys/x", "/run/cellblock-shim", "/etc/passwd", "/proc/sysrq-trigger", "/proc/1/oom_score_adj":
    attempt("write " + path, write(path))
for path in glob.glob("/sys/fs/cgroup/*max") + glob.glob("/sys/fs/cgroup/*/*max") + glob.glob("/sys/fs/cgroup/*/*limit_in_bytes") + glob.glob("/sys/fs/cgroup/**/cgroup.procs", recursive=True):
    attempt("write cgroup " + path, write(path))
os.symlink("/etc/shadow", "/workspace/link")
attempt("read a link to the host", lambda: open("/workspace/link").read(1))
os.symlink("/proc/1/root", "/workspace/root")
attempt("the shim's root", lambda: os.listdir("/workspace/root/") and None)
found["pids"] = sorted(int(p) for p in os.listdir("/proc") if p.isdigit())
found["interfaces"] = [n for _, n in socket.if_nameindex()]
found["hostname is"] = os.uname().nodename
found["env"] = sorted(os.environ)
found["home"] = sorted(os.listdir("/home")) if os.path.exists("/home") else None
print(json.dumps(found))
`

// allowedEnv is all that a kernel gets to see of the environment; PWD and the like are the shell's own.
const allowedEnv = "HOME LANG LC_CTYPE LOGNAME LOKY_MAX_CPU_COUNT MKL_NUM_THREADS MPLCONFIGDIR NUMEXPR_MAX_THREADS NUMEXPR_NUM_THREADS OLDPWD OMP_NUM_THREADS " +
	"OPENBLAS_NUM_THREADS PATH PWD PYTHON_CPU_COUNT SHELL SHLVL TERM TMPDIR USER XDG_CACHE_HOME _"

func TestEscape(t *testing.T) {
	t.Setenv("SECRET_OF_THE_SERVER", "x")
	abstract := fmt.Sprintf("cellblock-test-%d", os.Getpid())
	unixListener, err := net.Listen("unix", "@"+abstract)
	if err != nil {
		t.Fatal(err)
	}
	defer unixListener.Close()
	tcpListener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer tcpListener.Close()

	p := newLocal(t, t.TempDir())
	spec, read := script(t, p, "escape0001", fmt.Sprintf("exec /usr/bin/python3 /workspace/escapes.py %d %d %s",
		os.Getpid(), tcpListener.Addr().(*net.TCPAddr).Port, abstract))
	if err := os.WriteFile(filepath.Join(spec.Workspace, "escapes.py"), []byte(escapes), 0o644); err != nil {
		t.Fatal(err)
	}
	h, err := p.Launch(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	defer h.Stop(t.Context(), 0)
	out := read()
	var found map[string]any
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	checkEscapes(t, found)
}

func checkEscapes(t *testing.T, found map[string]any) {
	t.Helper()
	tried := 0
	for name, got := range found {
		result, ok := got.(string)
		if !ok || name == "hostname is" {
			continue
		}
		tried++
		if result == "ok" && name != "read shim's stat" {
			t.Errorf("%s: succeeded", name)
		}
	}
	if tried < 40 {
		t.Errorf("only %d tries: %v", tried, found)
	}
	for name, want := range map[string]string{
		"ptrace the shim": "EPERM", "read shim's environ": "EACCES", "list shim's fds": "EACCES", "signal a host process": "ESRCH",
		"abstract socket of the host": "ECONNREFUSED", "loopback of the host": "ECONNREFUSED", "the internet": "ENETUNREACH",
		"vsock": "EAFNOSUPPORT", "new user namespace": "EPERM", "clone3": "ENOSYS", "push terminal input": "EPERM",
		"read a link to the host": "ENOENT", "write /usr/x": "EROFS", "write /x": "EROFS", "hostname is": "cellblock",
	} {
		if found[name] != want {
			t.Errorf("%s: %v, want %s", name, found[name], want)
		}
	}
	if pids := found["pids"].([]any); len(pids) > 8 || pids[len(pids)-1].(float64) > 100 {
		t.Errorf("sees processes %v", pids)
	}
	if fds := fmt.Sprint(found["fds"]); fds != "[0 1 2 3]" && fds != "[0 1 2 3 4]" { // the script's own, and listdir's
		t.Errorf("has descriptors %v", fds)
	}
	if got := fmt.Sprint(found["interfaces"]); got != "[lo]" {
		t.Errorf("has interfaces %v", got)
	}
	for _, name := range found["env"].([]any) {
		if !strings.Contains(" "+allowedEnv+" ", " "+name.(string)+" ") {
			t.Errorf("sees environment variable %s", name)
		}
	}
}

// A program's set-user-id bit has no effect, and /tmp executes nothing where root can see to that.
func TestNoPrivilegesNoExec(t *testing.T) {
	p := newLocal(t, t.TempDir())
	_, out := launchScript(t, p, "escape0002", `
grep NoNewPrivs /proc/self/status
grep -c nosuid /proc/mounts; wc -l </proc/mounts
cp /bin/true /tmp/t; /tmp/t; echo "exec: $?"
stat -f -c "tmp: %b blocks of %S" /tmp`)
	if !strings.Contains(out, "NoNewPrivs:\t1") {
		t.Error(out)
	}
	if exec := strings.Contains(out, "exec: 0"); exec == p.stages() {
		t.Errorf("execution in /tmp: %v: %s", exec, out)
	}
	lines := strings.Split(out, "\n")
	if lines[1] != lines[2] {
		t.Errorf("%s of %s mounts are nosuid", lines[1], lines[2])
	}
	if want := "tmp: " + strconv.Itoa(8<<20/os.Getpagesize()); p.bwrap.sized && !strings.Contains(out, want) {
		t.Errorf("want %s: %s", want, out)
	}
}

// What lies in the run folder is used only if it is the socket that the server made.
func TestDialRefusesWhatIsNoSocket(t *testing.T) {
	p := newLocal(t, t.TempDir())
	h, _ := launchScript(t, p, "escape0003", "true")
	elsewhere := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", elsewhere)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	path := p.socketPath("escape0003")
	for name, place := range map[string]func() error{
		"link":    func() error { return os.Symlink(elsewhere, path) },
		"file":    func() error { return os.WriteFile(path, nil, 0o600) },
		"folder":  func() error { return os.Mkdir(path, 0o700) },
		"nothing": func() error { return nil },
	} {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		if err := place(); err != nil {
			t.Fatal(err)
		}
		if conn, err := h.Dial(t.Context()); err == nil {
			_ = conn.Close()
			t.Errorf("%s: connected", name)
		}
	}
}
