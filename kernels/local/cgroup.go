//go:build linux

package local

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// The controllers that bound a kernel; cpuacct only counts (cgroup v1 counts apart from bounding).
const (
	memory  = "memory"
	cpu     = "cpu"
	pids    = "pids"
	cpuacct = "cpuacct"
)

var controllers = []string{memory, cpu, cpuacct, pids}

const cpuPeriod = 100_000 // microseconds, the kernel's own default

// groupParent is the folder, in each tree, that holds the kernels' groups.
const groupParent = "cellblock"

// tree is one mounted cgroup hierarchy with those of our controllers that it has.
type tree struct {
	version     int
	mount       string // where its files are
	root        string // the part of the hierarchy that is mounted there
	controllers []string
}

// parseMountinfo returns the cgroup trees among a process's mounts (proc_pid_mountinfo(5)). What controllers a v2 tree has
// is for its cgroup.controllers to say.
func parseMountinfo(r io.Reader) []tree {
	var trees []tree
	for lines := bufio.NewScanner(r); lines.Scan(); {
		before, after, ok := strings.Cut(lines.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 6 || len(right) < 3 {
			continue
		}
		t := tree{mount: unescape(left[4]), root: unescape(left[3])}
		switch right[0] {
		case "cgroup2":
			t.version = 2
		case "cgroup":
			t.version, t.controllers = 1, ours(strings.Split(right[2], ","))
		default:
			continue
		}
		if t.version == 2 || len(t.controllers) > 0 {
			trees = append(trees, t)
		}
	}
	return trees
}

// unescape undoes mountinfo's octal escapes (\040 is a space).
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if c, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(c))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// ours keeps the controllers that we use.
func ours(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !slices.Contains(controllers, n) })
}

// ownPath returns a process's place in a hierarchy (/proc/PID/cgroup, cgroups(7)).
func ownPath(r io.Reader, t tree) string {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		parts := strings.SplitN(lines.Text(), ":", 3)
		if len(parts) != 3 {
			continue
		}
		v2 := t.version == 2 && parts[0] == "0" && parts[1] == ""
		v1 := t.version == 1 && len(t.controllers) > 0 && slices.Contains(strings.Split(parts[1], ","), t.controllers[0])
		if v1 || v2 {
			return parts[2]
		}
	}
	return "/"
}

// dir returns where a path of the hierarchy is mounted.
func (t tree) dir(path string) string {
	if rel, err := filepath.Rel(t.root, path); err == nil && filepath.IsLocal(rel) {
		return filepath.Join(t.mount, rel)
	}
	return filepath.Clean(t.mount)
}

// setting is one file of a group, what to write to it, and whether the host reads it back as meant.
type setting struct {
	file, value string
	holds       func(got string) bool
	optional    bool // the file may be missing
}

// settings returns what bounds a group by a controller, in the order of writing.
func settings(version int, controller string, l groupLimits) []setting {
	switch {
	case controller == memory && l.memory > 0 && version == 2:
		return []setting{bytesSetting("memory.max", l.memory), {file: "memory.swap.max", value: "0", holds: equals("0"), optional: true}}
	case controller == memory && l.memory > 0:
		swap := bytesSetting("memory.memsw.limit_in_bytes", l.memory)
		swap.optional = true
		return []setting{bytesSetting("memory.limit_in_bytes", l.memory), swap}
	case controller == cpu && l.cpus > 0 && version == 2:
		value := fmt.Sprintf("%d %d", l.quota(), cpuPeriod)
		return []setting{{file: "cpu.max", value: value, holds: equals(value)}}
	case controller == cpu && l.cpus > 0:
		quota, period := strconv.Itoa(l.quota()), strconv.Itoa(cpuPeriod)
		return []setting{
			{file: "cpu.cfs_period_us", value: period, holds: equals(period)},
			{file: "cpu.cfs_quota_us", value: quota, holds: equals(quota)},
		}
	case controller == pids && l.pids > 0:
		value := strconv.FormatInt(l.pids, 10)
		return []setting{{file: "pids.max", value: value, holds: equals(value)}}
	}
	return nil
}

// bytesSetting is a size, which the host rounds down to whole pages.
func bytesSetting(file string, want int64) setting {
	holds := func(got string) bool {
		n, err := strconv.ParseInt(got, 10, 64)
		return err == nil && n <= want && want-n < int64(os.Getpagesize())
	}
	return setting{file: file, value: strconv.FormatInt(want, 10), holds: holds}
}

func equals(want string) func(string) bool { return func(got string) bool { return got == want } }

// groupLimits is the part of a kernel's limits that cgroups hold.
type groupLimits struct {
	memory, pids int64
	cpus         float64
}

func (l groupLimits) quota() int { return max(1000, int(l.cpus*cpuPeriod)) }

// errIgnored is a limit that the host took and then does not hold.
var errIgnored = errors.New("the host does not hold the limit")

// apply writes a setting and reads it back.
func (s setting) apply(dir string) error {
	path := filepath.Join(dir, s.file)
	err := writeFile(path, s.value)
	if errors.Is(err, os.ErrNotExist) && s.optional {
		return nil
	}
	if err != nil {
		return err
	}
	return s.verify(dir)
}

// verify reads a setting back.
func (s setting) verify(dir string) error {
	got, err := os.ReadFile(filepath.Join(dir, s.file))
	if errors.Is(err, os.ErrNotExist) && s.optional {
		return nil
	}
	if err != nil {
		return err
	}
	if !s.holds(strings.TrimSpace(string(got))) {
		return fmt.Errorf("%w: %s is %.40q, not %s", errIgnored, s.file, got, s.value)
	}
	return nil
}

// writeFile writes to a file of a cgroup, which must exist.
func writeFile(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}
