package kernelstest

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image/png"
	"io"
	"strings"

	"cellblock/kernels"
)

// outputCases are about what comes out of a kernel.
var outputCases = []suiteCase{
	{"item 7: plots come as PNG, in order", real | inner, testPlots},
	{"matplotlib works without a home", real | inner, testNoHome},
	{"what is printed behind a flush is shown while its cell goes on", real | inner, testBehindFlush},
	{"item 2: twenty megabytes in one print", real | carried | inner, testBigOutput},
	{"sixty megabytes of pictures behind their cell's reply", real | inner, testManyPictures},
	{"what programs print comes before the end of their cell", real | inner, testProgramOutput},
	{"programs may print what is no text", real | inner, testNoText},
	{"programs may print while nobody reads", real | inner, testUnread},
	{"forks may print as much as threads do", real | inner, testForks},
	{"item 5: input without anybody to answer fails at once", real | inner, testNoInput},
	{"output that is on its way is not forgotten", real | inner, testOutputOnItsWay},
	{"a cell costs no more than it must", real | inner, testCellCost},
	{"stdout and stderr in their order", real | inner, testOrder},
	{"what is printed behind a picture is shown behind it", real | inner, testPrintedBehind},
	{"stdout and stderr take turns faster than they are read", real | inner, testTurns},
	{"a destructor may print while the kernel sends", real | inner, testCollectedTurns},
	{"a message that cannot be sent takes no other with it", real | inner, testFailingTurn},
	{"an interrupt does not end the thread that sends", real | inner, testInterruptedOutput},
	{"what cells are spared is not missed", real | inner, testSpared},
	{"the garbage collector passes over the kernel itself", real | inner, testCollector},
	{"figures in every format", real | inner, testFigures},
	{"figures of a backend without a screen are shown", real | inner, testAgg},
	{"figures that were shown can be saved", real | inner, testSavedAfterShow},
	{"figures for windows and widgets are shown as pictures", real | inner, testWindows},
	{"figures look as matplotlib draws them", real | inner, testFigurePixels},
	{"item 11: a thread's late output reaches its execution", real | inner, testLateOutput},
	{"item 11: late output that nobody has stored comes again", carried | inner, testHeldLateOutput},
}

func testPlots(f *suite) {
	b := f.launch()
	b.plots()
}

// testManyPictures has a cell show more than a shim keeps, all of it when the kernel has replied already.
func testManyPictures(f *suite) {
	const pictures, size = 12, 5_000_000
	b := f.launch()
	e := b.execute(`import time
from IPython.display import display
get_ipython().kernel.iopub_thread.schedule(lambda: time.sleep(0.5))
for _ in range(12): display({"image/png": "A" * 5_000_000}, raw=True)`)
	whole := 0
	for {
		out, err := e.Next(f.ctx())
		if err == io.EOF {
			break
		}
		f.must(err)
		if out.Notice != nil {
			f.Errorf("%+v", *out.Notice)
		}
		if len(out.Data["image/png"]) == size+len(`""`) {
			whole++
		}
	}
	if r := e.Result(); whole != pictures || r.Status != kernels.StatusOK {
		f.Errorf("%d of %d pictures, %+v", whole, pictures, r)
	}
}

func testProgramOutput(f *suite) {
	b := f.launch()
	for range 40 {
		b.want("import os; _ = os.write(1, b'library\\n')", "library")
		b.want("import subprocess; _ = subprocess.run(['echo', 'program'])", "program")
	}
}

func testNoText(f *suite) {
	b := f.launch()
	b.python("import subprocess; _ = subprocess.run(['printf', r'\\377'])")
	text := b.python("_ = subprocess.run(['head', '-c', '300000', '/dev/zero'])") // more than a pipe holds
	if len(text) != 300_000 {
		f.Errorf("%d bytes came", len(text))
	}
}

// testUnread has the thread that sends a kernel's output rest until who empties a program's pipe has waited for it longer than
// ipykernel's patience. What ipykernel says then goes to that pipe, which is full: it was the end of who is to empty it.
func testUnread(f *suite) {
	b := f.launch()
	text := b.python(`
import subprocess, time
from ipykernel.iostream import OutStream
OutStream.flush_timeout = 0.2
write, since, waited = OutStream.write, [], []
def write_and_tell(stream, text):
    since.append(time.monotonic())
    try: return write(stream, text)
    finally: since.clear()
def rest():
    end = time.monotonic() + 30
    while not waited and time.monotonic() < end:
        time.sleep(0.05)
        waited.extend(begun for begun in list(since) if time.monotonic() - begun > 0.5)
OutStream.write = write_and_tell
get_ipython().kernel.iopub_thread.schedule(rest)
_ = subprocess.run("yes | head -c 600000 >&2", shell=True)
OutStream.write = write
print("printed", len(waited))`)
	if !strings.Contains(text, "printed 1") || strings.Contains(text, "timed out") {
		f.Errorf("%d bytes came, their end is %q", len(text), text[max(0, len(text)-200):])
	}
}

// testForks has the thread that sends a kernel's output send much by itself, as it does for forked processes. When it wakes
// itself for each of it, it waits for itself.
func testForks(f *suite) {
	b := f.launch()
	text := b.python(`
import threading
kernel, sent = get_ipython().kernel, threading.Event()
def send():
    for _ in range(3000): kernel.send_response(kernel.iopub_socket, "stream", {"name": "stdout", "text": "x"})
    sent.set()
kernel.iopub_thread.schedule(send)
print(sent.wait(20))`)
	if text != strings.Repeat("x", 3000)+"True\n" {
		f.Errorf("%d bytes came, their end is %q", len(text), text[max(0, len(text)-20):])
	}
}

// testOutputOnItsWay has the thread that sends a kernel's output take a text and keep it for a while, as a loaded machine would.
// The buffer is empty then, and the cell is over when the text has been sent all the same.
func testOutputOnItsWay(f *suite) {
	b := f.launch()
	b.python(`
import sys, time
from ipykernel.iostream import OutStream
send = OutStream._flush
def send_late(stream):
    hold = stream.session.send
    stream.session.send = lambda *args, **kwargs: (time.sleep(0.02), hold(*args, **kwargs))[1]
    try: send(stream)
    finally: stream.session.send = hold`)
	for _, end := range []string{"", "sys.stdout.flush()"} {
		for range 10 {
			b.want("print('tail'); sys.stdout.pub_thread.schedule(lambda: send_late(sys.stdout)); time.sleep(0.005); "+end, "tail")
		}
	}
}

// testCellCost counts what a cell that prints nothing asks of the thread that sends: its code, and that it is over. Each time
// is a wake-up and a fight for the interpreter, and ipykernel's own would be thirteen.
func testCellCost(f *suite) {
	b := f.launch()
	b.python(`
import sys
thread, asked = get_ipython().kernel.iopub_thread, []
schedule = thread.schedule
thread.schedule = lambda work: (asked.append(work), schedule(work))[1]`)
	for range 10 {
		b.python("pass")
	}
	b.want("print(len(asked) <= 25, 'debugpy' in sys.modules, get_ipython().kernel.log.isEnabledFor(10))", "True False False")
	b.want("del asked[:]\nfor _ in range(100): print(end='.', flush=True)", strings.Repeat(".", 100))
	b.want("print(len(asked) <= 120)", "True")                        // once a flush, and now and then a timer
	b.want("import debugpy; print('debugpy' in sys.modules)", "True") // whoever wants it has it
	if said := b.handle.Logs(f.ctx()); strings.Contains(said, "debug") {
		f.Errorf("the kernel says %q", said)
	}
}

// testSpared does what the short ways for most cells must not get wrong: how cells are transformed may change from one to the
// next and within one, formatters take options and may fail, and what is no JSON is shown all the same.
func testSpared(f *suite) {
	b := f.launch()
	b.python(`
def dozen(lines): return [line.replace("twelve", "12") for line in lines]
get_ipython().input_transformers_cleanup.append(dozen)`)
	b.want("print(twelve)", "12")
	b.want(`
import asyncio
await asyncio.sleep(0)
get_ipython().input_transformers_cleanup.remove(dozen)
print("twel" "ve" in get_ipython().transform_cell(get_ipython().history_manager.input_hist_raw[-1])) # twelve`, "True")
	b.want(`
code, transform = "tw" "elve", get_ipython().transform_cell
before = transform(code)
get_ipython().input_transformers_cleanup.append(dozen)
print(before.strip() == code, transform(code).strip())
get_ipython().input_transformers_cleanup.remove(dozen)`, "True 12")
	b.want(`
class Shown:
    def _repr_html_(self): return "<b>html</b>"
    def _repr_markdown_(self): raise RuntimeError("no such thing")
    def __repr__(self): return "text"
data, _ = get_ipython().display_formatter.format(Shown(), include=["text/plain", "text/html"])
print(data, get_ipython().display_formatter.formatters["text/html"](obj=Shown()))`, "{'text/plain': 'text', 'text/html': '<b>html</b>'} <b>html</b>")
	b.want(`
try:
    get_ipython().display_formatter.format(Shown())
finally:
    print("formatted")
import warnings
warnings.simplefilter("ignore") # jupyter_client's, of what comes next
display({"application/json": float("nan"), "text/plain": "odd \udc80"}, raw=True)`, "formatted\nodd \ufffd")
}

// testCollector wants what the kernel consists of to be out of the collector's sight, and what cells make in it.
func testCollector(f *suite) {
	b := f.launch()
	b.want(`
import gc, weakref
class Node: pass
def ring():
    a = Node(); a.me = a
    return weakref.ref(a)
print(gc.isenabled(), len(gc.get_objects()) < gc.get_freeze_count() / 10, ring() and gc.collect() > 0, gc.get_threshold()[0] > 0)`,
		"True True True True")
}

func testNoHome(f *suite) {
	b := f.launch(func(s *kernels.Spec) { s.Env = map[string]string{"HOME": "/nonexistent"} })
	b.plots()
}

// plots draws twice and wants text, image, text, image.
func (b *box) plots() {
	b.f.Helper()
	got := b.shown(`
import matplotlib.pyplot as plt
for n in (1, 2):
    print("plot", n, flush=True)
    plt.plot([0, n]); plt.show()`)
	if text := strings.Join(got, ", "); text != "plot 1, png, plot 2, png" {
		b.f.Errorf("got %s", text)
	}
}

// shown runs code and returns what it prints, and "png" for each picture.
func (b *box) shown(code string) (got []string) {
	b.f.Helper()
	e := b.execute(code)
	for {
		out, err := e.Next(b.f.ctx())
		if err == io.EOF {
			break
		}
		b.f.must(err)
		switch {
		case out.Data["image/png"] != nil:
			b.checkPNG(out.Data["image/png"])
			got = append(got, "png")
		case out.Stream == "stdout":
			got = append(got, strings.TrimSpace(out.Text))
		case out.Stream == "stderr":
			b.f.Logf("stderr: %s", out.Text)
		}
	}
	if r := e.Result(); r.Status != kernels.StatusOK {
		b.f.Errorf("%s: %+v", code, r)
	}
	return got
}

func (b *box) checkPNG(data json.RawMessage) {
	b.f.Helper()
	var text string
	b.f.must(json.Unmarshal(data, &text))
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	b.f.must(err)
	img, err := png.Decode(bytes.NewReader(raw))
	b.f.must(err)
	if size := img.Bounds().Size(); size.X < 100 || size.Y < 100 {
		b.f.Errorf("an image of %v", size)
	}
}

func testBehindFlush(f *suite) {
	b := f.launch()
	for range 2 {
		e := b.execute("import time\nprint('first', flush=True); print('second')\nwhile True: time.sleep(1)")
		b.until(e, "second")
		b.interrupted(e)
	}
}

func testBigOutput(f *suite) {
	b := f.launch()
	const size = 20 << 20
	text := b.python("print('x' * (20 << 20)); print('end')")
	if len(text) != size+len("\nend\n") || !strings.HasSuffix(text, "end\n") {
		f.Errorf("%d bytes", len(text))
	}
	// Who reads is at work on a piece while the next is made.
	if text, messages := b.streams(`print("é" * (3 << 20), end="")`); messages != 3 || len(text) != len("stdout ")+2*(3<<20) {
		f.Errorf("%d bytes in %d messages", len(text), messages)
	}
}

func testNoInput(f *suite) {
	b := f.launch()
	_, r := b.run("input('name?')")
	if r.Status != kernels.StatusError || r.Error.Name != "StdinNotImplementedError" {
		f.Errorf("result %+v", r)
	}
	b.want("import sys, subprocess\nprint(repr(subprocess.run(['cat'], capture_output=True).stdout))", "b''")
}

func testLateOutput(f *suite) {
	type late struct{ text, parent string }
	lates := make(chan late, 16)
	b := f.start()
	_ = b.client.Close()
	b.client = f.connect(b.handle, kernels.Options{Late: func(o kernels.Output, parent string) bool {
		lates <- late{o.Text, parent}
		return false
	}})
	f.must(b.client.Ready(f.ctx()))
	e := b.execute("import threading\nt = threading.Timer(0.5, lambda: print('late', flush=True)); t.start()")
	b.rest(e)
	select {
	case l := <-lates:
		if strings.TrimSpace(l.text) != "late" || l.parent != e.ID() {
			f.Errorf("got %+v, want parent %s", l, e.ID())
		}
	case <-f.ctx().Done():
		f.Error("lost")
	}
}

// testHeldLateOutput has one client after another end, as a server does that is killed before it has stored what it got.
func testHeldLateOutput(f *suite) {
	b := f.start()
	f.must(b.client.Ready(f.ctx()))
	e := b.execute(f.say("import threading; threading.Timer(0.5, lambda: print('late', flush=True)).start()", "late 500ms late"))
	b.rest(e)
	for _, dealtWith := range []bool{false, false, true} {
		_ = b.client.Close()
		text := make(chan string, 16)
		b.client = f.connect(b.handle, kernels.Options{
			Earlier: func(id string) bool { return id == e.ID() },
			Late: func(o kernels.Output, _ string) bool {
				text <- o.Text
				return !dealtWith
			},
		})
		select {
		case got := <-text:
			if strings.TrimSpace(got) != "late" {
				f.Errorf("got %q", got)
			}
		case <-f.ctx().Done():
			f.Fatalf("lost before it was dealt with (%v)", dealtWith)
		}
	}
	b.want(f.say("1 + 1", "1+1"), "2") // behind it, so that it has been acknowledged
	_ = b.client.Close()
	b.client = f.connect(b.handle, kernels.Options{
		Earlier: func(id string) bool { return id == e.ID() },
		Late: func(o kernels.Output, _ string) bool {
			f.Errorf("%q came again after it was dealt with", o.Text)
			return false
		},
	})
	b.want(f.say("1 + 1", "1+1"), "2")
}
