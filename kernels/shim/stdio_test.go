//go:build linux

package shim

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
)

// attached is the shim's binary with its stdio in our hands, as an engine has a container's.
type attached struct {
	*shimProcess
	in, out *os.File
}

func startAttached(t *testing.T) *attached {
	t.Helper()
	kernelstest.NeedPython(t)
	c := testConfig(t)
	c.Listen, c.AttachKey = "stdio", stream.NewAttachKey()
	stdin, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, stdout, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		out.Close()
	})
	b := startProcess(t, c, func(cmd *exec.Cmd) { cmd.Stdin, cmd.Stdout = stdin, stdout })
	stdin.Close()
	stdout.Close()
	return &attached{b, in, out}
}

// attachment is one server's use of the pipes, which stay open when it ends.
type attachment struct{ *attached }

func (a attachment) Read(p []byte) (int, error)         { return a.out.Read(p) }
func (a attachment) Write(p []byte) (int, error)        { return a.in.Write(p) }
func (a attachment) Close() error                       { return nil }
func (a attachment) SetReadDeadline(t time.Time) error  { return a.out.SetReadDeadline(t) }
func (a attachment) SetWriteDeadline(t time.Time) error { return a.in.SetWriteDeadline(t) }

func (a *attached) attach(after *uint64) *client {
	a.t.Helper()
	nc, err := stream.AttachClient(attachment{a}, a.config.AttachKey)
	if err != nil {
		a.t.Fatal(err)
	}
	return hello(a.t, crashing{nc}, after)
}

// crashing is a connection of a server that never says good-bye.
type crashing struct{ net.Conn }

func (crashing) Close() error { return nil }

// Servers come and go over the container's stdio, each dying in the middle of a frame; nothing is lost.
func TestStdio(t *testing.T) {
	a := startAttached(t)
	c := a.attach(nil)
	c.nudge()
	id := c.execute("for i in range(5000): print(i, flush=True)")
	c.find("line 1000", func(f frame) bool { return f.printed(`1000\n`) })
	for range 3 {
		_, _ = a.in.Write([]byte{0x10, 0x00, 1, 2, 3}) // the beginning of a chunk that never ends
		before, after := c.unread, c.last
		c = a.attach(&after)
		c.unread = before
		for range 300 {
			c.unread = append(c.unread, c.next())
		}
	}
	checkNumbers(t, c.finish(id).text["stdout"], 5000, 1000)
	a.kill()
	if strings.Contains(a.stderr.String(), a.config.AttachKey) {
		t.Fatal("the key is in the log")
	}
}

// Nobody reads for a while: the pipe is full, the shim's writer is stuck, and the next server is served all the same.
func TestStdioStuckWriter(t *testing.T) {
	a := startAttached(t)
	c := a.attach(nil)
	c.nudge()
	marker := a.config.Dir + "/done"
	id := c.execute("for i in range(3000): print(i, 'x' * 1000, flush=True)\nopen('" + marker + "', 'w').close()")
	c.find("first line", func(f frame) bool { return f.printed(`"0 x`) })
	before, after := c.unread, c.last
	waitForFile(t, marker)
	c = a.attach(&after)
	c.unread = before
	text := c.finish(id).text["stdout"]
	if got := strings.Count(text, "\n"); got != 2999 {
		t.Fatalf("%d lines", got)
	}
}
