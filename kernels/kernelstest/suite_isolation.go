package kernelstest

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"cellblock/kernels"
)

// isolationCases are about what a kernel cannot reach.
var isolationCases = []suiteCase{
	{"item 6: no network", real, testNoNetwork},
	{"no host's abstract sockets", real, testNoAbstractSockets},
	{"cannot write outside the workspace", real, testNoWrites},
	{"cannot see other kernels' folders or host processes", real, testNoSight},
	{"not root, no capabilities, no new privileges", real, testNotRoot},
	{"no inherited environment", real, testNoEnvironment},
	{"runs in its workspace", real, testWorkspace},
	{"cannot reach its own shim's stream", real | carried, testNoStream},
	{"cannot end its own shim but politely", real | carried, testNoKill},
}

// listen accepts on an address of this host until the test ends.
func (f *suite) listen(network, address string) net.Addr {
	f.Helper()
	l, err := net.Listen(network, address)
	f.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			f.Errorf("a kernel connected to %s", l.Addr())
			_ = conn.Close()
		}
	}()
	f.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr()
}

func testNoNetwork(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	port := f.listen("tcp", "0.0.0.0:0").(*net.TCPAddr).Port
	targets := [][2]any{{"127.0.0.1", port}, {"1.1.1.1", 53}, {"169.254.169.254", 80}}
	addrs, err := net.InterfaceAddrs()
	f.must(err)
	for _, a := range addrs {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			targets = append(targets, [2]any{ip.IP.String(), port})
		}
	}
	text, err := json.Marshal(targets)
	f.must(err)
	b := f.launch()
	b.want("import socket, json\nprint([name for _, name in socket.if_nameindex()])", "['lo']")
	b.want(`
reached = []
for host, port in json.loads('`+string(text)+`'):
    try: socket.create_connection((host, port), 1); reached.append((host, port))
    except OSError: pass
print(reached)`, "[]")
	b.want(`
try: print(socket.getaddrinfo("example.com", 80))
except OSError: print("no names")`, "no names")
}

func testNoAbstractSockets(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	name := "cellblock-" + rand.Text()
	f.listen("unix", "@"+name)
	b := f.launch()
	b.want(`
import socket
s = socket.socket(socket.AF_UNIX)
try: s.connect("\0`+name+`"); print("connected")
except OSError as e: print(e.strerror)`, "Connection refused")
}

func testNoWrites(f *suite) {
	f.enforced(f.p.Capabilities().Filesystem, "isolation from the host's files")
	name := "cellblock-" + strings.ToLower(rand.Text())
	refused := []string{"/", "/etc", "/usr", "/usr/bin", "/bin", "/lib", "/opt", "/root", "/home", "/boot", "/sys", "/proc/sys/kernel"}
	private := []string{"/tmp", "/var/tmp", "/dev/shm", "/run", "/var/lib", "/var", "/mnt", "/srv", f.dir, filepath.Dir(f.dir)}
	list, err := json.Marshal(append(append([]string{}, refused...), private...))
	f.must(err)
	b := f.launch()
	text := b.python(`
import json
wrote = []
for d in json.loads('` + string(list) + `'):
    try: open(d.rstrip("/") + "/` + name + `", "w").close(); wrote.append(d)
    except OSError: pass
print(json.dumps(wrote))`)
	var wrote []string
	f.must(json.Unmarshal([]byte(text), &wrote))
	for _, dir := range wrote {
		for _, r := range refused {
			if dir == r {
				f.Errorf("wrote to %s", dir)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			f.Errorf("wrote to %s of the host", dir)
			_ = os.Remove(filepath.Join(dir, name))
		}
	}
	b.want(`
done = []
for path in ("/etc/passwd", "/usr/bin/env", "/proc/sysrq-trigger", "/proc/1/oom_score_adj"):
    try: open(path, "a").close(); done.append(path)
    except OSError: pass
print(done)`, "[]")
}

func testNoSight(f *suite) {
	c := f.p.Capabilities()
	f.enforced(c.Filesystem, "isolation from the host's files")
	f.enforced(c.Processes, "isolation from other processes")
	other := f.launch()
	other.python("open('theirs', 'w').write('secret')")
	b := f.launch()
	paths, err := json.Marshal([]string{
		other.spec.Workspace, filepath.Join(other.spec.Workspace, "theirs"), f.dir, b.spec.Workspace, "/root/.ssh", "/var/run/docker.sock", "/run/docker.sock",
	})
	f.must(err)
	b.want("import os, json\nprint([p for p in json.loads('"+string(paths)+"') if os.path.exists(p)])", "[]")
	b.want(fmt.Sprintf(`
foreign = []
for pid in filter(str.isdigit, os.listdir("/proc")):
    try: text = open("/proc/" + pid + "/cmdline").read()
    except OSError: continue
    if %q in text or %q in text: foreign.append(text)
print(foreign)`, other.spec.ID, filepath.Base(os.Args[0])), "[]")
	count, err := strconv.Atoi(strings.TrimSpace(b.python(`print(len([p for p in os.listdir("/proc") if p.isdigit()]))`)))
	if err != nil || count > 10 {
		f.Errorf("%d processes in sight, %v", count, err)
	}
	b.want(`
try: os.kill(`+strconv.Itoa(os.Getpid())+`, 0); print("found")
except ProcessLookupError: print("none")`, "none")
	b.want("print(os.listdir('.'))", "[]")
}

func testNotRoot(f *suite) {
	b := f.launch()
	text := b.python(`
import os, json
status = dict(l.split(":", 1) for l in open("/proc/self/status"))
print(json.dumps({"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(), **{k: status[k].strip() for k in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs", "Seccomp")}}))`)
	var got struct {
		UID, GID                                            int
		Groups                                              []int
		CapEff, CapPrm, CapInh, CapAmb, NoNewPrivs, Seccomp string
	}
	f.must(json.Unmarshal([]byte(text), &got))
	if got.UID == 0 || got.GID == 0 {
		f.Errorf("runs as %d:%d", got.UID, got.GID)
	}
	for _, g := range got.Groups {
		if g == 0 {
			f.Errorf("in group 0: %v", got.Groups)
		}
	}
	if f.p.Capabilities().Processes == "" {
		return
	}
	const none = "0000000000000000"
	if got.CapEff != none || got.CapPrm != none || got.CapInh != none || got.CapAmb != none || got.NoNewPrivs != "1" {
		f.Errorf("privileges: %s", text)
	}
	if got.Seccomp != "2" {
		f.Errorf("no seccomp filter: %s", text)
	}
}

func testNoEnvironment(f *suite) {
	b := f.launch(func(s *kernels.Spec) { s.Env = map[string]string{"GIVEN": "by the spec"} })
	text := b.python(`
import os, glob
for path in glob.glob("/proc/*/environ"):
    try: print(open(path).read())
    except OSError: pass
print(dict(os.environ))`)
	if strings.Contains(text, f.secret) {
		f.Error("the server's environment is to be seen")
	}
	b.want("print(os.environ['GIVEN'])", "by the spec")
	b.want("print([k for k in os.environ if k.startswith('CELLBLOCK')])", "[]")
}

func testWorkspace(f *suite) {
	b := f.launch()
	b.want("open('made', 'w').write('by the kernel')\nimport os\nprint(len(os.listdir('.')))", "1")
	if f.p.Capabilities().Filesystem != "" {
		b.want("print(os.getcwd())", "/workspace")
	}
	text, err := os.ReadFile(filepath.Join(b.spec.Workspace, "made"))
	if err != nil || string(text) != "by the kernel" {
		f.Errorf("on the host: %q, %v", text, err)
	}
}

// testNoStream looks for sockets that a kernel could dial to speak to its shim as the server does: what it finds must not
// welcome it.
func testNoStream(f *suite) {
	f.enforced(f.p.Capabilities().Processes, "isolation from other processes")
	b := f.launch()
	b.want(`
import os, socket, struct, json
hello = json.dumps({"version": 1}).encode()
welcomed = []
for root, _, names in os.walk("/"):
    if root.startswith(("/proc", "/sys", "/usr")): continue
    for name in names:
        path = os.path.join(root, name)
        try:
            import stat
            if not stat.S_ISSOCK(os.lstat(path).st_mode): continue
            s = socket.socket(socket.AF_UNIX); s.settimeout(1); s.connect(path)
            s.sendall(struct.pack(">IB", len(hello) + 1, 1) + hello)
            if b"kernel_id" in s.recv(4096): welcomed.append(path)
        except OSError: pass
print(welcomed)`, "[]")
	b.want("1+1", "2")
	f.must(b.client.Close()) // two clients of one shim would take the stream from each other without end
	b.client = f.connect(b.handle, kernels.Options{KernelID: b.spec.ID})
	f.must(b.client.Ready(f.ctx()))
}

// testNoKill checks that signals from user code do not end the shim. SIGTERM does, as it does for an engine: the kernel ends,
// and the server is told.
func testNoKill(f *suite) {
	f.enforced(f.p.Capabilities().Processes, "isolation from other processes")
	b := f.launch()
	b.want(`
import os, signal, time
for n in 200 * sorted(set(range(1, signal.NSIG)) - {signal.SIGTERM}):
    try: os.kill(os.getppid(), n)
    except OSError: pass
ignored = lambda pid: [line.split()[1] for line in open(f"/proc/{pid}/status") if line.startswith("SigIgn")][0]
print(f"{int(ignored(os.getppid()), 16) >> 31 & 7:b} {int(ignored('self'), 16) >> 31 & 7:b}")`, "111 0") // those of C libraries' threads
	b.want("1+1", "2")
}
