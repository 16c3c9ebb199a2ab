package channels

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

func TestConnectionFile(t *testing.T) {
	c, err := NewIPC("/run/x")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Key) < 26 {
		t.Errorf("key %q is short", c.Key)
	}
	c.Key, c.KernelName = "secret", "python3"
	got, err := json.Marshal(c)
	const want = `{"transport":"ipc","ip":"/run/x/k","shell_port":1,"iopub_port":2,"stdin_port":3,"control_port":4,"hb_port":5,` +
		`"signature_scheme":"hmac-sha256","key":"secret","kernel_name":"python3"}`
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v", got, err)
	}
}

func TestNewIPCLength(t *testing.T) {
	if _, err := NewIPC("/" + strings.Repeat("x", 102)); err != nil {
		t.Errorf("103 bytes: %v", err)
	}
	if c, err := NewIPC("/" + strings.Repeat("x", 103)); err == nil || !strings.Contains(err.Error(), "107") {
		t.Errorf("104 bytes: got %v, %v, want an error that names the limit", c, err)
	}
}

func TestNewTCP(t *testing.T) {
	c, err := NewTCP()
	if err != nil {
		t.Fatal(err)
	}
	ports := map[int]bool{c.ShellPort: true, c.IOPubPort: true, c.StdinPort: true, c.ControlPort: true, c.HBPort: true}
	if len(ports) != 5 || ports[0] || c.IP != "127.0.0.1" || c.Transport != "tcp" {
		t.Errorf("got %+v", c)
	}
}

func TestRemoveSockets(t *testing.T) {
	c := connection(t)
	for range 2 { // also when there are none
		newFake(t, c, nil)
		if err := c.RemoveSockets(); err != nil {
			t.Fatal(err)
		}
		if left, _ := filepath.Glob(c.IP + "*"); left != nil {
			t.Errorf("%q are left", left)
		}
	}
	if err := c.RemoveSockets(); err != nil {
		t.Error(err)
	}
}

func TestDialRefusesConnections(t *testing.T) {
	for _, c := range []Connection{
		{Transport: "udp"},
		{Transport: "tcp", Key: "k", SignatureScheme: "hmac-md5"},
		{Transport: "ipc", IP: "/" + strings.Repeat("x", 200)},
	} {
		if _, err := Dial(t.Context(), c, Options{Handler: newRecorder()}); err == nil {
			t.Errorf("%+v: dialled", c)
		}
	}
}

// TestDialWaitsForSockets: zmq4 alone fails, or gets no answer ever, when the sockets come later.
func TestDialWaitsForSockets(t *testing.T) {
	tcp, err := NewTCP()
	if err != nil {
		t.Fatal(err)
	}
	ipc, stale, unwatched := connection(t), connection(t), connection(t)
	leaveSockets(t, stale)
	os.Remove(filepath.Dir(unwatched.IP))
	for name, c := range map[string]Connection{"ipc": ipc, "tcp": tcp, "ipc over dead sockets": stale, "ipc in a folder to come": unwatched} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dialled := make(chan error)
			var cs *Channels
			go func() {
				var err error
				cs, err = Dial(t.Context(), c, Options{Handler: newRecorder()})
				dialled <- err
			}()
			select {
			case err := <-dialled:
				t.Fatalf("dialled nobody: %v", err)
			case <-time.After(150 * time.Millisecond): // nothing must happen for a while
			}
			if c.Transport == "ipc" {
				os.Mkdir(filepath.Dir(c.IP), 0o700)
			}
			if err := c.RemoveSockets(); err != nil {
				t.Fatal(err)
			}
			newFake(t, c, nil)
			if err := <-dialled; err != nil {
				t.Fatal(err)
			}
			cs.Close()
		})
	}
}

// leaveSockets leaves the sockets of a kernel that has been killed.
func leaveSockets(t *testing.T, c Connection) {
	t.Helper()
	for port := range 5 {
		_, path := c.address(port + 1)
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
		if err != nil {
			t.Fatal(err)
		}
		l.SetUnlinkOnClose(false)
		l.Close()
	}
}

func TestContextEndsWaitForSockets(t *testing.T) {
	tcp, err := NewTCP()
	if err != nil {
		t.Fatal(err)
	}
	stale := connection(t)
	leaveSockets(t, stale)
	for name, c := range map[string]Connection{"ipc": connection(t), "tcp": tcp, "dead sockets": stale} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			if _, err := Dial(ctx, c, Options{Handler: newRecorder()}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("got %v, want the context's end", err)
			}
		})
	}
}

func TestDialFailsAtOnceForWhatNoWaitingMends(t *testing.T) {
	c := connection(t)
	if err := os.WriteFile(c.IP+"-2", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	// A plain file in the socket's place refuses connections like a dead socket, which a kernel replaces.
	if _, err := Dial(ctx, c, Options{Handler: newRecorder()}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("plain file: %v", err)
	}
	c.IP += "-2/k" // below a file there can be nothing
	if _, err := Dial(t.Context(), c, Options{Handler: newRecorder()}); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
}

// TestIdentities (item 1): a kernel sends its questions on stdin to the identity that sent the request on shell.
func TestIdentities(t *testing.T) {
	identity := func(f *fake, ch stream.Channel) string {
		_, after, _ := strings.Cut(string(f.peer(ch).ready), "Identity")
		if len(after) < 30 {
			return ""
		}
		return after[4:30]
	}
	var seen []string
	for range 2 {
		f := newFake(t, connection(t), nil)
		dial(t, f.Connection, Options{Handler: newRecorder()})
		shell, control, stdin := identity(f, stream.Shell), identity(f, stream.Control), identity(f, stream.Stdin)
		if shell == "" || shell != control || shell != stdin {
			t.Errorf("identities %q, %q, %q", shell, control, stdin)
		}
		seen = append(seen, shell)
	}
	if seen[0] == seen[1] {
		t.Error("two clients share an identity")
	}
}

func TestDialSubscribesToEverything(t *testing.T) {
	f := newFake(t, connection(t), nil)
	dial(t, f.Connection, Options{Handler: newRecorder()})
	if frames, err := f.peer(stream.IOPub).readMessage(); err != nil || len(frames) != 1 || string(frames[0]) != "\x01" {
		t.Errorf("got %q, %v, want a subscription to everything", frames, err)
	}
}

func TestSignatureSchemeMattersOnlyWithKey(t *testing.T) {
	c := connection(t)
	c.Key, c.SignatureScheme = "", ""
	f := newFake(t, c, nil)
	cs := dial(t, c, Options{Handler: newRecorder()})
	if err := cs.Send(stream.Shell, wire.Message{}.Parts()); err != nil {
		t.Fatal(err)
	}
	if frames, err := f.peer(stream.Shell).readMessage(); err != nil || len(frames) != 6 || len(frames[1]) != 0 {
		t.Errorf("got %q, %v", frames, err)
	}
}
