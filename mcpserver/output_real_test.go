//go:build linux

package mcpserver

import (
	"fmt"
	"strings"
	"testing"
)

// Code that closes what it prints to ends neither its cell's output nor the session.
func TestRealOutputIsNotClosed(t *testing.T) {
	w := newRealWorld(t)
	w.run("c", "import sys\nprint('before')\nsys.stdout.close(); sys.stderr.close()\nprint('after')").expect(t, false, "before\nafter\n[session")
	w.run("c", "!echo of a program").expect(t, false, "of a program\n[session")
	w.run("c", "import asyncio\nasync def main(): return 5\nc = main()\ntry: asyncio.run(c)\nfinally: c.close()").expect(t, true, "Hint: A cell may await at its top level: await main().")
}

// What scripts do for the sake of an encoding, or to write bytes, does here what it does in a program.
func TestRealOutputInBytes(t *testing.T) {
	w := newRealWorld(t)
	w.run("b", "import io, shutil, sys\nsys.stdout.reconfigure(encoding='utf-8', line_buffering=True)\nprint('é')").expect(t, false, "é\n[session")
	w.run("b", "print('before'); sys.stdout.buffer.write('é'.encode()[:1]); sys.stdout.buffer.write('é'.encode()[1:] + b' \\xff\\n'); print('after')").expect(t, false, "before\né \\xff\nafter\n[session")
	w.run("b", "sys.stdout.buffer.write('caf\u00e9'.encode('latin-1'))\nprint()").expect(t, false, "caf\n\\xe9\n[session")
	w.run("b", "sys.stdout.buffer.write('text')").expect(t, true, "a bytes-like object is required, not 'str'")
	w.run("b", "sys.stdout.buffer.write(5)").expect(t, true, "a bytes-like object is required, not 'int'")
	w.run("b", "shutil.copyfileobj(io.BytesIO(b'copied'), sys.stderr.buffer)").expect(t, false, "[stderr] copied\n[session")
	w.run("b", "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('ü')").expect(t, false, "ü\n[session")
	w.run("b", "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8')\nprint('again')").expect(t, false, "again\n[session")
	w.run("b", "sys.stdout = sys.__stdout__\nprint('own')").expect(t, false, "own\n[session")
	w.run("b", "import subprocess; subprocess.run(['echo', 'of a program'], stdout=sys.stdout.buffer); print('last')").expect(t, false, "of a program\n", "last\n[session")
}

// What programs print, and Python's own streams, belongs to the cell that runs, also while sys.stdout is something else.
func TestRealOutputOfReplacedStreams(t *testing.T) {
	w := newRealWorld(t)
	w.run("r", "import os, sys\nclass Tee:\n    def __init__(self, stream): self.stream = stream\n    def write(self, text): self.stream.write(text)\n    def flush(self): self.stream.flush()\nsys.stdout, sys.stderr = Tee(sys.stdout), Tee(sys.stderr)").expect(t, false)
	w.run("r", "print('python')\nos.system('echo program');").expect(t, false, "python\nprogram\n[session")
	w.run("r", "os.system('echo error >&2');").expect(t, false, "[stderr] error\n[session")
	w.run("r", "sys.stdout = sys.__stdout__\nprint('own')").expect(t, false, "own\n[session")
	w.run("r", "print('again')").expect(t, false, "again\n[session")
	w.run("r", "print('last', file=sys.__stderr__)").expect(t, false, "[stderr] last\n[session")
}

// Something for sys.stdout that cannot be flushed, as a file that is closed, costs no cell its end, and the next ones nothing.
func TestRealOutputThatCannotBeFlushed(t *testing.T) {
	w := newRealWorld(t)
	w.run("u", "import os, sys\nclass Mute:\n    def write(self, text): pass").expect(t, false)
	for _, code := range []string{"with open('log', 'w') as sys.stdout: print(1)", "sys.stdout = Mute(); print(1)", "sys.stdout = None", "del sys.stdout", "sys.stdout = Mute(); 1/0",
		"sys.stdout = Mute(); 5"} {
		if got := w.run("u", code).String(); !strings.Contains(got, "sys.stdout is the notebook's again: ") {
			t.Errorf("%s\n%s", code, got)
		}
		w.run("u", "print('seen'); 1/0").expect(t, true, "seen\nCell In [", "ZeroDivisionError")
	}
	w.run("u", "sys.stderr = None").expect(t, false, "[stderr] sys.stderr is the notebook's again: what it was cannot be flushed (AttributeError: ")
	w.run("u", "os.close(1); sys.stdout = sys.__stdout__; print('not lost')").expect(t, false, "not lost\n[session")
	w.run("u", "print('seen')").expect(t, false, "seen\n[session")
	w.run("u", "os.close(1); os.close(2)").expect(t, false)
	w.run("u", "os.system('echo a program');").expect(t, false, "a program\n[session")
	w.run("u", "os.system('echo its errors >&2');").expect(t, false, "[stderr] its errors\n[session")
}

// What a cell replaces in modules, for a test or for good, is replaced for its own code, and not for what brings its output here.
func TestRealOutputOfReplacedModules(t *testing.T) {
	w := newRealWorld(t)
	for _, tt := range []struct{ code, want string }{
		{"import asyncio, json, os, select, socket, time\nfrom unittest import mock\nwith mock.patch('os.getpid', return_value=42): print('seen', os.getpid())", "seen 42\n[session"},
		{"with mock.patch('socket.socket'): print(await asyncio.sleep(0, 'awaited'))", "awaited\n[session"},
		{"with mock.patch('time.time', side_effect=[1, 2]), mock.patch('time.monotonic', side_effect=[3, 4]):\n" +
			"    for _ in 'ab': print('at', time.time(), time.monotonic()); time.sleep(0.3)", "at 1 3\nat 2 4\n[session"},
		{"class Guard(socket.socket):\n    def __new__(cls, *args): raise RuntimeError('no network')\nsocket.socket = Guard", "· ok ·"},
		{"await asyncio.sleep(0, 'awaited')", "'awaited'\n[session"},
		{"os.getpid = os.read = os.write = os.fstat = os.dup = os.dup2 = json.dumps = json.loads = select.select = time.time = time.sleep = None", "· ok ·"},
		{"print('seen'); os.system('echo program'); 5", "seen\nprogram\n5\n[session"},
	} {
		w.execute("m", tt.code, map[string]any{"timeout_seconds": 10}).expect(t, false, tt.want)
	}
}

// What a Python prints that a cell has started is heard while it runs, also the host's own: workers of joblib's outlive their cell.
func TestRealOutputOfProgramsThatGoOn(t *testing.T) {
	w := newRealWorld(t)
	w.run("g", `import os, subprocess, sys
read, write = os.pipe()
p = subprocess.Popen([sys.executable, '-c', f'import os; print("working"); os.write({write}, b"."); input()'], stdin=subprocess.PIPE, pass_fds=[write])
os.read(read, 1);`).expect(t, false, "working\n[session")
	w.run("g", "p.communicate(b'\\n');").expect(t, false)
}

// Processes that print at the same time do so by lines, and what is none comes before the pool's end.
func TestRealOutputOfForkedProcesses(t *testing.T) {
	w := newRealWorld(t)
	w.run("f", "import os\nfrom multiprocessing import Pool, Process\ndef work(i):\n    for k in range(25): print('the', 'worker', i, k, flush=True)\n    print('left', end='')").expect(t, false)
	got := w.run("f", "with Pool(4) as pool: pool.map(work, range(4), chunksize=1);").String()
	text, _, _ := strings.Cut(got, "[session")
	for i := range 100 {
		line := fmt.Sprintf("the worker %d %d\n", i%4, i/4)
		if !strings.Contains(text, line) {
			t.Errorf("%sis not a line of\n%s", line, got)
		}
		text = strings.Replace(text, line, "", 1)
	}
	if strings.Join(strings.Fields(text), "") != strings.Repeat("left", 4) {
		t.Errorf("%s\n%s", text, got)
	}
	w.run("f", "p = Process(target=work, args=(5,)); p.start(); p.join()").expect(t, false, "the worker 5 24\nleft\n[session")
}

// What threads of a forked process print is all there, each one's by lines, and a long line costs no more than its length.
func TestRealOutputOfForkedThreads(t *testing.T) {
	w := newRealWorld(t)
	w.run("t", "import sys\nfrom multiprocessing import get_context\nfrom threading import Thread\n"+
		"def work(i):\n    for k in range(250): print('thread', i, k)\n"+
		"def work_all():\n    sys.setswitchinterval(1e-6)\n    threads = [Thread(target=work, args=(i,)) for i in range(4)]\n"+
		"    for one in threads: one.start()\n    for one in threads: one.join()\n"+
		"def fork(do): p = get_context('fork').Process(target=do); p.start(); p.join()").expect(t, false)
	text, _, _ := strings.Cut(w.run("t", "fork(work_all)").String(), "[session")
	for i := range 1000 {
		if line := fmt.Sprintf("thread %d %d\n", i%4, i/4); !strings.Contains(text, line) {
			t.Fatalf("%sis not a line of\n%s", line, text)
		}
	}
	w.run("t", "def dots():\n    for _ in range(300_000): print('.', end='')\nimport time; began = time.time(); fork(dots)")
	w.run("t", "time.time() - began < 8").expect(t, false, "True\n")
}
