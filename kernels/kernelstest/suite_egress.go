package kernelstest

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

// egressCases are about the way out of a sandbox, for kernels that are given one.
var egressCases = []suiteCase{
	{"item 6: a way out, and no other", real, testWayOut},
	{"a way out that nobody serves", real | inner, testWayOutUnserved},
	{"a flood through the way out", real | carried | inner, testWayOutFlood},
	{"a way out, found again", real | carried, testWayOutFoundAgain},
}

// helloes defines hello(port), which sends a line through a connection and returns all that comes back.
var helloes = fmt.Sprintf(`
import socket
def hello(text, port=%d):
    s = socket.create_connection(("127.0.0.1", port), 30)
    s.sendall(text.encode()); s.shutdown(socket.SHUT_WR)
    return s.makefile("rb").read().decode()
`, stream.DefaultProxyPort)

// answers serves connections by saying back what they say, behind a word.
func answers(word string) kernels.ServeTunnel {
	return func(_ context.Context, conn net.Conn, port int) {
		said, err := io.ReadAll(conn)
		if err == nil {
			_, _ = fmt.Fprintf(conn, "%s %d %s", word, port, said)
		}
		_ = conn.Close()
	}
}

func withEgress(s *kernels.Spec) { s.Egress = true }

func testWayOut(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	b := f.launch(withEgress)
	b.client.ServeEgress(answers("you said"))
	b.python(helloes)
	b.want("print(hello('hi'))", fmt.Sprintf("you said %d hi", stream.DefaultProxyPort))
	b.want("big = 'x' * 3000000\nprint(hello(big) == 'you said 3128 ' + big)", "True")
	b.want("print([name for _, name in socket.if_nameindex()])", "['lo']")
	b.want("import os\nprint({os.environ[n + s] for n in ('http', 'https', 'all') for s in ('_proxy',)} | {os.environ[n + '_PROXY'] for n in ('HTTP', 'HTTPS', 'ALL')})",
		fmt.Sprintf("{'http://127.0.0.1:%d'}", stream.DefaultProxyPort))
	b.want("try: print(hello('hi', 22))\nexcept OSError as e: print(e.strerror)", "Connection refused")
	closed := f.launch()
	closed.client.ServeEgress(answers("you said"))
	closed.python(helloes)
	closed.want("import os\ntry: print(hello('hi'))\nexcept OSError as e: print(e.strerror, 'HTTP_PROXY' in os.environ)", "Connection refused False")
}

func testWayOutUnserved(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	b := f.launch(withEgress)
	b.python(helloes)
	// Which of them it is depends on how far the kernel has come when its connection is reset.
	b.want("import errno\nfor _ in range(100):\n    try: print(hello('hi'))\n    except OSError as e: error = e\n"+
		"print(error.errno in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN) or error)", "True")
	b.client.ServeEgress(answers("now"))
	b.want("print(hello('hi'))", "now 3128 hi")
}

// testWayOutFlood has a kernel hold as many connections as it can, and send through all of them what nobody reads.
func testWayOutFlood(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	b := f.launch(withEgress)
	b.client.ServeEgress(func(ctx context.Context, conn net.Conn, _ int) { <-ctx.Done() })
	b.python(helloes + `
import threading
held = []
def flood():
    try:
        s = socket.create_connection(("127.0.0.1", 3128), 30); s.settimeout(None); held.append(s)
        while True: s.sendall(b"x" * 65536)
    except OSError: pass
for _ in range(90): threading.Thread(target=flood, daemon=True).start()`)
	if text, _ := b.run("for i in range(2000): print(i)"); strings.Count(text, "\n") != 2000 {
		f.Errorf("%d lines came", strings.Count(text, "\n"))
	}
	b.want("1 + 1", "2")
	stats, err := b.client.Stats(f.ctx())
	f.must(err)
	if stats.ShimMemory > 48<<20 {
		f.Errorf("the shim takes %d bytes", stats.ShimMemory)
	}
}

func testWayOutFoundAgain(f *suite) {
	f.enforced(f.p.Capabilities().Network, "isolation from the network")
	b := f.launch(withEgress)
	b.client.ServeEgress(func(ctx context.Context, conn net.Conn, _ int) { <-ctx.Done() })
	b.python(helloes + "\nold = socket.create_connection(('127.0.0.1', 3128), 30); old.sendall(b'x')")
	_ = b.client.Close()
	h, err := f.provisioner().Attach(f.ctx(), b.handle.Ref())
	f.must(err)
	defer h.Close()
	b.client = f.connect(h, kernels.Options{KernelID: b.spec.ID})
	b.client.ServeEgress(answers("again"))
	b.want("try: print(old.recv(1))\nexcept OSError as e: print(e.strerror)", "Connection reset by peer")
	b.want("print(hello('hi'))", "again 3128 hi")
}
