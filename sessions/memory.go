package sessions

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
)

// hostMemory says how this host is off for memory. What it cannot read, as on other systems than Linux, bounds nothing.
type hostMemory struct {
	proc fs.FS
	// cgroups is where groups are mounted; nil where kernels are not in a group below it, because an engine runs them. In a
	// container, it is the container's own group, whose limit holds for all below.
	cgroups fs.FS

	mu      sync.Mutex
	pressed bool
}

func newHostMemory(engine bool) *hostMemory {
	h := &hostMemory{proc: os.DirFS("/proc")}
	if !engine {
		h.cgroups = os.DirFS("/sys/fs/cgroup")
	}
	return h
}

// room returns how much memory there is, and how much of it can be had without swapping, in bytes; -1 for what is not known.
func (h *hostMemory) room() (total, free int64) {
	total, free = -1, -1
	meminfo := lines(h.proc, "meminfo")
	if n, ok := field(meminfo, "MemTotal:"); ok {
		total = n << 10
	}
	if n, ok := field(meminfo, "MemAvailable:"); ok {
		free = n << 10
	}
	for _, g := range []struct{ limit, used, stat, cache string }{
		{"memory.max", "memory.current", "memory.stat", "inactive_file"},
		{"memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes", "memory/memory.stat", "total_inactive_file"}, // v1
	} {
		limit, limited := number(h.cgroups, g.limit)
		if !limited { // then what is used, for which the kernel of the host adds up all groups, says nothing
			continue
		}
		used, known := number(h.cgroups, g.used)
		cache, _ := field(lines(h.cgroups, g.stat), g.cache) // files that can be dropped
		if left := max(limit-used+cache, 0); known && (free < 0 || left < free) {
			total, free = limit, left
		}
	}
	return total, free
}

// leastMemory is what must be free, in bytes, for a kernel that nobody waits for.
const leastMemory = 300 << 20

// short tells whether little memory is left: less than that, or less than a tenth; or whether programs wait for it.
func (h *hostMemory) short() bool {
	total, free := h.room()
	_, stalled := h.stalled()
	return stalled || free >= 0 && free < max(total/10, leastMemory)
}

// Programs are short of memory from where they all stand still for it for so much of ten seconds, in per cent, until it was
// little for a minute: what stands between has no say, so that the answer does not change with every moment.
const (
	pressure = 10
	relief   = 5
)

// stalled tells whether programs are short of memory, by the host's account (PSI), and for how much of the last ten seconds
// they stood still, in per cent.
func (h *hostMemory) stalled() (percent float64, is bool) {
	percent, minute := worst(h.proc, "pressure/memory")
	ten, sixty := worst(h.cgroups, "memory.pressure")
	percent, minute = max(percent, ten), max(minute, sixty)
	h.mu.Lock()
	defer h.mu.Unlock()
	if percent >= pressure {
		h.pressed = true
	} else if percent < relief && minute < relief {
		h.pressed = false
	}
	return percent, h.pressed
}

// worst reads from a pressure file (Linux, Documentation/accounting/psi.rst) for which part of ten seconds and of a minute
// all programs stood still; 0 where there is none.
func worst(dir fs.FS, name string) (ten, sixty float64) {
	for _, line := range lines(dir, name) {
		if _, err := fmt.Sscanf(line, "full avg10=%f avg60=%f", &ten, &sixty); err == nil {
			return ten, sixty
		}
	}
	return 0, 0
}

// number reads a file that holds one; a group without a limit has none.
func number(dir fs.FS, name string) (n int64, ok bool) {
	for _, line := range lines(dir, name) {
		n, err := strconv.ParseInt(line, 10, 64)
		return n, err == nil && n < math.MaxInt64/2
	}
	return 0, false
}

// field finds the number behind a name.
func field(lines []string, key string) (n int64, ok bool) {
	for _, line := range lines {
		if rest, found := strings.CutPrefix(line, key); found {
			_, err := fmt.Sscan(rest, &n)
			return n, err == nil
		}
	}
	return 0, false
}

func lines(dir fs.FS, name string) []string {
	if dir == nil {
		return nil
	}
	data, err := fs.ReadFile(dir, name)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}
