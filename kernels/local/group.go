//go:build linux

package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// group is the cgroups of one kernel: a folder in each tree.
type group struct {
	Dirs []groupDir `json:"dirs,omitempty"`
}

// groupDir is a group's folder in one tree.
type groupDir struct {
	Path        string   `json:"path"`
	Version     int      `json:"version"`
	Controllers []string `json:"controllers"`
}

// memory returns the folder that bounds memory, or nil.
func (g group) memory() *groupDir {
	for i, d := range g.Dirs {
		if slices.Contains(d.Controllers, memory) {
			return &g.Dirs[i]
		}
	}
	return nil
}

// binds shows the group to the shim, where programs look for their limits: one v2 folder as the root of the file system
// itself, v1 folders by controller.
func (g group) binds() []bind {
	var list []bind
	for _, d := range g.Dirs {
		if d.Version == 2 {
			return []bind{{source: d.Path, target: cgroupPath}}
		}
		for _, c := range d.Controllers {
			list = append(list, bind{source: d.Path, target: cgroupPath + "/" + c})
		}
	}
	return list
}

// add puts a process into the group. Its later children are in it from their first instruction.
func (g group) add(pid int) error {
	for _, d := range g.Dirs {
		if err := writeFile(filepath.Join(d.Path, "cgroup.procs"), strconv.Itoa(pid)); err != nil {
			return err
		}
	}
	return nil
}

// verify reads every limit back.
func (g group) verify(l groupLimits) error {
	for _, d := range g.Dirs {
		for _, c := range d.Controllers {
			for _, s := range settings(d.Version, c, l) {
				if err := s.verify(d.Path); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oomKills returns how many processes of the group were killed for memory.
func (g group) oomKills() int {
	d := g.memory()
	if d == nil {
		return 0
	}
	file := "memory.oom_control"
	if d.Version == 2 {
		file = "memory.events"
	}
	b, _ := os.ReadFile(filepath.Join(d.Path, file))
	return field(string(b), "oom_kill")
}

// field returns the number behind a name in a file of "name number" lines, or 0.
func field(text, name string) int {
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}

// pids returns the processes of the group.
func (g group) pids() []int {
	if len(g.Dirs) == 0 {
		return nil
	}
	b, _ := os.ReadFile(filepath.Join(g.Dirs[0].Path, "cgroup.procs"))
	var list []int
	for _, f := range strings.Fields(string(b)) {
		if pid, err := strconv.Atoi(f); err == nil && pid > 0 {
			list = append(list, pid)
		}
	}
	return list
}

// kill kills every process of the group. A v2 group does it in one go; else what is forked meanwhile is met in the next
// round.
func (g group) kill() {
	for _, d := range g.Dirs {
		if d.Version == 2 && writeFile(filepath.Join(d.Path, "cgroup.kill"), "1") == nil {
			return
		}
	}
	for range 64 {
		list := g.pids()
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			g.killOne(pid)
		}
	}
}

// killOne kills a process of the group, and no other that has got its pid meanwhile: what a descriptor holds and the group
// still names is the group's.
func (g group) killOne(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if slices.Contains(g.pids(), pid) {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// removeRetry is how long remove tries again: a group counts as busy for a moment after its last process has ended, and
// cgroup v1 has nothing that tells when that moment is over.
const removeRetry = 2 * time.Second

// remove takes the group away. Folders that are gone already do not count.
func (g group) remove(ctx context.Context) error {
	var all error
	for _, d := range g.Dirs {
		all = errors.Join(all, removeDir(ctx, d.Path))
	}
	return all
}

func removeDir(ctx context.Context, path string) error {
	ctx, cancel := context.WithTimeout(ctx, removeRetry)
	defer cancel()
	for wait := time.Millisecond; ; wait *= 2 {
		err := unix.Rmdir(path)
		if err == nil || errors.Is(err, unix.ENOENT) {
			return nil
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return &os.PathError{Op: "rmdir", Path: path, Err: err}
		}
	}
}
