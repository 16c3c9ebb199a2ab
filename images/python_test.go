package images_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels/kernelstest"
)

// check runs asserts behind some of the files that the kernel's program consists of.
func check(ctx context.Context, t *testing.T, interpreter, asserts string, files ...string) {
	t.Helper()
	var program strings.Builder
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		program.Write(text)
	}
	if out, err := exec.CommandContext(ctx, interpreter, "-c", program.String()+asserts).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// Large texts are quoted as Python quotes them.
func TestLargeTextsInJSON(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	kernelstest.Need(t, err == nil, "python3")
	const asserts = `
style = dict(ensure_ascii=False, allow_nan=False)
plain, large = json.JSONEncoder(**style).encode, encoder(quote, **style)
pieces = ["", "A", "a\n", '"', "\\", "\\n", "\r\n", "\t", "\b\f", "\x00", "\x1b[0m", "\x7f", "\x85", "é", "日本", "\U0001f600", "\ud800", "\u2028", "</script>"]
for piece in pieces:
    for length in 1, LARGE_TEXT - 1, LARGE_TEXT, LARGE_TEXT + 1, 3 * LARGE_TEXT:
        text = ("x" * length)[: -len(piece) or None] + piece
        for part in {"name": "stdout", "text": text}, {"data": {"image/png": text, "n": 1.5}, "metadata": {"é": [text, None, True]}}, {text: {}}:
            assert large(part) == plain(part), (piece, length)

class Markup(str):
    def replace(self, old, new):
        return super().replace(old, new.replace('"', "&#34;"))

    def __format__(self, spec):
        return "formatted"

text = '"' + "x" * LARGE_TEXT
assert large({"text": Markup(text)}) == plain({"text": text})
assert holds_large_text({"data": {"image/png": "A" * LARGE_TEXT}}) and holds_large_text({"text": "A" * LARGE_TEXT})
assert not holds_large_text({"data": {"image/png": "A"}, "text": b"A" * LARGE_TEXT}) and not holds_large_text({"data": "A"})
for wrong in {"n": float("nan")}, {"o": object()}:
    for encode in plain, large:
        try:
            encode(wrong)
        except (TypeError, ValueError):
            continue
        raise AssertionError(wrong)
endless = {}
endless["self"] = endless
try:
    large(endless)
except RecursionError:
    endless.clear()
assert not endless
`
	check(t.Context(), t, interpreter, asserts, "python_json.py")
}

// What is printed after the end of the thread that sends, by what runs at the process's end, is no error.
func TestPrintingAtTheEnd(t *testing.T) {
	kernelstest.NeedPython(t)
	const asserts = `
from jupyter_client.session import Session

socket = zmq.Context().socket(zmq.PUB)
socket.bind_to_random_port("tcp://127.0.0.1")
thread = IOPubThread(socket, pipe=True)
thread.start()
stream = OutStream(Session(), thread, "stdout", watchfd=False)
sent = threading.Event()
stream.write("before")
thread.io_loop.add_callback(lambda: thread.io_loop.call_later(2 * stream.flush_interval, sent.set))
assert sent.wait(60)
thread.stop()
for _ in range(2):
    stream.write("behind")
assert not printed.texts
`
	check(t.Context(), t, images.PythonInterpreter, asserts, "python_flood.py")
}

// Messages arrive as zmq's own send_multipart sends them, whatever a socket and its frames are; and what is wrong is as wrong.
func TestFramesAreSentDirectly(t *testing.T) {
	kernelstest.NeedPython(t)
	const asserts = `
class Own(zmq.Socket):
    def send(self, data, *args, **options):
        return super().send(b"own " + data, *args, **options)

context = zmq.Context()
receiver = context.socket(zmq.PULL)
receiver.RCVTIMEO = 10_000
receiver.bind("inproc://here")
plain, own = context.socket(zmq.PUSH), Own(context, zmq.PUSH)
plain.connect("inproc://here")
own.connect("inproc://here")

def outcome(socket, *args, **options):
    try:
        return socket.send_multipart(*args, **options), receiver.recv_multipart()
    except Exception as error:
        return type(error), str(error)

def outcomes():
    for socket in plain, own:
        for args in [b"a"], [b"a", b"", b"c" * 100_000], (b"a", b"b"), [memoryview(b"a"), bytearray(b"b")], [], ["a"], [b"a", None], [b"a", 1]:
            yield outcome(socket, args)
            yield outcome(socket, args, zmq.NOBLOCK)
            yield outcome(socket, args, 0, True, False)
    yield plain.EVENTS, plain.events, receiver.EVENTS

before = list(outcomes())
send_frames_directly()
ask_for_events_directly()
assert list(outcomes()) == before, list(outcomes())
assert outcome(plain, [b"a", b"b"]) == (None, [b"a", b"b"]) and outcome(own, [b"a", b"b"]) == (None, [b"own a", b"own b"])
tracker = plain.send_multipart([b"a"], copy=False, track=True)
assert receiver.EVENTS & zmq.POLLIN and receiver.recv() == b"a" and not receiver.events and isinstance(tracker, zmq.MessageTracker)
for socket in plain, own, receiver:
    socket.close(0)
`
	check(t.Context(), t, images.PythonInterpreter, asserts, "python_json.py", "python_pace.py")
}

// A kernel that can open no file any more still runs cells that await something, and keeps no file of theirs.
func TestCellsAwaitWithoutFiles(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	kernelstest.Need(t, err == nil, "python3")
	const asserts = `
import os
import resource


async def cell(fails_to_read=False):
    loop = asyncio.get_running_loop()
    if fails_to_read:
        loop.add_reader = lambda *_: (_ for _ in ()).throw(OSError())
    before = os.listdir("/dev/fd")
    with woken_by_signals(loop):
        await asyncio.sleep(0)
        ran = True
    assert os.listdir("/dev/fd") == before
    assert set_wakeup_fd(-1) == -1
    return ran

async def cells():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert await cell()
    assert await cell(fails_to_read=True)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, most[1]))
    with woken_by_signals(asyncio.get_running_loop()):
        await asyncio.sleep(0)
    try:
        with woken_by_signals(asyncio.get_running_loop()):
            raise OSError("the cell's own")
    except OSError as error:
        assert str(error) == "the cell's own"
    resource.setrlimit(resource.RLIMIT_NOFILE, most)

loop = asyncio.new_event_loop()
loop.run_until_complete(cells())
`
	check(t.Context(), t, interpreter, asserts, "python_interrupts.py")
}

// Names of cells' files are taken out of a traceback at once, however long the line of code that is in it: the kernel stands still
// meanwhile.
func TestCellsAreNamedAtOnce(t *testing.T) {
	interpreter, err := exec.LookPath("python3")
	kernelstest.Need(t, err == nil, "python3")
	const asserts = `
class compiler:
    _filename_map = {"/tmp/ipykernel_16/33.py": "1"}

named = with_cells_named(compiler, lambda text: text)
assert named('File "/tmp/ipykernel_16/33.py", line 1') == 'File "<cell>", line 1'
assert named("done at /tmp/ipykernel_16/33.py:1, /tmp/ipykernel_16/33.py:2") == "done at <cell>:1, <cell>:2"
assert named("at /tmp/ipykernel_16/34.py:1") == "at /tmp/ipykernel_16/34.py:1"
for part in "/", "ab/", "/ipykernel_16", "/ipykernel_16/33", " /ipykernel_16/", "/tmp/ipykernel_16/33.py":
    line = part * (1_000_000 // len(part))
    assert named(line) == line
`
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // it takes seconds, and took half an hour
	defer cancel()
	check(ctx, t, interpreter, asserts, "python_traces.py")
}
