//go:build linux

package sessions_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"cellblock/images"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// A copy of the kernel saves its variables, and the kernel does not notice: threads go on, locks that they have block nobody, nothing is
// printed, no process is the cells' to wait for. What the copy cannot save, what takes too much room, and what is interrupted meanwhile
// is no harm.
func TestRealCheckpoint(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t, func(c *sessions.Config) {
		c.SaveVariables, c.CheckpointAfter = true, time.Millisecond
		c.Runtimes = map[string]sessions.Runtime{
			"python": {Kernelspec: kernelstest.Python, Save: python.Save, Load: python.Load, Checkpoint: python.Checkpoint},
		}
	})
	run := func(code string) (text, told string, r sessions.Result) {
		t.Helper()
		e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", code))
		r = sessions.WaitFor(t, e)
		if r.Error != nil {
			t.Fatalf("%s: %+v", code, r.Error)
		}
		return printed(e), e.Preamble(), r
	}
	const saved = "/workspace/" + images.SavedFile
	run(strings.Join([]string{
		"import os, threading, time",
		"x = {'a': [1]}; alias = x; gen = (i for i in range(3))",
		"class Noisy:\n    def __reduce__(self):\n        print('I am pickled'); os.write(1, b'really'); return Noisy, ()",
		"noisy, ticks, lock = Noisy(), [0], threading.Lock()",
		"def tick():\n    while True:\n        with lock: ticks[0] += 1; time.sleep(0.001)",
		"threading.Thread(target=tick, daemon=True).start()",
		"def once_saved(path='" + saved + "'):\n    while not os.path.exists(path): time.sleep(0.01)",
		"threading.Thread(target=lambda: (once_saved(), os.kill(os.getpid(), 9))).start()",
	}, "\n"))
	info := lost(t, m)
	if !strings.HasSuffix(info.Lost, "; its variables after cell 1 were saved") {
		t.Errorf("it is lost because %s", info.Lost)
	}
	text, told, _ := run("print(x, alias is x, type(noisy).__name__, ticks[0] > 0)")
	if text != "{'a': [1]} True Noisy True\n" {
		t.Errorf("printed %q", text)
	}
	if !strings.Contains(told, "They are back") || !strings.Contains(told, "Not back: gen (generator), lock (_thread.lock)") {
		t.Errorf("told %q", told)
	}
	if _, _, r := run("import os\nos.kill(os.getpid(), 9)"); r.Status != kernels.StatusDied || !strings.Contains(r.Death.Cause, "were saved") {
		t.Errorf("again: %+v", r)
	}
}

// What the kernel has open is not the copy's: what it closes is closed, and what it has still to write is written once. What is loaded as a
// trial is not given up, which may end what it stands for.
func TestRealCheckpointKeepsItsHandsOff(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t)
	checkpoint := strings.NewReplacer("{cell}", "7", "{most}", "5000000").Replace(python.Checkpoint)
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", strings.Join([]string{
		"import os, select, signal, time, warnings",
		"class Busy:\n    def __reduce__(self):\n        open('begun', 'w')\n        while not os.path.exists('go'): time.sleep(0.001)\n        return Busy, ()",
		"class Log:\n    def __init__(self): self.file = open('log', 'w')\n    def __getstate__(self): self.file.flush(); return {}",
		"class Owner:\n    def __del__(self): open('ended', 'w')",
		"class Failing(Owner):\n    def __setstate__(self, state): raise ValueError\n    def __getstate__(self): return 1",
		"def until(path):\n    while not os.path.exists(path): time.sleep(0.001)",
		"log, busy, owner, failing, (end, writes) = Log(), Busy(), Owner(), Failing(), os.pipe()",
		"print('line', file=log.file)",
		"os.register_at_fork(before=lambda: warnings.warn('of threads')); signal.signal(signal.SIGCHLD, signal.SIG_IGN)",
		"print(eval(" + strconv.Quote(checkpoint) + ").text)",
		"until('begun'); os.close(writes)",
		"print([open('/proc/' + p + '/comm').read() for p in os.listdir('/proc') if p.isdigit()].count('cellblock-saves\\n'))",
		"print(select.select([end], [], [], 10)[0] == [end])",
		"open('go', 'w'); until('" + images.SavedFile + "')",
		"log.file.flush(); print(open('log').read(), os.path.exists('ended'))",
	}, "\n")))
	if r := sessions.WaitFor(t, e); r.Error != nil || printed(e) != `{"took": 0}`+"\n1\nTrue\nline\n False\n" {
		t.Errorf("%q, %v", printed(e), r.Error != nil)
	}
}

// One that fails leaves nothing but word of that, takes no room, and is not soon tried again; one that goes on is not begun twice.
func TestRealCheckpointThatFails(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t)
	checkpoint := func(most string) string {
		return strings.NewReplacer("{cell}", "7", "{most}", most).Replace(python.Checkpoint)
	}
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", strings.Join([]string{
		"import fcntl, os",
		"x = 'x' * 100_000",
		"def checkpoint(expression):\n    print(eval(expression).text, end=' ')",
		"def ended():\n    with open('" + images.SavedFile + ".checkpoint') as f: fcntl.flock(f, fcntl.LOCK_EX); return os.fstat(f.fileno()).st_size",
		"class Deadly:\n    def __reduce__(self): os.kill(os.getpid(), 9)",
		"deadly = Deadly()",
		"checkpoint(" + strconv.Quote(checkpoint("5000000")) + ")",
		"print(ended())",
		"del deadly, Deadly",
		"checkpoint(" + strconv.Quote(checkpoint("5000")) + ")",
		"print(ended())",
		"checkpoint(" + strconv.Quote(checkpoint("5000000")) + ")",
		"with open('" + images.SavedFile + ".checkpoint', 'a') as f: fcntl.flock(f, fcntl.LOCK_EX)",
		"print(open('" + images.SavedFile + "', 'rb').readline().decode(), end='')",
		"before = os.stat('" + images.SavedFile + "')",
		"with open('" + images.SavedFile + ".checkpoint', 'w') as f:",
		"    fcntl.flock(f, fcntl.LOCK_EX)",
		"    checkpoint(" + strconv.Quote(checkpoint("5000000")) + ")",
		"print(os.path.samestat(before, os.stat('" + images.SavedFile + "')), os.stat('" + images.SavedFile + ".checkpoint').st_size)",
	}, "\n")))
	r := sessions.WaitFor(t, e)
	if want := `{"took": 0} 1` + "\n" + `{"took": 60} 1` + "\n" + `{"took": 60} {"cell": 7}` + "\n"; r.Error != nil || !strings.HasPrefix(printed(e), want) || !strings.HasSuffix(printed(e), "True 0\n") {
		t.Errorf("%q, %v", printed(e), r.Error != nil)
	}
}

// What a library does in each new process may never end: no copy stays there for it, and the kernel goes on.
func TestRealCheckpointThatNeverBegins(t *testing.T) {
	python := images.Python(kernelstest.Python.Argv[0])
	m := newReal(t)
	checkpoint := strings.NewReplacer("{cell}", "7", "{most}", "5000000").Replace(python.Checkpoint)
	e := sessions.StartCell(t, m, sessions.Alice, sessions.Python("s", strings.Join([]string{
		"import fcntl, os, signal, threading, time",
		"kernel, hangs, x = os.getpid(), 'copy', 1",
		"def in_child():\n    if hangs == ('child' if os.getppid() == kernel else 'copy'): time.sleep(600)",
		"os.register_at_fork(after_in_child=in_child)",
		"def ended():\n    with open('" + images.SavedFile + ".checkpoint') as f: fcntl.flock(f, fcntl.LOCK_EX); return os.fstat(f.fileno()).st_size",
		"checkpoint = " + strconv.Quote(checkpoint),
		"print(eval(checkpoint).text, ended())",
		"hangs = 'child'",
		"threading.Timer(0.5, lambda: os.kill(kernel, signal.SIGINT)).start()",
		"try:\n    eval(checkpoint)\nexcept KeyboardInterrupt:\n    print('interrupted', ended())",
		"try:\n    os.waitpid(-1, os.WNOHANG)\nexcept ChildProcessError:\n    print('no child')",
		"hangs = ''",
		"print(eval(checkpoint).text)",
		"while not os.path.exists('" + images.SavedFile + "'): time.sleep(0.01)",
	}, "\n")))
	r := sessions.WaitFor(t, e)
	if want := `{"took": 0} 1` + "\ninterrupted 1\nno child\n" + `{"took": 60}` + "\n"; r.Error != nil || printed(e) != want {
		t.Errorf("%q, %+v", printed(e), r.Error)
	}
}

// R's variables outlive a kernel that dies, as far as they were saved while it went on.
func TestRealCheckpointOfR(t *testing.T) {
	spec, folders := kernelstest.R(t)
	f := newSaving(t, 0, time.Millisecond, spec, folders[0], folders...)
	f.run(t, `x <- 1; g <- function() x + 1; e <- new.env(); shared <- list(e, e); con <- file("open", "w"); z <- crossprod(matrix(1, 300, 300))
system(sprintf("(until test -e .cellblock-variables; do sleep 0.01; done; kill -9 %d)", Sys.getpid()), wait = FALSE)`)
	if info := lost(t, f.Manager); !strings.HasSuffix(info.Lost, "; its variables after cell 1 were saved") {
		t.Errorf("it is lost because %s", info.Lost)
	}
	text, told := f.run(t, "x <- 2; cat(g(), identical(shared[[1]], e) && identical(shared[[2]], e), z[1])")
	if text != "3 TRUE 300" || !strings.Contains(told, "They are back") || !strings.Contains(told, "Not back: con (file), background") {
		t.Errorf("%q, told %s", text, told)
	}
}

// The kernel does not notice: its threads go on, what it has open is its own, and no process is the cells' to wait for. A copy that fails
// takes no room and is not soon tried again; one that goes on is not begun twice, and is not what an interrupt is meant for.
func TestRealCheckpointOfRIsNotNoticed(t *testing.T) {
	spec, folders := kernelstest.R(t)
	f := newSaving(t, 0, time.Hour, spec, folders[0], folders...)
	f.run(t, `kernel <- function() Find(function(frame) exists("beside", frame, inherits = FALSE), sys.frames())$beside$cellblock
checkpoint <- function(most) jsonlite::fromJSON(kernel()$checkpoint(7, most)[[1]])$took
forget <- function() assign("last_aside", NA, kernel())
processes <- function() {
  comms <- lapply(Sys.glob("/proc/[0-9]*/stat"), function(path) tryCatch(suppressWarnings(readLines(path)), error = function(e) ""))
  sum(grepl(" [(](R|cellblock-saves)[)] ", comms))
}
ended <- function() while (processes() > 1) Sys.sleep(0.01)
interrupt <- function() {
  while (file.exists(copied) && file.size(copied) == 0) Sys.sleep(0.01)
  system(sprintf("trap '' INT; kill -INT -%d", Sys.getpid()))
}
saved <- ".cellblock-variables"; copied <- paste0(saved, ".checkpoint")
tables <- requireNamespace("data.table", quietly = TRUE); if (tables) data.table::setDTthreads(2)`)
	for _, step := range []struct{ what, code, want string }{
		{"of one that has too little room", `cat(checkpoint(5000)); ended(); cat("", file.size(copied), file.exists(saved))`, "0 0 FALSE"},
		{"of one soon after that", `cat(checkpoint(1e9) < 60, processes(), file.size(copied))`, "TRUE 1 0"},
		{"of one much later", `forget(); cat(checkpoint(1e9)); ended(); cat("", readLines(saved, 1, skipNul = TRUE), file.exists(copied))`, `60 {"cell": 7} FALSE`},
		{"of what goes on", `big <- as.list(1:3e6); z <- crossprod(matrix(1, 300, 300)); job <- parallel::mcparallel(8)
w <- pipe("cat >piped", "w"); cat("one\n", file = w); took <- checkpoint(1e9); close(w)
cat(took > 0 && took < 60, processes() > 1, checkpoint(1e9) < 60, length(parallel:::children()), parallel::mccollect(job)[[1]], readLines("piped"))`, "TRUE TRUE TRUE 1 8 one"},
		{"of what comes then", `interrupt()
cat(unlist(parallel::mclapply(1:2, identity)), crossprod(z)[1] == 300^3, !tables || data.table::getDTthreads() == min(2, parallel::detectCores()), file.exists(copied))
ended(); cat("", file.exists(copied), file.size(saved) > 3e6, length(warnings()))`, "1 2 TRUE TRUE TRUE FALSE TRUE 0"},
		{"of one that does not end", `hang <- function(new, ...) {
  cat("part", file = new)
  repeat NULL
}
assign("save_as", hang, kernel()); assign("LONGEST_ASIDE", 1, kernel())
took <- checkpoint(1e9); interrupt(); ended(); cat(file.size(copied))`, "0"},
	} {
		if text, _ := f.run(t, step.code); text != step.want {
			t.Errorf("%s: got %q, want %q", step.what, text, step.want)
		}
	}
}

// lost waits until session "s" has no kernel.
func lost(t *testing.T, m *sessions.Manager) sessions.Info {
	t.Helper()
	for {
		changed := m.Changed(sessions.Alice, "s")
		if info, err := m.Get(t.Context(), sessions.Alice, "s"); err != nil || info.Lost != "" {
			return info
		}
		<-changed
	}
}
