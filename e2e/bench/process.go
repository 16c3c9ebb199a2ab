package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// usage is what processes have used of the processors, and how often they woke up for it.
type usage struct {
	cpu   time.Duration
	wakes int64
}

func (u usage) minus(v usage) usage { return usage{u.cpu - v.cpu, u.wakes - v.wakes} }

// usageOf adds up what some processes have used until now. The scheduler counts in nanoseconds for each thread.
func usageOf(pids []int) (sum usage) {
	for _, pid := range pids {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
		for _, task := range tasks {
			sum.cpu += time.Duration(numberIn(task+"/schedstat", ""))
			sum.wakes += numberIn(task+"/status", "voluntary_ctxt_switches:")
		}
	}
	return sum
}

// numberIn returns the first number behind a label in a file of /proc; 0 when the process is gone.
func numberIn(path, label string) int64 {
	f, err := os.Open(path)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), label); ok {
			if fields := strings.Fields(rest); len(fields) > 0 {
				n, _ := strconv.ParseInt(fields[0], 10, 64)
				return n
			}
		}
	}
	return 0
}

// family is a server's processes.
type family struct{ shims, kernels, others []int }

// familyOf finds what a server has started, by /proc, and what they have.
func familyOf(server int) (f family) {
	parents := map[int]int{}
	stats, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, path := range stats {
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parents[pid] = int(numberIn(path, "PPid:"))
	}
	for pid := range parents {
		above := parents[pid]
		for above > 1 && above != server {
			above = parents[above]
		}
		if above != server {
			continue
		}
		switch name := commOf(pid); {
		case strings.HasPrefix(name, "cellblock-shim"):
			f.shims = append(f.shims, pid)
		case strings.HasPrefix(name, "python"):
			f.kernels = append(f.kernels, pid)
		default:
			f.others = append(f.others, pid)
		}
	}
	return f
}

func commOf(pid int) string {
	name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	return strings.TrimSpace(string(name))
}
