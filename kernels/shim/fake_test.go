//go:build linux

package shim

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"cellblock/kernels/shim/channels"
	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

// fakeLinks are channels of a kernel that a test plays.
type fakeLinks struct {
	channels.Handler
	sent   chan sent
	block  chan struct{} // not nil: sends on shell wait for it
	err    error
	closed chan struct{}
	once   sync.Once
}

type sent struct {
	ch  stream.Channel
	msg wire.Message
}

func (f *fakeLinks) Send(ch stream.Channel, parts [][]byte) error {
	if f.err != nil {
		return f.err
	}
	if ch == stream.Shell && f.block != nil {
		select {
		case <-f.block:
		case <-f.closed:
			return channels.ErrClosed
		}
	}
	m, err := wire.FromParts(parts)
	if err != nil {
		return err
	}
	f.sent <- sent{ch, m}
	return nil
}

func (f *fakeLinks) Close() error {
	f.once.Do(func() { close(f.closed) })
	return nil
}

// fakeShim is a Shim in this process. Its kernel is a shell command; the channels are the test's.
type fakeShim struct {
	t       *testing.T
	config  stream.Config
	dials   chan *fakeLinks // each dial waits for one of these
	signals chan os.Signal
	done    chan error
}

// startFake starts a shim whose kernel is a shell script.
func startFake(t *testing.T, script string, change func(*stream.Config)) (*fakeShim, *client) {
	t.Helper()
	f := &fakeShim{t: t, config: testConfig(t), dials: make(chan *fakeLinks, 10), done: make(chan error, 1)}
	f.config.Argv = []string{"/bin/sh", "-c", script}
	if change != nil {
		change(&f.config)
	}
	f.signals = make(chan os.Signal, 10)
	go func() { f.done <- run(f.signals, f.config, slog.New(slog.DiscardHandler), f.dial) }()
	t.Cleanup(func() {
		f.stop()
		select {
		case err := <-f.done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the shim does not end")
		}
	})
	return f, dialShim(t, f.config, nil)
}

func (f *fakeShim) stop() { f.signals <- unix.SIGTERM }

func (f *fakeShim) dial(ctx context.Context, _ channels.Connection, o channels.Options) (links, error) {
	select {
	case l := <-f.dials:
		if l == nil {
			return nil, errors.New("refused")
		}
		l.Handler = o.Handler
		return l, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// connect lets a dial succeed.
func (f *fakeShim) connect(c *client) *fakeLinks {
	f.t.Helper()
	l := &fakeLinks{sent: make(chan sent, 1000), closed: make(chan struct{})}
	f.dials <- l
	c.event(stream.EventConnected)
	return l
}

// awaitFile waits until the kernel's script has made a file.
func (f *fakeShim) awaitFile(name string) {
	f.t.Helper()
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(f.config.Dir, name)); err == nil {
			return
		}
		if time.Since(start) > patience {
			f.t.Fatalf("the kernel made no %s", name)
		}
	}
}

func (l *fakeLinks) next(t *testing.T) sent {
	t.Helper()
	select {
	case s := <-l.sent:
		return s
	case <-time.After(patience):
		t.Fatal("nothing was sent to the kernel")
		return sent{}
	}
}

const forever = "exec sleep 600"

func TestQueuedUntilConnected(t *testing.T) {
	f, c := startFake(t, forever, nil)
	c.event(stream.EventStarted)
	var want []string
	for range 10 {
		want = append(want, c.send("execute_request", struct{}{}))
	}
	l := f.connect(c)
	for _, id := range want {
		if s := l.next(t); s.ch != stream.Shell || s.msg.Header.MsgID != id {
			t.Fatalf("sent %+v", s)
		}
	}
}

func TestQueueIsBounded(t *testing.T) {
	_, c := startFake(t, forever, nil)
	var id string
	for range 5 {
		id = c.send("execute_request", map[string]string{"code": strings.Repeat("x", 15<<20)})
	}
	e := c.event(stream.EventDropped)
	if d := e.Dropped; d.Reason != ReasonQueueFull || d.Channel != "shell" || d.Parent != id || d.MsgType != "execute_request" || d.Bytes < 15<<20 {
		t.Fatalf("%+v", d)
	}
}

func TestSendFails(t *testing.T) {
	f, c := startFake(t, forever, nil)
	f.dials <- &fakeLinks{err: errors.New("broken pipe"), closed: make(chan struct{})}
	c.event(stream.EventConnected)
	id := c.send("execute_request", struct{}{})
	if d := c.event(stream.EventDropped).Dropped; d.Reason != ReasonNotSent+"broken pipe" || d.Parent != id {
		t.Fatalf("%+v", d)
	}
}

// A kernel that does not read shell can be reached on control.
func TestChannelsAreApart(t *testing.T) {
	f, c := startFake(t, forever, func(c *stream.Config) { c.InterruptMode = "message" })
	l := &fakeLinks{sent: make(chan sent, 1000), closed: make(chan struct{}), block: make(chan struct{})}
	f.dials <- l
	c.event(stream.EventConnected)
	c.send("execute_request", struct{}{})
	c.must(stream.OpInterrupt, 0)
	if s := l.next(t); s.ch != stream.Control || s.msg.Header.MsgType != "interrupt_request" || s.msg.Header.Session != shimSession {
		t.Fatalf("sent %+v", s)
	}
	close(l.block)
	if s := l.next(t); s.ch != stream.Shell {
		t.Fatalf("sent %+v", s)
	}
}

func TestPolite(t *testing.T) {
	f, c := startFake(t, "trap 'exit 5' TERM; while :; do sleep 0.02; done", nil)
	l := f.connect(c)
	id := c.ask(stream.OpRestart, 200*time.Millisecond)
	if s := l.next(t); s.ch != stream.Control || s.msg.Header.MsgType != "shutdown_request" || string(s.msg.Content) != `{"restart":true}` {
		t.Fatalf("sent %+v", s)
	}
	if e := c.event(stream.EventExited); e.Exit.Code != 5 || !e.Exit.Asked { // TERM came after half of the grace
		t.Fatalf("%+v", e.Exit)
	}
	if r := c.reply(id); r.Error != "" {
		t.Fatal(r.Error)
	}
	<-l.closed
	l = f.connect(c)
	f.stop()
	if s := l.next(t); string(s.msg.Content) != `{"restart":false}` {
		t.Fatalf("sent %+v", s)
	}
}

// What waits for a kernel that ends is not for the next one; what comes after the request is.
func TestRestartAndQueue(t *testing.T) {
	f, c := startFake(t, forever, nil)
	before := c.send("execute_request", struct{}{})
	c.ask(stream.OpRestart, 0)
	after := c.send("execute_request", struct{}{})
	if d := c.event(stream.EventDropped).Dropped; d.Parent != before {
		t.Fatalf("%+v", d)
	}
	c.event(stream.EventStarted)
	c.event(stream.EventStarted) // from here on a dial is the second kernel's
	l := f.connect(c)
	if s := l.next(t); s.msg.Header.MsgID != after {
		t.Fatalf("sent %+v, want %s", s, after)
	}
}

// A channel is lost and the kernel lives: the shim says so and connects again.
func TestReconnect(t *testing.T) {
	f, c := startFake(t, forever, nil)
	l := f.connect(c)
	l.Lost(stream.Shell, errors.New("frame of 10 TB"))
	if d := c.event(stream.EventDropped).Dropped; d.Reason != "connection lost: frame of 10 TB" {
		t.Fatalf("%+v", d)
	}
	<-l.closed
	id := c.send("execute_request", struct{}{})
	f.dials <- nil // refused once
	l = f.connect(c)
	if s := l.next(t); s.msg.Header.MsgID != id {
		t.Fatalf("sent %+v", s)
	}
}

// What IOPub still had when the process ended comes before the news of the end.
func TestDrain(t *testing.T) {
	f, c := startFake(t, "sleep 0.2; echo bye; exit 9", nil)
	l := f.connect(c)
	go func() {
		time.Sleep(500 * time.Millisecond) // the process has ended by then
		l.Message(stream.IOPub, streamMessage("a", "stdout", "last words"))
		l.Lost(stream.IOPub, errors.New("EOF"))
	}()
	start := time.Now()
	if f := c.find("end", func(f frame) bool { return f.printed("last words") || (f.event != nil && f.event.Exit != nil) }); f.event != nil {
		t.Fatal("exit was reported first")
	}
	if e := c.event(stream.EventExited); e.Exit.Code != 9 || e.Exit.Output != "bye\n" {
		t.Fatalf("%+v", e.Exit)
	}
	if time.Since(start) > time.Second {
		t.Fatal("waited although IOPub had ended")
	}
}

// And a kernel whose children keep IOPub open is reported all the same.
func TestDrainIsBounded(t *testing.T) {
	f, c := startFake(t, "sleep 600 & exit 0", nil)
	f.dials <- &fakeLinks{sent: make(chan sent, 10), closed: make(chan struct{})}
	start := time.Now()
	c.event(stream.EventExited)
	if took := time.Since(start); took > drainTimeout+time.Second {
		t.Fatalf("reported after %v", took)
	}
}

func TestBrokenMessages(t *testing.T) {
	f, c := startFake(t, forever, nil)
	l := f.connect(c)
	parts := streamMessage("parent", "stdout", "forged")
	frames := append([][]byte{[]byte("topic"), []byte(wire.Delimiter), []byte("signature")}, parts...)
	for range 1000 {
		l.Dropped(stream.IOPub, channels.ReasonSignature, frames, 10)
	}
	want := stream.Dropped{Channel: "iopub", Reason: channels.ReasonSignature, Count: 1, Parent: "parent", MsgType: "stream", Bytes: 10}
	if d := c.event(stream.EventDropped).Dropped; *d != want {
		t.Fatalf("first %+v", d)
	}
	want.Count, want.Bytes = 999, 9990
	if d := c.event(stream.EventDropped).Dropped; *d != want {
		t.Fatalf("then %+v", d)
	}
	for _, frames := range [][][]byte{nil, {nil}, {[]byte(wire.Delimiter)}, {[]byte(wire.Delimiter), nil, []byte("{")}} {
		l.Dropped(stream.Shell, channels.ReasonNotJupyter, frames, 0)
	}
	if d := c.event(stream.EventDropped).Dropped; d.Channel != "shell" || d.Parent != "" || d.MsgType != "" {
		t.Fatalf("%+v", d)
	}
}

// A kernel that makes up new parents all the time does not fill the journal with reports.
func TestDropsAreBounded(t *testing.T) {
	j := newJournal(1 << 20)
	d := newDrops(j)
	for range 10_000 {
		d.add(stream.Dropped{Channel: "iopub", Reason: "x", Parent: newID(), Bytes: 1})
	}
	d.flush()
	var count, bytes int64
	c, next, _ := j.follow(nil)
	if next > 2*maxDropKinds {
		t.Fatalf("%d reports", next)
	}
	for c.next < next {
		e, _, _ := c.read()
		count, bytes = count+e.event.Dropped.Count, bytes+e.event.Dropped.Bytes
	}
	if count != 10_000 || bytes != 10_000 {
		t.Fatalf("%d drops, %d bytes", count, bytes)
	}
}

// A server that does not read must not keep the kernel's messages from being taken.
func TestSlowServer(t *testing.T) {
	f, c := startFake(t, forever, func(c *stream.Config) { c.JournalBytes = 1 << 20 })
	l := f.connect(c)
	start := time.Now()
	for range 20_000 {
		l.Message(stream.IOPub, message("a", "comm_msg", map[string]string{"data": line1K()}))
	}
	l.Message(stream.IOPub, idle("a"))
	if took := time.Since(start); took > 30*time.Second { // who is kept waits for ever
		t.Fatalf("taken in %v", took)
	}
	gap := c.event(stream.EventGap).Gap
	if gap.To < gap.From || gap.Bytes < int64(gap.To-gap.From+1)<<10 {
		t.Fatalf("gap %+v", gap)
	}
	c.find("idle", func(f frame) bool { return f.msg.Header.MsgType == "status" })
}

// deaf is a kernel that takes no notice of SIGTERM, from when its file is there.
const deaf = "trap '' TERM; : > deaf; while :; do sleep 0.02; done"

// The first SIGTERM is patient, the second is not, and the third kills.
func TestEachSIGTERMIsFaster(t *testing.T) {
	for name, tt := range map[string]struct {
		script, signal string
		signals        int
	}{
		"twice": {forever, "SIGTERM", 2},
		"three": {deaf, "SIGKILL", 3},
		"many":  {deaf, "SIGKILL", 8},
	} {
		t.Run(name, func(t *testing.T) {
			f, c := startFake(t, tt.script, nil)
			l := f.connect(c) // so that there is somebody to be polite to
			if tt.script == deaf {
				f.awaitFile("deaf")
			}
			start := time.Now()
			f.stop()
			l.next(t)
			for range tt.signals - 1 {
				f.stop()
			}
			if e := c.event(stream.EventExited); e.Exit.Signal != tt.signal || !e.Exit.Asked {
				t.Fatalf("%+v", e.Exit)
			}
			if took := time.Since(start); took > termGrace/4 {
				t.Fatalf("ended after %v", took)
			}
		})
	}
}

// Who is in a hurry to end does not wait for a patient restart.
func TestSIGTERMsOvertakeRestart(t *testing.T) {
	f, c := startFake(t, deaf, nil)
	l := f.connect(c)
	f.awaitFile("deaf")
	c.ask(stream.OpRestart, time.Minute)
	l.next(t)
	start := time.Now()
	for range rungs + 1 {
		f.stop()
	}
	if e := c.event(stream.EventExited); e.Exit.Signal != "SIGKILL" || time.Since(start) > patience/4 {
		t.Fatalf("%+v after %v", e.Exit, time.Since(start))
	}
}

// A server that has all frames and acknowledges none does not hold up the end.
func TestFarewellToASilentServer(t *testing.T) {
	b, c := ready(t, nil)
	c.noAcks = true
	_ = b.cmd.Process.Signal(unix.SIGTERM)
	c.event(stream.EventExited)
	start := time.Now()
	<-b.done
	if took := time.Since(start); took > farewell/2 {
		t.Fatalf("the shim ended %v after its kernel", took)
	}
}

func TestTerminateInProcess(t *testing.T) {
	f, c := startFake(t, forever, nil)
	c.event(stream.EventStarted)
	f.stop()
	if e := c.event(stream.EventExited); e.Exit.Signal != "SIGTERM" || !e.Exit.Asked {
		t.Fatalf("%+v", e.Exit)
	}
}
