package e2e

import (
	"archive/zip"
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"cellblock/e2e/rig"
)

// hostAddress is where the tests' hosts listen: one of this machine, and none of those that programs take for their own.
const hostAddress = "127.0.0.2"

// outside is a host that kernels connect to. It has a package index, too, and a service that speaks no HTTP.
type outside struct {
	plain, secure *httptest.Server
	wheel         []byte
	raw           net.Listener
}

func newOutside(t *testing.T) *outside {
	o := &outside{wheel: wheel(t, "faraway", "1.0", "def where(): return 'far away'\n")}
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Query().Get("name")) })
	mux.HandleFunc("/simple/faraway/", func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `<a href="/faraway-1.0-py3-none-any.whl#sha256=%x">faraway-1.0-py3-none-any.whl</a>`, sha256.Sum256(o.wheel))
	})
	mux.HandleFunc("/faraway-1.0-py3-none-any.whl", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(o.wheel) })
	for _, s := range []**httptest.Server{&o.plain, &o.secure} {
		ln, err := net.Listen("tcp", hostAddress+":0")
		if err != nil {
			t.Fatal(err)
		}
		*s = httptest.NewUnstartedServer(mux)
		(*s).Listener.Close()
		(*s).Listener = ln
		t.Cleanup((*s).Close)
	}
	o.plain.Start()
	o.secure.StartTLS()
	o.serveRaw(t)
	return o
}

// serveRaw answers one line, and speaks first, as databases' servers do.
func (o *outside) serveRaw(t *testing.T) {
	var err error
	if o.raw, err = net.Listen("tcp", hostAddress+":0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.raw.Close() })
	go func() {
		for conn, err := o.raw.Accept(); err == nil; conn, err = o.raw.Accept() {
			_, _ = io.WriteString(conn, "welcome\n")
			line, _ := bufio.NewReader(conn).ReadString('\n')
			_, _ = io.WriteString(conn, "you said "+line)
			_ = conn.Close()
		}
	}()
}

// port is that of one of its addresses.
func port(s *httptest.Server) int { return s.Listener.Addr().(*net.TCPAddr).Port }

// networkConfig is a configuration with a profile that reaches the host, and nothing else of this machine.
func networkConfig(t *testing.T, o *outside) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "cellblock.yaml")
	text := fmt.Sprintf(`profiles:
  far:
    network:
      mode: hosts
      hosts: ["%[1]s", "127.0.0.1", "nowhere.invalid", "169.254.169.254"]
      private: ["%[1]s:%[2]d", "%[1]s:%[3]d", "%[1]s:%[4]d", "127.0.0.1"]
`, hostAddress, port(o.plain), port(o.secure), o.raw.Addr().(*net.TCPAddr).Port)
	authority := filepath.Join(filepath.Dir(file), "authority.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: o.secure.Certificate().Raw})
	if err := os.WriteFile(authority, certificate, 0o600); err != nil {
		t.Fatal(err)
	}
	text += "network: {ca_file: " + authority + "}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// far runs Python in a session with a network.
func far(t *testing.T, c *rig.Client, session, code string) rig.Result {
	t.Helper()
	return call(t, c, "execute_python", map[string]any{"code": code, "session_id": session, "profile": "far"})
}

// fetching defines get(url), which returns what a library makes of an address, and its error's text.
const fetching = `
import ssl, urllib.request, urllib.error
def get(url):
    try: return urllib.request.urlopen(url, timeout=60, context=ssl._create_unverified_context()).read().decode()
    except urllib.error.HTTPError as e: return f"{e.code}: {e.read().decode()}"
    except OSError as e: return str(e)
`

// A session whose profile names a host reaches that by what programs use, and nothing else; one without reaches nothing. Each
// connection is in the audit log. A server that comes after a killed one leads out the kernels that it finds.
func TestNetworkByProfile(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		o := newOutside(t)
		dir, config := t.TempDir(), networkConfig(t, o)
		s := startIn(t, dir, runtime, noPool, "--config", config)
		token := s.Token(t)
		c := s.Connect(t, token, false)
		wantText(t, far(t, c, "n", fetching+fmt.Sprintf("print(get(%q), get(%q))", o.plain.URL+"/hello?name=plain", o.secure.URL+"/hello?name=tls")).Text, "hello plain hello tls")
		// The host's certificate is trusted, as the configuration says; it is for another address, which is all that is wrong.
		wantText(t, far(t, c, "n", fmt.Sprintf("try: urllib.request.urlopen(%q)\nexcept OSError as e: print(e)", o.secure.URL)).Text, "IP address mismatch")
		own := s.URL[strings.LastIndexByte(s.URL, ':')+1 : strings.LastIndexByte(s.URL, '/')]
		refused := far(t, c, "n", fmt.Sprintf(`
for url in ("http://pypi.example/", "https://pypi.example/", "http://169.254.169.254/latest/meta-data/", "http://nowhere.invalid/", "http://%[1]s:1/"):
    print(get(url))
import os; os.environ["no_proxy"] = ""
print(get("http://127.0.0.1:%[2]s/health"))`, hostAddress, own))
		wantText(t, refused.Text, "403: cellblock: pypi.example port 80 is not among the hosts", "Tunnel connection failed: 403", "pypi.example port 443 is not among",
			"403: cellblock: the address 169.254.169.254 is of cloud metadata", "502: cellblock: there is no host nowhere.invalid",
			"403: cellblock: the address "+hostAddress+" is this machine's own", "403: cellblock: the address 127.0.0.1 is the server's own")
		wantText(t, far(t, c, "n", fmt.Sprintf(`
import socket, struct
def socks(host, port):
    s = socket.create_connection(("127.0.0.1", 3128), 60)
    s.sendall(b"\x05\x01\x00"); s.recv(2)
    s.sendall(b"\x05\x01\x00\x03" + bytes([len(host)]) + host.encode() + struct.pack(">H", port))
    return s, s.recv(10)[1]
s, reply = socks(%q, %d)
s.sendall(b"GET /hello?name=socks HTTP/1.0\r\n\r\n")
with s, s.makefile() as answer: text = answer.read()
print(reply, text[-11:], socks("pypi.example", 443)[1])`, hostAddress, port(o.plain))).Text, "0 hello socks 2")
		throughForwarder(t, c, o)
		if runtime == "local" { // whose host has what it has
			throughCurl(t, c, o)
		} else {
			throughLibraries(t, c, o)
		}
		closed := python(t, c, "closed", fetching+fmt.Sprintf("import os\nprint(get(%q), 'HTTP_PROXY' in os.environ)", o.plain.URL+"/hello"))
		wantText(t, closed.Text, "urlopen error", "False")

		s.Kill(t)
		s = startIn(t, dir, runtime, noPool, "--config", config)
		c = s.Connect(t, token, false)
		wantText(t, far(t, c, "n", fmt.Sprintf("print(get(%q))", o.plain.URL+"/hello?name=again")).Text, "hello again")
		lines := connections(t, dir)
		for _, want := range []string{
			fmt.Sprintf("n far connect %[1]s:%[2]d %[1]s:%[2]d ok", hostAddress, port(o.secure)),
			fmt.Sprintf("n far http %[1]s:%[2]d %[1]s:%[2]d ok", hostAddress, port(o.plain)),
			fmt.Sprintf("n far socks5 %[1]s:%[2]d %[1]s:%[2]d ok", hostAddress, port(o.plain)),
			"n far connect pypi.example:443  forbidden", "n far http 169.254.169.254:80  forbidden", "n far http nowhere.invalid:80  unavailable",
		} {
			if !strings.Contains(lines, want+"\n") {
				t.Errorf("%q is not in the audit log:\n%s", want, lines)
			}
		}
	})
}

// throughLibraries uses what the image has for that.
func throughLibraries(t *testing.T, c *rig.Client, o *outside) {
	t.Helper()
	wantText(t, far(t, c, "n", "import requests\nprint(requests.get("+strconv.Quote(o.plain.URL+"/hello?name=requests")+", timeout=60).text)").Text, "hello requests")
	wantText(t, far(t, c, "n", fmt.Sprintf(`
import subprocess, sys
done = subprocess.run([sys.executable, "-m", "pip", "install", "--no-cache-dir",
    "--index-url", "http://%[1]s:%[2]d/simple", "--trusted-host", "%[1]s", "faraway"], capture_output=True, text=True)
print(done.stdout, done.stderr)
import faraway
print(faraway.where())`, hostAddress, port(o.plain))).Text, "far away")
}

// throughCurl uses this host's curl.
func throughCurl(t *testing.T, c *rig.Client, o *outside) {
	t.Helper()
	got := far(t, c, "n", fmt.Sprintf(`
import subprocess
def curl(url): print(subprocess.run(["curl", "--silent", "--show-error", "--insecure", "--fail-with-body", url], capture_output=True, text=True))
curl(%q); curl(%q); curl("https://pypi.example/")`, o.plain.URL+"/hello?name=curl", o.secure.URL+"/hello?name=tls"))
	wantText(t, got.Text, "hello curl", "hello tls", "response 403")
}

// throughForwarder leads a program that knows no proxy out by the lines in docs/configuration.md: what is there must work. Nothing of
// it waits on when a program has reset its connection.
func throughForwarder(t *testing.T, c *rig.Client, o *outside) {
	t.Helper()
	text, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(text), "```python\n")
	code, _, _ = strings.Cut(code, "```")
	code = strings.Replace(code, `lead(5432, "db.example.com", 5432)`, fmt.Sprintf("lead(5432, %q, %d)\nlead(5433, 'pypi.example', 5432)", hostAddress, o.raw.Addr().(*net.TCPAddr).Port), 1)
	got := far(t, c, "n", code+`
def ask(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 60) as s:
            s.sendall(b"select 42\n")
            with s.makefile() as answer: return answer.read()
    except OSError: return ""
print([ask(5432), ask(5432), ask(5433)])
import struct
before = set(threading.enumerate())
with socket.create_connection(("127.0.0.1", 5432), 60) as s:
    s.recv(1)
    copiers = [t for t in threading.enumerate() if t not in before]
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
for t in copiers: t.join(60)
print(len(copiers), [t.is_alive() for t in copiers], ask(5432))`)
	wantText(t, got.Text, `['welcome\nyou said select 42\n', 'welcome\nyou said select 42\n', '']`, "HTTP/1.1 403", "2 [False, False] welcome\nyou said select 42")
}

// wheel is a package with one module, as pip installs it.
func wheel(t *testing.T, name, version, module string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	info := name + "-" + version + ".dist-info/"
	for _, f := range [][2]string{
		{name + ".py", module}, {info + "METADATA", "Metadata-Version: 2.1\nName: " + name + "\nVersion: " + version + "\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", name + ".py,,\n" + info + "METADATA,,\n" + info + "WHEEL,,\n" + info + "RECORD,,\n"},
	} {
		entry, err := w.Create(f[0])
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(entry, f[1]) // into memory
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// connections are the lines of the audit log about connections, in short, once the last one is there.
func connections(t *testing.T, dir string) string {
	t.Helper()
	var short strings.Builder
	waitFor(t, func() bool {
		short.Reset()
		text, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for l := range bytes.Lines(text) {
			var e struct {
				Event, Subject, Session, Profile, Protocol, Host, Target, Status string
			}
			if json.Unmarshal(l, &e) != nil || e.Event != "connected" {
				continue
			}
			fmt.Fprintf(&short, "%s %s %s %s %s %s\n", e.Session, e.Profile, e.Protocol, e.Host, e.Target, e.Status)
			if n++; e.Subject != "dev" {
				t.Errorf("whose connection is it: %s", l)
			}
		}
		return n >= 10
	})
	return short.String()
}
