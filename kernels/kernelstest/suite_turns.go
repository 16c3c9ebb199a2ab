package kernelstest

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"cellblock/kernels"
)

// testOrder writes to both streams in turn, and wants both in that turn.
func testOrder(f *suite) {
	b := f.launch()
	wantOrder := func(code, want string) {
		f.Helper()
		if got, _ := b.streams(code); got != want {
			f.Errorf("got %.500q", got)
		}
	}
	var want strings.Builder
	for i := range 200 {
		fmt.Fprintf(&want, "%s %d\n", []string{"stderr", "stdout"}[min(i%3, 1)], i)
	}
	wantOrder(`
import sys
for i in range(200):
    print(i, file=(sys.stdout, sys.stderr)[i % 3 == 0])`, want.String())
	wantOrder(`
import contextlib, io, os, subprocess, time
print("first")
for i in range(2):
    _ = subprocess.run(["echo", "program"])
    print("between", file=sys.stderr)
    _ = os.system("echo system")
with contextlib.redirect_stdout(io.StringIO()): print("hidden"); print("seen", file=sys.stderr)
print("unsent", end=" ")
if not (pid := os.fork()): print("forked", end="", file=sys.stderr); sys.stderr.flush(); os._exit(0)
_ = os.waitpid(pid, 0)
time.sleep(0.1) # what it has said comes over a connection of its own
print("half a pair \ud800")`,
		"stdout first\nstdout program\nstderr between\nstdout system\nstdout program\nstderr between\nstdout system\nstderr seen\nstdout unsent \nstderr forked\nstdout half a pair \ufffd\n")
}

// testPrintedBehind prints behind a picture that still waits for the thread that sends, when the time comes to send what was printed.
// That is shown behind the picture.
func testPrintedBehind(f *suite) {
	b := f.launch()
	got, _ := b.streams(`
import sys, threading
go, stdout = threading.Event(), sys.stdout
loop = stdout.pub_thread.io_loop
print("before", flush=True)
loop.add_callback(go.wait, 30)
loop.add_callback(stdout._flush) # as a timer does it that was set by what was printed before
display("picture"); print("behind"); print("warned", file=sys.stderr)
stdout.session.send(stdout.pub_thread, "display_data", {"data": {"text/plain": "'later'"}, "metadata": {}}, parent=stdout.parent_header)
print("last")
go.set()`)
	if want := "stdout before\ndisplay_data 'picture'\nstdout behind\nstderr warned\ndisplay_data 'later'\nstdout last\n"; got != want {
		f.Errorf("got %q, want %q", got, want)
	}
}

// testTurns has both streams take turns more often than anybody reads, with a handler and a destructor that print at any time.
// Nothing is lost, each stream has its order, and messages are few.
func testTurns(f *suite) {
	b := f.launch()
	got, messages := b.streams(`
import gc, signal, sys
class Ring:
    def __init__(self): self.me = self
    def __del__(self): print("deleted", file=sys.stderr, flush=True)
_ = signal.signal(signal.SIGALRM, lambda *_: print("alarm", file=sys.stderr, flush=True))
gc.disable() # else another thread may collect a ring, and print among what this one prints
for i in range(20):
    Ring(); _ = gc.collect(); signal.raise_signal(signal.SIGALRM)
gc.enable()
for i in range(5000):
    for stream in sys.stdout, sys.stderr: _ = stream.write(f"{i}\n") # print would end the line by itself, and be sent in between`)
	var want strings.Builder
	for _, stream := range []string{"stderr", "stdout"} {
		if stream == "stderr" {
			want.WriteString(strings.Repeat("stderr deleted\nstderr alarm\n", 20))
		}
		for i := range 5000 {
			fmt.Fprintf(&want, "%s %d\n", stream, i)
		}
	}
	if sorted := byStream(got); sorted != want.String() {
		at := 0
		for at < min(len(sorted), want.Len()) && sorted[at] == want.String()[at] {
			at++
		}
		f.Errorf("%d bytes, want %d; from byte %d on: %.500q", len(sorted), want.Len(), at, sorted[at:])
	}
	if messages > 4000 { // of 10,000 turns; a machine that is slow sends more often
		f.Errorf("it took %d messages", messages)
	}
}

// testCollectedTurns has the collector run a destructor that prints on the very thread that sends, at every step of its way.
// Nothing is lost, and each stream has its order.
func testCollectedTurns(f *suite) {
	b := f.launch()
	got, _ := b.streams(`
import gc, sys, threading
class Ring:
    def __init__(self): self.me = self
    def __del__(self): print("deleted", file=sys.stderr, flush=True)
thresholds, done = gc.get_threshold(), threading.Event()
def send():
    for allocations in range(1, 100):
        gc.collect(); gc.disable()
        for i in range(5): print(i); print(i, file=sys.stderr)
        Ring(); gc.set_threshold(allocations); gc.enable()
        sys.stdout.flush()
    gc.set_threshold(*thresholds); gc.collect(); done.set()
sys.stdout.pub_thread.schedule(send)
_ = done.wait(30)`)
	want := strings.Repeat("stderr 0\nstderr 1\nstderr 2\nstderr 3\nstderr 4\nstderr deleted\n", 99) + strings.Repeat("stdout 0\nstdout 1\nstdout 2\nstdout 3\nstdout 4\n", 99)
	if byStream(got) != want {
		f.Errorf("got %.2000q", got)
	}
}

// testFailingTurn has one message not be sent. Those beside it are.
func testFailingTurn(f *suite) {
	b := f.launch()
	got, _ := b.streams(`
import sys
send = sys.stdout.session.send
def send_some(socket, message, *args, **kwargs):
    if "refused" in str(message): raise RuntimeError("refused")
    return send(socket, message, *args, **kwargs)
def print_both():
    print("refused", file=sys.stderr); sys.stdout.write("printed\n") # at once: print writes a line's end by itself
    sys.stdout.session.send = send_some
    try: sys.stdout.flush()
    finally: sys.stdout.session.send = send
sys.stdout.pub_thread.schedule(print_both)
sys.stdout.write("end\n");`)
	if !strings.Contains(got, "stdout printed\n") || !strings.Contains(got, "stdout end\n") {
		f.Errorf("got %q", got)
	}
}

// byStream sorts lines by their stream, and keeps each stream's order.
func byStream(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(a[:min(6, len(a))], b[:min(6, len(b))]) })
	return strings.Join(lines, "")
}

// testInterruptedOutput has an interrupt come while it is looked whether the thread that sends lives, which Python would take
// for its end. Two threads would send then.
func testInterruptedOutput(f *suite) {
	b := f.launch()
	b.want(`
import sys
thread = sys.stdout.pub_thread.thread
class Interrupted:
    def __init__(self, lock): self.locked, self.release = lock.locked, lock.release
    def acquire(self, *_): raise KeyboardInterrupt
lock = getattr(thread, "_tstate_lock", None) # until Python 3.12
if lock: thread._tstate_lock = Interrupted(lock)
try: print("printed", flush=True)
except KeyboardInterrupt: pass
if lock: thread._tstate_lock = lock
print(thread.is_alive(), not lock or lock.locked())`, "printed\nTrue True")
}

// streams runs code that must succeed and returns the lines of its streams, each behind its stream's name, with what it displayed
// in between, and of how many messages the streams were. A line that came in pieces is one.
func (b *box) streams(code string) (text string, messages int) {
	b.f.Helper()
	e := b.execute(code)
	var all strings.Builder
	open := "" // the stream whose line has no end yet
	for {
		out, err := e.Next(b.f.ctx())
		if err == io.EOF {
			break
		}
		b.f.must(err)
		if out.Kind == kernels.OutputDisplay {
			var text string
			b.f.must(json.Unmarshal(out.Data["text/plain"], &text))
			fmt.Fprintf(&all, "%s %s\n", out.Kind, text)
			continue
		}
		if out.Kind != kernels.OutputStream {
			b.f.Fatalf("%+v", out)
		}
		messages++
		for line := range strings.Lines(out.Text) {
			if open != "" && open != out.Stream {
				all.WriteByte('\n')
			}
			if open != out.Stream {
				all.WriteString(out.Stream + " ")
			}
			all.WriteString(line)
			if open = out.Stream; strings.HasSuffix(line, "\n") {
				open = ""
			}
		}
	}
	if r := e.Result(); r.Status != kernels.StatusOK {
		b.f.Fatalf("%+v\noutput: %s", r, all.String())
	}
	return all.String(), messages
}
