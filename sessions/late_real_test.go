//go:build linux

package sessions_test

import (
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

// texts joins what outputs show.
func texts(outs []kernels.Output) string {
	var b strings.Builder
	for _, out := range outs {
		b.WriteString(out.Text)
		b.Write(out.Data["text/plain"])
	}
	return b.String()
}

// What threads, pools and tasks produce while a later cell runs belongs to the cell that started them (item 11).
func TestRealLateOutputBelongsToItsOwnCell(t *testing.T) {
	m := newReal(t)
	run(t, m, cell(`import asyncio, threading, time
from concurrent.futures import ThreadPoolExecutor
from IPython.display import display
pool = ThreadPoolExecutor(1)
pool.submit(int).result()
def ticks(name):
    for i in range(3):
        time.sleep(0.3)
        print(name, i, flush=True)
    display(name)
class Worker(threading.Thread):
    def run(self):
        ticks("worker")
async def task():
    for i in range(3):
        await asyncio.sleep(0.3)
        print("task", i)`))
	started := map[string]*sessions.Execution{}
	for name, code := range map[string]string{
		"thread": `threading.Thread(target=ticks, args=("thread",)).start()`,
		"worker": `Worker().start()`,
		"pool":   `_ = pool.submit(ticks, "pool")`,
		"task":   `_ = asyncio.get_running_loop().create_task(task())`,
	} {
		code = `import asyncio` + "\n" + code
		if name == "task" {
			code += "\nawait asyncio.sleep(0)" // tasks need a loop that runs: IPython's, for cells that await
		}
		_, _, started[name] = run(t, m, cell(code))
	}
	got, _, later := run(t, m, cell("print('mine')\ntime.sleep(1.2)\nawait asyncio.sleep(1.5)\nprint('mine too')"))
	if got != "mine\nmine too\n" {
		t.Errorf("the cell that ran meanwhile shows %q", got)
	}
	told := map[int]string{}
	for _, late := range later.Late() {
		told[late.Number] = texts(late.Outputs)
	}
	for name, e := range started {
		want := name + " 0\n" + name + " 1\n" + name + " 2\n"
		if name != "task" {
			want += `"'` + name + `'"`
		}
		var kept []kernels.Output
		for out, err := range e.Outputs(t.Context()) {
			if err == nil {
				kept = append(kept, out)
			}
		}
		for _, out := range e.LateFrom(0) {
			kept = append(kept, out.Output)
		}
		if texts(kept) != want {
			t.Errorf("%s: its own cell has %q, want %q", name, texts(kept), want)
		}
		if !strings.HasSuffix(want, told[e.Number()]) || told[e.Number()] == "" {
			t.Errorf("%s: the next result tells %q", name, told[e.Number()])
		}
	}
}
