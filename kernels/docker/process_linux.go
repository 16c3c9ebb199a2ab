package docker

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"golang.org/x/sys/unix"
)

const cgroupRoot = "/sys/fs/cgroup"

// readProcess reads what binds the container's first process, if pid really is that here: its cgroup carries the
// container's id.
func readProcess(pid int, containerID string) processState {
	var s processState
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	groups, err := os.ReadFile(filepath.Join(dir, "cgroup"))
	if pid <= 0 || err != nil || !strings.Contains(string(groups), containerID) {
		return s
	}
	status, _ := os.ReadFile(filepath.Join(dir, "status"))
	for line := range strings.Lines(string(status)) {
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); name {
		case "CapEff":
			s.capEff = value
		case "Seccomp":
			s.seccomp = value
		case "NoNewPrivs":
			s.noNewPrivs = value
		}
	}
	s.readCgroups(string(groups), cgroupRoot)
	return s
}

// readCgroups reads the limits of the groups that the lines of a /proc/PID/cgroup name (cgroups(7)).
func (s *processState) readCgroups(lines, root string) {
	pure := strings.Count(lines, "\n") == 1 // the unified hierarchy alone; else it holds no controllers of ours
	for line := range strings.Lines(lines) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 || strings.Contains(fields[2], "..") {
			continue // seen from another cgroup namespace
		}
		for _, controller := range strings.Split(fields[1], ",") {
			dir := filepath.Join(root, controller, fields[2])
			switch controller {
			case "":
				if pure {
					s.memory = orUnlimited(limit(filepath.Join(dir, "memory.max")))
					s.pids = orUnlimited(limit(filepath.Join(dir, "pids.max")))
					s.cpus = orUnlimited(cpuMax(filepath.Join(dir, "cpu.max")))
				}
			case "memory":
				s.memory = limit(filepath.Join(dir, "memory.limit_in_bytes"))
			case "pids":
				s.pids = limit(filepath.Join(dir, "pids.max"))
			case "cpu":
				if period := limit(filepath.Join(dir, "cpu.cfs_period_us")); period > 0 {
					s.cpus = ratio(limit(filepath.Join(dir, "cpu.cfs_quota_us")), period)
				}
			}
		}
	}
}

// orUnlimited reads a missing file of the unified hierarchy as no limit: the controller is not delegated to the group.
func orUnlimited[T int64 | float64](found T) T {
	if found == 0 {
		return -1
	}
	return found
}

// limit reads a file with one number: 0 if it is not there, -1 for "max", for a negative one, and for one near the
// largest, which is how cgroup v1 writes "no limit".
func limit(path string) int64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 || n > 1<<60 {
		return -1
	}
	return n
}

// cpuMax reads "QUOTA PERIOD", in cores.
func cpuMax(path string) float64 {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0
	}
	quota, period, _ := strings.Cut(strings.TrimSpace(string(b)), " ")
	q, err1 := strconv.ParseInt(quota, 10, 64)
	p, err2 := strconv.ParseInt(period, 10, 64)
	if err1 != nil || err2 != nil {
		return -1
	}
	return ratio(q, p)
}

func ratio(quota, period int64) float64 {
	if quota <= 0 || period <= 0 {
		return -1
	}
	return float64(quota) / float64(period)
}

// hostSwap reports whether this host has swap at all.
func hostSwap() bool {
	var info unix.Sysinfo_t
	return unix.Sysinfo(&info) != nil || info.Totalswap > 0
}

// podmanLimit is what Podman would raise a container's nofile and nproc to.
const podmanLimit = 1 << 20

// ownUlimits are our own hard limits on files and processes. Podman raises both for every container, and fails where the
// host does not let it. It lowers its own limit on processes to the number of pids that there are.
func ownUlimits() []*units.Ulimit {
	pids := limit("/proc/sys/kernel/pid_max")
	var limits []*units.Ulimit
	add := func(name string, resource int, most int64) {
		var l unix.Rlimit
		if unix.Getrlimit(resource, &l) == nil && l.Max < podmanLimit {
			n := min(int64(l.Max), most)
			limits = append(limits, &units.Ulimit{Name: name, Soft: n, Hard: n})
		}
	}
	add("nofile", unix.RLIMIT_NOFILE, podmanLimit)
	if pids > 0 {
		add("nproc", unix.RLIMIT_NPROC, pids)
	}
	return limits
}
