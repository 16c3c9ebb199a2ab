//go:build unix

package channels

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cellblock/kernels/kernelstest"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// kernel is a real ipykernel with our channels to it.
type kernel struct {
	*Channels
	*texter
	t     *testing.T
	cmd   *exec.Cmd
	n     int // requests sent
	filed map[key][]wire.Message
}

// eachTransport runs a test on a kernel over ipc and on one over tcp.
func eachTransport(t *testing.T, f func(t *testing.T, k *kernel)) {
	kernelstest.NeedPython(t)
	for _, transport := range []string{"ipc", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			c := connection(t)
			dir := filepath.Dir(c.IP)
			if transport == "tcp" {
				var err error
				if c, err = NewTCP(); err != nil {
					t.Fatal(err)
				}
			}
			f(t, startKernel(t, c, dir))
		})
	}
}

// startKernel starts a kernel and dials it at once.
func startKernel(t *testing.T, c Connection, dir string) *kernel {
	t.Helper()
	file := filepath.Join(dir, "c.json")
	content, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	k := &kernel{texter: &texter{recorder: newRecorder()}, t: t, filed: make(map[key][]wire.Message)}
	argv := slices.Clone(kernelstest.Python.Argv)
	argv[slices.Index(argv, "{connection_file}")] = file
	k.cmd = exec.Command(argv[0], argv[1:]...)
	k.cmd.Dir, k.cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/bin:/bin", "LANG=C.UTF-8"}
	k.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := k.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.cmd.Process.Kill()
		k.cmd.Wait()
	})
	k.Channels = dial(t, c, Options{Handler: k.texter})
	k.ready()
	return k
}

// ready asks for kernel_info until IOPub tells of it too: before, the kernel may not have seen our subscription.
func (k *kernel) ready() {
	for subscribed := false; !subscribed; {
		id := k.send(stream.Shell, "kernel_info_request", "{}")
		k.reply(id)
		k.mu.Lock()
		subscribed = k.idle(id)
		k.mu.Unlock()
	}
}

func (k *kernel) send(ch stream.Channel, msgType, content string) (id string) {
	k.t.Helper()
	k.n++
	id = fmt.Sprintf("request-%d", k.n)
	m := wire.Message{Header: wire.NewHeader(id, "session", msgType), Content: []byte(content)}
	if err := k.Send(ch, m.Parts()); err != nil {
		k.t.Fatal(err)
	}
	return id
}

func (k *kernel) execute(code string) (id string) {
	k.t.Helper()
	content, _ := json.Marshal(map[string]any{"code": code, "silent": false, "stop_on_error": false, "allow_stdin": strings.Contains(code, "input(")})
	return k.send(stream.Shell, "execute_request", string(content))
}

// key files a message under its parent and its type, all replies as one type.
type key struct{ parent, msgType string }

// of returns the messages with a parent and a type. The lock is held.
func (k *kernel) of(parent, msgType string) []wire.Message {
	for _, r := range k.messages {
		m, err := wire.FromParts(r.parts)
		if err != nil {
			k.t.Error(err)
		}
		if strings.HasSuffix(m.Header.MsgType, "_reply") {
			m.Header.MsgType = "reply"
		}
		filed := key{m.Parent.MsgID, m.Header.MsgType}
		k.filed[filed] = append(k.filed[filed], m)
	}
	k.messages = nil
	return k.filed[key{parent, msgType}]
}

func (k *kernel) idle(parent string) bool {
	for _, m := range k.of(parent, "status") {
		if strings.Contains(string(m.Content), "idle") {
			return true
		}
	}
	return false
}

// reply waits for the reply to a request and returns its content.
func (k *kernel) reply(parent string) (content map[string]any) {
	k.t.Helper()
	k.await(k.t, "reply to "+parent, func() bool {
		found := k.of(parent, "reply")
		if len(found) > 0 {
			json.Unmarshal(found[0].Content, &content)
		}
		return len(found) > 0
	})
	return content
}

// done waits for reply and idle, and returns all that was printed and the result.
func (k *kernel) done(parent string) (printed, result string) {
	k.t.Helper()
	k.reply(parent)
	k.await(k.t, "idle after "+parent, func() bool { return k.idle(parent) })
	k.mu.Lock()
	defer k.mu.Unlock()
	var text strings.Builder
	for _, m := range k.of(parent, "stream") {
		var c struct{ Text string }
		json.Unmarshal(m.Content, &c)
		text.WriteString(c.Text)
	}
	for _, m := range k.of(parent, "execute_result") {
		var c struct{ Data map[string]string }
		json.Unmarshal(m.Content, &c)
		result = c.Data["text/plain"]
	}
	if len(k.dropped) != 0 {
		k.t.Errorf("%d messages dropped, the first for %s", len(k.dropped), k.dropped[0].reason)
	}
	return text.String(), result
}

func TestRealKernel(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		if info := k.reply(k.send(stream.Shell, "kernel_info_request", "{}")); info["implementation"] != "ipython" {
			t.Errorf("kernel_info says %v", info)
		}
		if _, result := k.done(k.execute("1+1")); result != "2" {
			t.Errorf("1+1 is %q", result)
		}
		if printed, _ := k.done(k.execute("print('hello')")); printed != "hello\n" {
			t.Errorf("printed %q", printed)
		}
	})
}

func TestRealKernelLosesNothing(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		const count = 10_000
		var want strings.Builder
		for i := range count {
			fmt.Fprintln(&want, i)
		}
		code := fmt.Sprintf("for i in range(%d): print(i, flush=True)", count)
		if printed, _ := k.done(k.execute(code)); printed != want.String() {
			t.Errorf("printed %d bytes, want %d", len(printed), want.Len())
		}
		id := k.execute(fmt.Sprintf("from IPython.display import display\nfor i in range(%d): display(i)", count))
		k.done(id)
		if shown := len(k.filed[key{id, "display_data"}]); shown != count {
			t.Errorf("%d displays, want %d", shown, count)
		}
	})
}

// TestRealKernelLargeText has a kernel send much text in one message, as others than ours do with what is printed.
func TestRealKernelLargeText(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		for i, size := range []int{20_000_000, 80_000_000} {
			id := k.execute(fmt.Sprintf(`import sys
text = "<" + "x" * %d + ">"
_ = sys.stdout.session.send(sys.stdout.pub_thread, "stream", {"name": "stdout", "text": text}, parent=sys.stdout.parent_header)`, size))
			k.await(t, "text", func() bool { return len(k.texts) > i })
			if _, result := k.done(k.execute("1+1")); result != "2" || !k.idle(id) {
				t.Errorf("afterwards 1+1 is %q", result)
			}
			var content struct{ Name, Text string }
			if err := json.Unmarshal(k.texts[i].content.Bytes(), &content); err != nil || len(content.Text) != size+2 || k.texts[i].reason != "" {
				t.Errorf("%d bytes of %q, %q, %v", len(content.Text), content.Name, k.texts[i].reason, err)
			}
		}
	})
}

func TestRealKernelInterrupt(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		// Python hears of a signal that comes just before it falls asleep when it wakes up.
		id := k.execute("import time\nprint('asleep', flush=True)\nwhile True: time.sleep(1)")
		k.await(t, "sleep", func() bool { return len(k.of(id, "stream")) > 0 })
		start := time.Now()
		k.reply(k.send(stream.Control, "interrupt_request", "{}"))
		if reply := k.reply(id); reply["ename"] != "KeyboardInterrupt" {
			t.Errorf("reply %v", reply)
		}
		t.Logf("interrupted in %v", time.Since(start))
		if _, result := k.done(k.execute("1+1")); result != "2" {
			t.Errorf("afterwards 1+1 is %q", result)
		}
	})
}

// TestRealKernelAsks: the question comes on stdin, because shell and stdin share an identity.
func TestRealKernelAsks(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		id := k.execute("print('hello', input('who? '))")
		k.await(t, "question", func() bool { return len(k.of(id, "input_request")) > 0 })
		k.send(stream.Stdin, "input_reply", `{"value":"world"}`)
		if printed, _ := k.done(id); printed != "hello world\n" {
			t.Errorf("printed %q", printed)
		}
	})
}

func TestRealKernelKilled(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		k.execute("while True: print('x' * 1000)") // so that there is unread data
		start := time.Now()
		if err := k.cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for _, ch := range []stream.Channel{stream.Shell, stream.Control, stream.Stdin, stream.IOPub} {
			t.Log(k.awaitLost(t, ch))
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("noticed after %v", took)
		}
	})
}

// TestRealKernelStopped: what is sent to a process that is stopped waits for it.
func TestRealKernelStopped(t *testing.T) {
	eachTransport(t, func(t *testing.T, k *kernel) {
		if err := k.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		id := k.execute("1+1")
		if err := k.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if _, result := k.done(id); result != "2" {
			t.Errorf("1+1 is %q", result)
		}
	})
}
