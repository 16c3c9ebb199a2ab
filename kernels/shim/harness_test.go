//go:build linux

package shim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// patience bounds every wait for something that must happen.
const patience = 30 * time.Second

// TestMain lets the test binary be what the shim's binary is: the one that becomes the kernel.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == LaunchArg {
		os.Exit(Launch(os.Args[2]))
	}
	code := m.Run()
	kernelstest.RemoveShim()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// python is a kernel whose IOPub holds 100,000 messages. ZMQ's 1,000 are lost to any reader on a busy host, and the
// tests want to know what the shim loses.
var python = []string{"/usr/bin/python3", "-c", `import sys
del sys.path[0]
import zmq
from ipykernel.kernelapp import IPKernelApp
class App(IPKernelApp):
    def init_iopub(self, context):
        context.setsockopt(zmq.SNDHWM, 100_000)
        super().init_iopub(context)
App.launch_instance()`, "-f", "{connection_file}", "--HistoryManager.enabled=False"}

// testConfig is a Config for a real Python kernel, in short folders of its own.
func testConfig(t testing.TB) stream.Config {
	t.Helper()
	dir := kernelstest.ShortDir(t)
	c := stream.Config{
		KernelID: "testkernel", Listen: "unix:" + filepath.Join(dir, "s"), Argv: python,
		Env: []string{"PATH=/usr/bin:/bin", "HOME=" + dir, "PYTHONDONTWRITEBYTECODE=1"},
		Dir: dir, RunDir: filepath.Join(dir, "run"),
	}
	setDefaults(&c)
	return c
}

// shimProcess is the real binary.
type shimProcess struct {
	t      testing.TB
	config stream.Config
	cmd    *exec.Cmd
	stderr bytes.Buffer
	done   chan struct{}
}

// startBinary starts the shim's binary under wrap, a command that runs its arguments.
func startBinary(t testing.TB, c stream.Config, wrap ...string) *shimProcess {
	t.Helper()
	return startProcess(t, c, nil, wrap...)
}

// startProcess is startBinary with a last change to the command.
func startProcess(t testing.TB, c stream.Config, change func(*exec.Cmd), wrap ...string) *shimProcess {
	t.Helper()
	b := &shimProcess{t: t, config: c, done: make(chan struct{})}
	args := append(wrap, kernelstest.BuildShim(t))
	b.cmd = exec.Command(args[0], args[1:]...)
	b.cmd.Env = []string{stream.ConfigEnv + "=" + string(encode(c)), "PATH=" + os.Getenv("PATH")}
	b.cmd.Stderr = &b.stderr
	if change != nil {
		change(b.cmd)
	}
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = b.cmd.Wait()
		close(b.done)
	}()
	t.Cleanup(b.kill)
	return b
}

func (b *shimProcess) kill() {
	_ = b.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-b.done:
	case <-time.After(patience):
		_ = b.cmd.Process.Kill()
		<-b.done
		b.t.Error("the shim did not end on SIGTERM")
	}
	if b.t.Failed() {
		b.t.Logf("the shim wrote:\n%s", b.stderr.String())
	}
}

// dial connects to the socket, once it is there, and sends Hello.
func (b *shimProcess) dial(after *uint64) *client {
	b.t.Helper()
	return dialShim(b.t, b.config, after)
}

// client is a server's end of the stream.
type client struct {
	t       testing.TB
	nc      net.Conn
	r       *stream.Reader
	w       *stream.Writer
	welcome stream.Welcome
	last    uint64 // number of the last frame
	begun   bool   // there was one
	replies []stream.Reply
	// unread are frames that were read while something else was looked for.
	unread []frame
	calls  uint64
	noAcks bool
}

// frame is a numbered frame.
type frame struct {
	seq   uint64
	event *stream.Event
	ch    stream.Channel
	msg   wire.Message
	size  int
}

// printed tells whether f is output that has text in its JSON.
func (f frame) printed(text string) bool {
	return f.event == nil && f.msg.Header.MsgType == "stream" && strings.Contains(string(f.msg.Content), text)
}

func connectSocket(t testing.TB, c stream.Config) net.Conn {
	t.Helper()
	path := strings.TrimPrefix(c.Listen, "unix:")
	for start := time.Now(); ; {
		nc, err := net.Dial("unix", path)
		if err == nil {
			return nc
		}
		if time.Since(start) > patience {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond) // the provisioner's business; nothing tells a test
	}
}

func dialShim(t testing.TB, c stream.Config, after *uint64) *client {
	t.Helper()
	return hello(t, connectSocket(t, c), after)
}

func hello(t testing.TB, nc net.Conn, after *uint64) *client {
	t.Helper()
	c := &client{t: t, nc: nc, r: stream.NewReader(nc, 128<<20), w: stream.NewWriter(nc)}
	t.Cleanup(c.close)
	if err := c.w.WriteJSON(stream.FrameHello, stream.Hello{Version: stream.Version, After: after}); err != nil {
		t.Fatal(err)
	}
	if after != nil {
		c.last, c.begun = *after, true
	}
	f := c.read()
	if f.Type != stream.FrameWelcome {
		t.Fatalf("frame of type %d in place of welcome", f.Type)
	}
	if err := stream.DecodeJSON(f.Payload, &c.welcome); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *client) close() { c.nc.Close() }

func (c *client) read() stream.Frame {
	c.t.Helper()
	_ = c.nc.SetReadDeadline(time.Now().Add(patience))
	f, err := c.r.ReadFrame()
	if err != nil {
		c.t.Fatalf("reading the stream: %v", err)
	}
	return f
}

// next returns the next numbered frame from the carrier, and acknowledges it. Replies are put aside.
func (c *client) next() frame {
	c.t.Helper()
	raw := c.read()
	if raw.Type == stream.FrameReply {
		var r stream.Reply
		if err := stream.DecodeJSON(raw.Payload, &r); err != nil {
			c.t.Fatal(err)
		}
		c.replies = append(c.replies, r)
		return frame{}
	}
	f := c.decode(raw)
	if gap := f.event != nil && f.event.Kind == stream.EventGap; c.begun && f.seq != c.last+1 && !(gap && f.event.Gap.From == c.last+1) {
		c.t.Fatalf("frame %d after %d", f.seq, c.last)
	}
	c.last, c.begun = f.seq, true
	if !c.noAcks {
		c.ack()
	}
	return f
}

func (c *client) ack() {
	_ = c.w.WriteAck(c.last)
}

func (c *client) decode(raw stream.Frame) frame {
	c.t.Helper()
	f := frame{size: len(raw.Payload)}
	switch raw.Type {
	case stream.FrameEvent:
		seq, e, err := stream.DecodeEvent(raw.Payload)
		if err != nil {
			c.t.Fatal(err)
		}
		f.seq, f.event = seq, &e
	case stream.FrameMessage:
		m, err := stream.DecodeMessage(raw.Payload)
		if err != nil {
			c.t.Fatal(err)
		}
		f.seq, f.ch = m.Seq, m.Channel
		if f.msg, err = wire.FromParts(m.Parts); err != nil {
			c.t.Fatal(err)
		}
	default:
		c.t.Fatalf("frame of type %d", raw.Type)
	}
	return f
}

// find returns the first frame that match likes; the others stay for later finds.
func (c *client) find(what string, match func(frame) bool) frame {
	c.t.Helper()
	for i, f := range c.unread {
		if match(f) {
			c.unread = slices.Delete(c.unread, i, i+1)
			return f
		}
	}
	for start := time.Now(); time.Since(start) < patience; {
		f := c.next()
		if f.seq == 0 {
			continue
		}
		if match(f) {
			return f
		}
		c.unread = append(c.unread, f)
	}
	c.t.Fatalf("no %s", what)
	return frame{}
}

// event waits for an event.
func (c *client) event(kind stream.EventKind) stream.Event {
	c.t.Helper()
	return *c.find(string(kind), func(f frame) bool { return f.event != nil && f.event.Kind == kind }).event
}

// send sends a request on shell and returns its msg_id.
func (c *client) send(msgType string, content any) string {
	c.t.Helper()
	m := wire.Message{Header: wire.NewHeader(newID(), "test", msgType), Content: encode(content)}
	if err := c.w.WriteMessage(stream.FrameSend, stream.Message{Channel: stream.Shell, Parts: m.Parts()}); err != nil {
		c.t.Error(err)
	}
	return m.Header.MsgID
}

func (c *client) execute(code string) string {
	c.t.Helper()
	return c.send("execute_request", map[string]any{"code": code, "silent": false, "store_history": false, "allow_stdin": false, "stop_on_error": false})
}

// result is what an execution produced.
type result struct {
	text   map[string]string // stream name → text
	result string
	reply  map[string]any
	frames []frame // of the execution, and events, in order
}

// finish collects an execution until both reply and idle were seen.
func (c *client) finish(id string) result {
	c.t.Helper()
	r := result{text: make(map[string]string)}
	idle := false
	pending := c.unread
	c.unread = nil
	for start := time.Now(); r.reply == nil || !idle; {
		var f frame
		if len(pending) > 0 {
			f, pending = pending[0], pending[1:]
		} else if f = c.next(); f.seq == 0 {
			continue
		}
		if time.Since(start) > 4*patience {
			c.t.Fatal("an execution does not end")
		}
		if f.event == nil && f.msg.Parent.MsgID != id {
			c.unread = append(c.unread, f)
			continue
		}
		r.frames = append(r.frames, f)
		if f.event != nil {
			c.unread = append(c.unread, f)
			continue
		}
		idle = r.add(f) || idle
	}
	return r
}

func (r *result) add(f frame) (idle bool) {
	var content map[string]any
	_ = json.Unmarshal(f.msg.Content, &content)
	switch f.msg.Header.MsgType {
	case "stream":
		r.text[content["name"].(string)] += content["text"].(string)
	case "execute_result":
		r.result = content["data"].(map[string]any)["text/plain"].(string)
	case "execute_reply":
		r.reply = content
	case "status":
		return content["execution_state"] == "idle"
	}
	return false
}

// run executes code and waits for its end.
func (c *client) run(code string) result {
	c.t.Helper()
	return c.finish(c.execute(code))
}

// call sends a request to the shim and waits for the reply.
func (c *client) call(op stream.Op, grace time.Duration) stream.Reply {
	c.t.Helper()
	id := c.ask(op, grace)
	return c.reply(id)
}

func (c *client) ask(op stream.Op, grace time.Duration) uint64 {
	c.t.Helper()
	c.calls++
	if err := c.w.WriteJSON(stream.FrameRequest, stream.Request{ID: c.calls, Op: op, GraceMS: grace.Milliseconds()}); err != nil {
		c.t.Fatal(err)
	}
	return c.calls
}

func (c *client) reply(id uint64) stream.Reply {
	c.t.Helper()
	for {
		for i, r := range c.replies {
			if r.ID == id {
				c.replies = slices.Delete(c.replies, i, i+1)
				return r
			}
		}
		if f := c.next(); f.seq != 0 {
			c.unread = append(c.unread, f)
		}
	}
}

// must is call for requests that have to work.
func (c *client) must(op stream.Op, grace time.Duration) stream.Reply {
	c.t.Helper()
	r := c.call(op, grace)
	if r.Error != "" {
		c.t.Fatalf("%s: %s", op, r.Error)
	}
	return r
}

// ready starts a Python kernel under the real binary and waits until it answers.
func ready(t testing.TB, change func(*stream.Config), wrap ...string) (*shimProcess, *client) {
	t.Helper()
	kernelstest.NeedPython(t)
	config := testConfig(t)
	if change != nil {
		change(&config)
	}
	b := startBinary(t, config, wrap...)
	c := b.dial(nil)
	c.nudge()
	return b, c
}

// nudge asks the kernel until IOPub answers: its subscription takes effect some time after EventConnected.
func (c *client) nudge() {
	c.t.Helper()
	incarnation := c.event(stream.EventConnected).Incarnation
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		for ticker := time.NewTicker(50 * time.Millisecond); ; {
			c.send("kernel_info_request", struct{}{})
			select {
			case <-ticker.C:
			case <-stop:
				ticker.Stop()
				return
			}
		}
	}()
	c.unread = slices.DeleteFunc(c.unread, func(f frame) bool { return f.event == nil }) // of kernels before
	c.find(fmt.Sprintf("answer of kernel %d on IOPub", incarnation), func(f frame) bool {
		return f.ch == stream.IOPub && f.msg.Parent.MsgType == "kernel_info_request" && strings.Contains(string(f.msg.Content), "idle")
	})
}
