package kernelstest

import (
	"encoding/json"
	"strconv"
	"strings"

	"cellblock/kernels"
)

// limitCases are about limits: each is enforced as Capabilities says.
var limitCases = []suiteCase{
	{"memory is bounded and reported as Capabilities says", real, testMemory},
	{"memory that a child takes counts too", real, testMemoryOfChild},
	{"threads of BLAS and OpenMP equal the CPU limit", real, testThreads},
	{"cores beyond the machine's are as many as it has", real, testManyCores},
	{"CPU time is bounded", real, testCPU},
	{"a fork bomb is bounded", real, testForkBomb},
	{"a file's size is bounded", real, testFileSize},
	{"/tmp is bounded and noexec", real, testTmp},
	{"open files are bounded", real, testFiles},
}

// enforced skips, loudly, what the provisioner says that it does not enforce on this host.
func (f *suite) enforced(by, what string) {
	f.Helper()
	if by == "" && f.s.Weak {
		f.Skipf("%s does not claim %s", f.p.Name(), what)
	}
	Need(f.T, by != "", what+", enforced by "+f.p.Name()+" on this host,")
	f.Logf("%s: %s", what, by)
}

const hog = `
hoard = []
for i in range(64): hoard.append(b"x" * (32 << 20))
print("took", sum(map(len, hoard)))
`

func testMemory(f *suite) {
	c := f.p.Capabilities()
	f.enforced(c.Memory, "a memory limit")
	b := f.launch(func(s *kernels.Spec) { s.Limits.Memory = 512 << 20 })
	text, r := b.run(hog)
	if strings.Contains(text, "took") {
		f.Fatalf("took 2 GiB with a limit of 512 MiB: %s", text)
	}
	if !c.ReportsOOM {
		if r.Status != kernels.StatusError || r.Error.Name != "MemoryError" {
			f.Fatalf("result %+v, death %+v", r, r.Death)
		}
		b.python("del hoard")
		b.want("1+1", "2")
		return
	}
	if r.Status != kernels.StatusDied || r.Death == nil || !r.Death.OOM || !strings.Contains(r.Death.Cause, "out of memory") {
		f.Errorf("result %+v, death %+v", r, r.Death)
	}
}

func testMemoryOfChild(f *suite) {
	f.enforced(f.p.Capabilities().Memory, "a memory limit")
	b := f.launch(func(s *kernels.Spec) { s.Limits.Memory = 512 << 20 })
	text, _ := b.run("import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', " + strconv.Quote(hog) + "], capture_output=True, text=True).stdout)")
	if strings.Contains(text, "took") {
		f.Errorf("a child took 2 GiB with a limit of 512 MiB")
	}
}

func testThreads(f *suite) {
	b := f.launch(func(s *kernels.Spec) { s.Limits.CPUs = 1.5 })
	b.want("import os\nprint([os.environ.get(k) for k in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS', 'PYTHON_CPU_COUNT', 'LOKY_MAX_CPU_COUNT')])", "['2', '2', '2', '2']")
}

// A limit beyond what the machine has bounds nothing, and engines refuse it.
func testManyCores(f *suite) {
	b := f.launch(func(s *kernels.Spec) { s.Limits.CPUs = 4096 })
	b.want("import os\nprint(os.environ['OMP_NUM_THREADS'])", strconv.Itoa(f.p.Capabilities().Cores))
}

func testCPU(f *suite) {
	f.enforced(f.p.Capabilities().CPU, "a CPU limit")
	b := f.launch(func(s *kernels.Spec) { s.Limits.CPUs = 0.5 })
	var got struct{ CPU, Wall float64 }
	text := b.python(`
import os, time, json
pids, start = [], time.monotonic()
for _ in range(8): # so many that they would have more on a busy machine, too
    pid = os.fork()
    if pid == 0:
        while time.monotonic() - start < 2: pass
        os._exit(0)
    pids.append(pid)
cpu = 0
for pid in pids:
    used = os.wait4(pid, 0)[2]
    cpu += used.ru_utime + used.ru_stime
print(json.dumps({"CPU": cpu, "Wall": time.monotonic() - start}))`)
	f.must(json.Unmarshal([]byte(text), &got))
	if got.CPU > 0.75*got.Wall {
		f.Errorf("used %.2f s in %.2f s, with half a CPU", got.CPU, got.Wall)
	}
}

func testForkBomb(f *suite) {
	f.enforced(f.p.Capabilities().PIDs, "a limit of processes")
	b := f.launch(func(s *kernels.Spec) { s.Limits.PIDs = 64 })
	text := b.python(`
import os, signal
kids, why = [], None
while why is None and len(kids) < 500:
    try: pid = os.fork()
    except OSError as e: why = type(e).__name__; break
    if pid == 0:
        signal.pause(); os._exit(0)
    kids.append(pid)
for pid in kids: os.kill(pid, 9); os.waitpid(pid, 0)
print(len(kids), why)`)
	count, why, _ := strings.Cut(strings.TrimSpace(text), " ")
	if n, err := strconv.Atoi(count); err != nil || n > 64 || why != "BlockingIOError" {
		f.Errorf("forked %q", text)
	}
	b.want("1+1", "2")
}

func testFileSize(f *suite) {
	f.enforced(f.p.Capabilities().FileSize, "a limit of a file's size")
	b := f.launch(func(s *kernels.Spec) { s.Limits.FileSize = 1 << 20 })
	b.want(`
try:
    with open("big", "wb") as f: f.write(b"x" * (4 << 20))
    print("written")
except OSError as e: print(e.strerror)`, "File too large")
	b.want("import os\nprint(os.path.getsize('big') <= 1 << 20)", "True")
}

func testTmp(f *suite) {
	f.enforced(f.p.Capabilities().Filesystem, "an isolated /tmp")
	b := f.launch(func(s *kernels.Spec) { s.Limits.Tmp = 8 << 20 })
	b.want(`
try:
    with open("/tmp/big", "wb") as f: f.write(b"x" * (32 << 20))
    print("written")
except OSError as e: print(e.strerror)
import os; os.remove("/tmp/big")`, "No space left on device")
	for _, w := range f.p.Capabilities().Warnings {
		if strings.Contains(w, "/tmp") {
			f.Logf("as the provisioner warns: %s", w)
			return
		}
	}
	b.want(`
import subprocess
with open("/tmp/run", "w") as f: f.write("#!/bin/sh\necho ran\n")
os.chmod("/tmp/run", 0o755)
try: print(subprocess.run(["/tmp/run"], capture_output=True, text=True).stdout)
except OSError as e: print(e.strerror)`, "Permission denied")
}

func testFiles(f *suite) {
	b := f.launch(func(s *kernels.Spec) { s.Limits.Files = 256 })
	b.want(`
held, why = [], None
try:
    while len(held) < 1000: held.append(open("/dev/null"))
except OSError as e: why = e.strerror
for h in held: h.close()
print(len(held) <= 256, why)`, "True Too many open files")
}
