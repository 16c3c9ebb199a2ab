//go:build linux

package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// counters are the control group's files that are read before and after each execution, and for statistics, kept open: that
// takes a tenth of the time.
type counters struct {
	usec, nsec, memory, peak, events *os.File // nil where there is none
}

// open returns the first of the named files that exists, nil if none does.
func (c *cgroup) open(names ...string) *os.File {
	for _, name := range names {
		for _, dir := range c.dirs {
			if f, err := os.Open(filepath.Join(dir, name)); err == nil {
				return f
			}
		}
	}
	return nil
}

// counters opens the files, where they are about the sandbox.
func (c *cgroup) counters() counters {
	if !c.own() {
		return counters{}
	}
	k := counters{
		usec: c.open("cpu.stat"), memory: c.open("memory.current", "memory.usage_in_bytes"),
		peak: c.open("memory.peak", "memory.max_usage_in_bytes"), events: c.open("memory.events", "memory.oom_control"),
	}
	if _, ok := numberIn(k.usec, "usage_usec"); !ok { // version 1 has a file of that name that is about something else
		k.close(&k.usec)
		k.nsec = c.open("cpuacct.usage")
	}
	return k
}

func (k *counters) close(f **os.File) {
	if *f != nil {
		_ = (*f).Close() // nothing was written
	}
	*f = nil
}

func (k *counters) closeAll() {
	for _, f := range []**os.File{&k.usec, &k.nsec, &k.memory, &k.peak, &k.events} {
		k.close(f)
	}
}

// cpu returns the processor time that the group has used.
func (k *counters) cpu() (time.Duration, bool) {
	if n, ok := numberIn(k.usec, "usage_usec"); ok {
		return time.Duration(n) * time.Microsecond, true
	}
	n, ok := numberIn(k.nsec, "")
	return time.Duration(n), ok
}

// kills counts what the OOM killer has killed.
func (k *counters) kills() int64 {
	n, _ := numberIn(k.events, "oom_kill ") // version 1 has a line oom_kill_disable
	return n
}

// numberIn reads the number of a file, or that of its line "key number".
func numberIn(f *os.File, key string) (int64, bool) {
	if f == nil {
		return 0, false
	}
	var buf [512]byte // the lines that are looked for come first
	n, _ := f.ReadAt(buf[:], 0)
	for line := range bytes.Lines(buf[:n]) {
		if number, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(key)); ok {
			v, err := strconv.ParseInt(string(bytes.TrimSpace(number)), 10, 64)
			return v, err == nil
		}
	}
	return 0, false
}

// consumptions samples what the meter compares, and what statistics tell. It is called twice for each execution, and so it is fast
// where there is a control group; where there is none it reads /proc.
type consumptions struct {
	s    *Shim
	once sync.Once
	counters
}

func (u *consumptions) sample() (c consumption) {
	u.open()
	used, haveCPU := u.cpu()
	memory, haveMemory := numberIn(u.memory, "")
	c.peak, _ = numberIn(u.peak, "")
	c.cpu, c.memory, c.kills = used, memory, u.kills()
	if haveCPU && haveMemory {
		return c
	}
	self, kernels := family()
	if !haveCPU {
		c.cpu = self.waited
		for _, p := range kernels {
			c.cpu += exactCPU(p) + p.waited
		}
	}
	if !haveMemory {
		c.memory = resident(kernels)
	}
	return c
}

// open opens the files, once. They are looked for in many places, while no cell waits for it if it is called before the first.
func (u *consumptions) open() { u.once.Do(func() { u.counters = u.s.cgroup.counters() }) }

// exactCPU is the processor time of a process, which /proc counts in hundredths of a second (clock_getcpuclockid(3)).
func exactCPU(p process) time.Duration {
	const scheduler = 2 // CPUCLOCK_SCHED
	var at unix.Timespec
	if unix.ClockGettime(int32(^p.pid<<3|scheduler), &at) != nil {
		return p.cpu
	}
	return time.Duration(at.Nano())
}
