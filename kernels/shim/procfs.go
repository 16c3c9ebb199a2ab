//go:build linux

package shim

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTicks is USER_HZ, which is 100 wherever Go runs on Linux.
const clockTicks = 100

// process is what /proc/PID/stat says (proc_pid_stat(5)).
type process struct {
	pid, ppid int
	name      string
	state     byte
	start     uint64        // in ticks since boot; tells apart processes that had the same pid
	cpu       time.Duration // its own
	waited    time.Duration // that of children that it has waited for
	resident  int64         // bytes
}

// dead tells whether only the exit status is left of it.
func (p process) dead() bool { return p.state == 'Z' || p.state == 'X' }

// errStat is returned for a stat file that is not as expected.
var errStat = errors.New("shim: unreadable /proc/PID/stat")

// readProcess reads one process's stat.
func readProcess(pid int) (process, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return process{}, err
	}
	return parseStat(text)
}

// parseStat parses the content of /proc/PID/stat. The name in parentheses may hold anything.
func parseStat(text []byte) (process, error) {
	open, end := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	if open < 1 || end < open {
		return process{}, errStat
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:open])))
	f := strings.Fields(string(text[end+1:]))
	const state, ppid, utime, stime, cutime, cstime, starttime, rss = 0, 1, 11, 12, 13, 14, 19, 21
	if err != nil || len(f) <= rss {
		return process{}, errStat
	}
	var failed error
	number := func(i int) int64 {
		n, err := strconv.ParseInt(f[i], 10, 64)
		if err != nil {
			failed = errStat
		}
		return n
	}
	ticks := func(i int) time.Duration { return time.Duration(number(i)) * (time.Second / clockTicks) }
	p := process{
		pid: pid, ppid: int(number(ppid)), name: string(text[open+1 : end]), state: f[state][0], start: uint64(number(starttime)),
		cpu: ticks(utime) + ticks(stime), waited: ticks(cutime) + ticks(cstime),
		resident: number(rss) * int64(os.Getpagesize()),
	}
	return p, failed
}

// starved returns how long a process's main thread has waited for a processor; 0 if that is not known.
func starved(pid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	f := strings.Fields(string(text)) // on a processor, waiting for one, how often it got one
	if err != nil || len(f) != 3 {
		return 0
	}
	waited, _ := strconv.ParseInt(f[1], 10, 64)
	return time.Duration(waited)
}

// processes returns everything in this pid namespace that /proc shows. What ends meanwhile is left out.
func processes() ([]process, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var ps []process
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if p, err := readProcess(pid); err == nil {
			ps = append(ps, p)
		}
	}
	return ps, nil
}

// maxFamily bounds how many descendants are looked at.
const maxFamily = 1000

// descendants appends the processes that descend from pid, as the kernel lists them for each thread that started some. It
// is false where that is not to be had (proc(5), "children").
func descendants(pid int, found []process) (all []process, ok bool) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return found, true // it has ended
	}
	for _, thread := range threads {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		if errors.Is(err, os.ErrNotExist) {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/task/%s", pid, thread.Name())); err == nil {
				return nil, false
			}
		}
		for _, name := range strings.Fields(string(text)) {
			child, _ := strconv.Atoi(name)
			p, err := readProcess(child)
			if err != nil || len(found) >= maxFamily {
				continue
			}
			if found, ok = descendants(child, append(found, p)); !ok {
				return nil, false
			}
		}
	}
	return found, true
}

// below returns the processes that descend from root.
func below(root int, ps []process) []process {
	children := make(map[int][]process)
	for _, p := range ps {
		children[p.ppid] = append(children[p.ppid], p)
	}
	var found []process
	seen := map[int]bool{root: true}
	for queue := []int{root}; len(queue) > 0; queue = queue[1:] {
		for _, p := range children[queue[0]] {
			if !seen[p.pid] { // reading takes a while, in which pids can be used again
				seen[p.pid] = true
				found, queue = append(found, p), append(queue, p.pid)
			}
		}
	}
	return found
}
