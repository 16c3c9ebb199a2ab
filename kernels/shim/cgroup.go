//go:build linux

package shim

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// cgroup reads what the kernel's control group counts: version 2 from one folder, version 1 from a folder for each
// controller (Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/). Where there is none, every read says so.
type cgroup struct {
	dirs []string
	host bool // dirs may be those of the whole machine
}

// unlimited is from where on a limit is none: version 1 has a number for it, near 2^63.
const unlimited = 1 << 60

// newCgroup looks in dir, or where containers have their own groups if dir is empty.
func newCgroup(dir string) *cgroup {
	if dir != "" {
		return &cgroup{dirs: []string{dir}}
	}
	const root = "/sys/fs/cgroup"
	c := &cgroup{dirs: []string{root}, host: true}
	for _, controller := range []string{"memory", "cpuacct"} {
		c.dirs = append(c.dirs, filepath.Join(root, controller))
	}
	return c
}

// read returns the first of the named files that exists.
func (c *cgroup) read(names ...string) ([]byte, bool) {
	for _, name := range names {
		for _, dir := range c.dirs {
			if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
				return bytes.TrimSpace(text), true
			}
		}
	}
	return nil, false
}

// number reads a file that holds a number. "max" is no number.
func (c *cgroup) number(names ...string) (int64, bool) {
	text, ok := c.read(names...)
	if !ok {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	return n, err == nil
}

// field reads a number from a file of lines "key number".
func (c *cgroup) field(key string, names ...string) (int64, bool) {
	text, _ := c.read(names...)
	for line := range bytes.Lines(text) {
		if f := bytes.Fields(line); len(f) == 2 && string(f[0]) == key {
			n, err := strconv.ParseInt(string(f[1]), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// limit returns the memory limit in bytes, 0 if there is none.
func (c *cgroup) limit() int64 {
	n, ok := c.number("memory.max", "memory.limit_in_bytes")
	if !ok || n >= unlimited {
		return 0
	}
	return n
}

// own tells whether the files are about the sandbox, not about the machine: without a limit, the folder that everybody
// sees may be either.
func (c *cgroup) own() bool { return !c.host || c.limit() > 0 }

// oomKills counts what the OOM killer has killed.
func (c *cgroup) oomKills() int64 {
	n, _ := c.field("oom_kill", "memory.events", "memory.oom_control")
	return n
}
