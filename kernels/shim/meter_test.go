//go:build linux

package shim

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels/stream"
	"cellblock/kernels/wire"
)

const mb = 1 << 20

func TestMeter(t *testing.T) {
	for name, tt := range map[string]struct {
		before, between, after consumption
		cpu                    time.Duration
		memory                 int64
	}{
		"seen in between":            {consumption{time.Second, 50 * mb, 60 * mb, 0}, consumption{0, 55 * mb, 60 * mb, 0}, consumption{3 * time.Second, 50 * mb, 60 * mb, 0}, 2 * time.Second, 55 * mb},
		"the group's peak was risen": {consumption{0, 50 * mb, 60 * mb, 0}, consumption{0, 55 * mb, 60 * mb, 0}, consumption{1, 50 * mb, 90 * mb, 0}, 1, 90 * mb},
		"most at the end":            {consumption{0, 50 * mb, 0, 0}, consumption{0, 55 * mb, 0, 0}, consumption{0, 58 * mb, 0, 0}, 0, 58 * mb},
		"most at the beginning":      {consumption{0, 70 * mb, 0, 0}, consumption{0, 55 * mb, 0, 0}, consumption{0, 58 * mb, 0, 0}, 0, 70 * mb},
		"processes have ended":       {consumption{time.Second, 50 * mb, 0, 0}, consumption{}, consumption{}, 0, 50 * mb},
		"one was killed":             {consumption{0, 50 * mb, 0, 2}, consumption{0, 50 * mb, 0, 3}, consumption{0, 50 * mb, 0, 3}, 0, 50 * mb},
		"nothing is known":           {},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var now reading
				now.set(tt.before)
				m := newMeter(now.get)
				m.begin("cell")
				now.set(tt.between)
				time.Sleep(firstLook)
				synctest.Wait()
				now.set(tt.after)
				if u, ok := m.end("another"); ok {
					t.Errorf("of another: %+v", u)
				}
				kills := max(0, tt.after.kills-tt.before.kills)
				if n := m.killed(tt.after); n != kills {
					t.Errorf("while it runs: %d killed, want %d", n, kills)
				}
				u, ok := m.end("cell")
				if want := (stream.Used{Parent: "cell", CPU: tt.cpu, Memory: tt.memory, OOMKills: kills}); !ok || u != want {
					t.Errorf("%+v, want %+v", u, want)
				}
				if u, ok := m.end("cell"); ok {
					t.Errorf("a second time: %+v", u)
				}
				if n := m.killed(consumption{kills: 9}); n != 0 {
					t.Errorf("after it: %d killed", n)
				}
			})
		})
	}
}

// reading is what a meter finds. Its timer may look at any time.
type reading struct{ now atomic.Pointer[consumption] }

func (r *reading) set(c consumption) { r.now.Store(&c) }

func (r *reading) get() consumption {
	if c := r.now.Load(); c != nil {
		return *c
	}
	return consumption{}
}

// What counts is the time from when the cell was sent: a kernel that computes says that it has begun when it is done. Silent
// requests, and what comes while another is measured, are not measured so.
func TestMeterBeginsWithTheRequest(t *testing.T) {
	request := func(id, msgType string, silent bool) [][]byte {
		header := wire.NewHeader(id, "test", msgType)
		return wire.Message{Header: header, Content: encode(map[string]any{"code": `"silent":true`, "silent": silent})}.Parts()
	}
	for name, tt := range map[string]struct {
		sent [][]byte
		cpu  time.Duration
	}{
		"expected":          {request("cell", "execute_request", false), 3},
		"another":           {request("another", "execute_request", false), 1},
		"silent":            {request("cell", "execute_request", true), 1},
		"no execution":      {request("cell", "kernel_info_request", false), 1},
		"not even a header": {[][]byte{[]byte("{"), nil, nil, nil}, 1},
	} {
		var now reading
		m := newMeter(now.get)
		m.expect(tt.sent)
		m.expect(request("later", "execute_request", false))
		now.set(consumption{cpu: 2})
		m.begin("cell")
		now.set(consumption{cpu: 3})
		if u, ok := m.end("cell"); !ok || u.CPU != tt.cpu {
			t.Errorf("%s: %+v %v", name, u, ok)
		}
	}
	m := newMeter(func() consumption { return consumption{} })
	lost := request("lost", "execute_request", false)
	m.expect(lost)
	m.unsent(lost)
	if m.parent != "" {
		t.Error("what could not be sent is measured")
	}
}

// A cell that runs for hours is looked at once a second, and nobody looks when none runs.
func TestMeterLooksSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		m := newMeter(func() consumption { looks++; return consumption{} })
		m.begin("cell")
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks < 3500 || looks > 3700 {
			t.Errorf("%d looks in an hour", looks)
		}
		m.cut()
		looks = 0
		time.Sleep(time.Hour)
		synctest.Wait()
		if looks > 0 {
			t.Errorf("%d looks, and no cell runs", looks)
		}
	})
}

// What an execution has used is told before the later of reply and idle; of one that the kernel did not survive, at the end.
func TestGateTellsWhatWasUsed(t *testing.T) {
	s := newScript(t, mb, mb, mb)
	s.g.meter = newMeter(func() consumption { return consumption{memory: 7} })
	begin := func(id string) { s.send(message(id, "execute_input", map[string]any{"code": "1"})) }
	reply := func(id string) {
		s.g.message(stream.Shell, message(id, "execute_reply", map[string]string{"status": "ok"}))
	}
	begin("a")
	reply("a")
	s.send(idle("a"))
	begin("b")
	s.send(idle("b"))
	reply("b")
	reply("fence")
	s.send(idle("fence"))
	begin("late")
	s.send(idle("late"), idle("of control"))
	reply("late")
	begin("c")
	s.g.end()
	s.g.end()
	words := strings.Join(usedAmong(t, s.j), " ")
	if want := "execute_input execute_reply used:a status execute_input status used:b execute_reply execute_reply status execute_input status status used:late execute_reply execute_input used:c"; words != want {
		t.Errorf("got\n%s, want\n%s", words, want)
	}
}

// usedAmong names all that is in a journal.
func usedAmong(t *testing.T, j *journal) (words []string) {
	t.Helper()
	c, next, err := j.follow(nil)
	if err != nil {
		t.Fatal(err)
	}
	for c.next < next {
		e, _, _ := c.read()
		if e.event != nil {
			words = append(words, string(e.event.Kind)+":"+e.event.Used.Parent)
			continue
		}
		l, _ := readLabel(e.msg.Parts)
		words = append(words, l.msgType)
	}
	return words
}

func TestCounters(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  consumption
		known bool
	}{
		"version 2": {map[string]string{
			"cpu.stat": "usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n", "memory.current": "4096\n", "memory.peak": "8192\n",
			"memory.events": "low 0\nhigh 0\nmax 4\noom 3\noom_kill 2\noom_group_kill 0\n",
		}, consumption{1500 * time.Microsecond, 4096, 8192, 2}, true},
		"version 1": {map[string]string{
			"cpu.stat": "nr_periods 0\n", "cpuacct.usage": "1500\n", "memory.usage_in_bytes": "4096\n", "memory.max_usage_in_bytes": "8192\n",
			"memory.oom_control": "oom_kill_disable 1\nunder_oom 0\noom_kill 3\n",
		}, consumption{1500, 4096, 8192, 3}, true},
		"no numbers": {map[string]string{"cpu.stat": "usage_usec\n", "memory.current": "max\n"}, consumption{}, false},
		"nothing":    {nil, consumption{}, false},
	} {
		dir := t.TempDir()
		for file, text := range tt.files {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		k := newCgroup(dir).counters()
		cpu, ok := k.cpu()
		memory, okMemory := numberIn(k.memory, "")
		peak, _ := numberIn(k.peak, "")
		if got := (consumption{cpu, memory, peak, k.kills()}); got != tt.want || ok != tt.known || okMemory != tt.known {
			t.Errorf("%s: %+v %v %v", name, got, ok, okMemory)
		}
		k.closeAll()
	}
}

// The two ways to find what belongs to the shim find the same.
func TestDescendants(t *testing.T) {
	cmd := exec.Command("/bin/sh", "-c", "sleep 600 & echo; wait")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		found, _ := descendants(cmd.Process.Pid, nil)
		for _, p := range found {
			_ = syscall.Kill(p.pid, syscall.SIGKILL)
		}
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	found, ok := descendants(os.Getpid(), nil)
	if !ok {
		t.Skip("this host does not list children")
	}
	all, err := processes()
	if err != nil {
		t.Fatal(err)
	}
	pids := func(ps []process) (pids []int) {
		for _, p := range ps {
			pids = append(pids, p.pid)
		}
		slices.Sort(pids)
		return pids
	}
	if got, want := pids(found), pids(below(os.Getpid(), all)); len(got) < 2 || !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// BenchmarkConsumption is what each cell pays twice: with a control group, and where there is none.
func BenchmarkConsumption(b *testing.B) {
	for name, c := range map[string]*cgroup{"group": {dirs: []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup/cpuacct", "/sys/fs/cgroup"}}, "proc": {}} {
		b.Run(name, func(b *testing.B) {
			u := &consumptions{s: &Shim{cgroup: c}}
			for b.Loop() {
				u.sample()
			}
			u.closeAll()
		})
	}
}
