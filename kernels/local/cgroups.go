//go:build linux

package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// cgroups makes the kernels' groups, in the first way that works on this host:
//
//   - root has folders of its own at the top of each tree, v1 or v2. There they outlive the server's own service.
//   - Where the server's v2 group or the one above was delegated to it, they are made there.
//   - Else the user's systemd makes them (see scope.go).
//
// A controller that cannot be had by any of them is missing from bounds. The zero value makes no groups.
type cgroups struct {
	parents []groupDir
	scope   *scope
	prefix  string
	log     *slog.Logger
}

// findCgroups tries what this host offers. Groups are named after the state folder and the kernel's id.
func findCgroups(ctx context.Context, stateDir string, log *slog.Logger) cgroups {
	sum := sha256.Sum256([]byte(stateDir))
	c := cgroups{prefix: hex.EncodeToString(sum[:4]), log: log}
	trees := readTrees()
	for _, t := range trees {
		for _, place := range places(t) {
			if p := c.claim(ctx, t, place); len(p.Controllers) > 0 {
				c.parents = append(c.parents, p)
				break
			}
		}
	}
	if i := slices.IndexFunc(trees, func(t tree) bool { return t.version == 2 }); i >= 0 && os.Geteuid() != 0 && c.by(memory) == "" {
		if s, err := probeScope(ctx, trees[i]); err != nil {
			log.Debug("no cgroups from systemd", "error", err)
		} else {
			c.scope, c.parents = s, nil
		}
	}
	return c
}

func readTrees() []tree {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	defer f.Close()
	return parseMountinfo(f)
}

// places returns the folders of a tree in which groups could be made, best first.
func places(t tree) []string {
	f, err := os.Open("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	defer f.Close()
	own := t.dir(ownPath(f, t))
	var list []string
	if os.Geteuid() == 0 {
		list = append(list, t.mount)
	}
	if t.version == 2 && own != t.mount {
		list = append(list, filepath.Dir(own))
	}
	if t.version == 2 {
		list = append(list, own)
	}
	return slices.Compact(list)
}

// claim makes the parent of the groups in a place and tries what it can bound. The result names the controllers that work
// there and were not claimed before.
func (c *cgroups) claim(ctx context.Context, t tree, place string) groupDir {
	p := groupDir{Path: filepath.Join(place, groupParent), Version: t.version, Controllers: t.controllers}
	if err := os.Mkdir(p.Path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return groupDir{}
	}
	if t.version == 2 {
		enable(place)
		enable(p.Path)
		b, _ := os.ReadFile(filepath.Join(p.Path, "cgroup.subtree_control"))
		p.Controllers = ours(strings.Fields(string(b)))
	}
	p.Controllers = slices.DeleteFunc(slices.Clone(p.Controllers), func(name string) bool {
		return c.by(name) != "" || !c.works(ctx, p, name)
	})
	if len(p.Controllers) == 0 {
		_ = unix.Rmdir(p.Path) // fails when another installation has groups there
	}
	return p
}

// enable hands the controllers of a v2 group on to the groups in it. Where the server itself is in the way, because a
// group has either processes or controllers to hand on, it moves into a group below; others are not moved.
func enable(dir string) {
	for _, name := range controllers {
		control := filepath.Join(dir, "cgroup.subtree_control")
		err := writeFile(control, "+"+name)
		if errors.Is(err, unix.EBUSY) && stepDown(dir) == nil {
			_ = writeFile(control, "+"+name)
		}
	}
}

func stepDown(dir string) error {
	below := filepath.Join(dir, groupParent+".server")
	if err := os.Mkdir(below, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	b, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	self := strconv.Itoa(os.Getpid())
	if err != nil || strings.TrimSpace(string(b)) != self {
		_ = unix.Rmdir(below)
		return errors.Join(err, errBusy)
	}
	return writeFile(filepath.Join(below, "cgroup.procs"), self)
}

// works tries a controller on a group made for it.
func (c *cgroups) works(ctx context.Context, parent groupDir, controller string) bool {
	parent.Controllers = []string{controller}
	probe := cgroups{parents: []groupDir{parent}, prefix: c.prefix}
	g, err := probe.make("probe-"+strconv.Itoa(os.Getpid()), groupLimits{memory: 64 << 20, pids: 64, cpus: 1})
	if err != nil {
		c.log.Debug("a cgroup controller does not work", "controller", controller, "in", parent.Path, "error", err)
	}
	return errors.Join(err, g.remove(ctx)) == nil
}

// by says by what a controller's limit is held, for people; empty: by nothing.
func (c *cgroups) by(controller string) string {
	if c.scope != nil && slices.Contains(c.scope.controllers, controller) {
		return "cgroup v2, systemd user scope"
	}
	for _, p := range c.parents {
		if slices.Contains(p.Controllers, controller) {
			return "cgroup v" + strconv.Itoa(p.Version)
		}
	}
	return ""
}

// group names the folders of a kernel's group, whether or not it exists.
func (c *cgroups) group(id string) group {
	if c.scope != nil {
		return group{Dirs: []groupDir{c.scope.dir(c.prefix, id)}}
	}
	var g group
	for _, p := range c.parents {
		p.Path = filepath.Join(p.Path, c.prefix+"-"+id)
		g.Dirs = append(g.Dirs, p)
	}
	return g
}

// make makes a kernel's group and sets its limits, each read back. A group of systemd's is made only when the kernel is
// started; its limits must be verified then. Whatever make returns must be removed, also after an error.
func (c *cgroups) make(id string, l groupLimits) (group, error) {
	g := c.group(id)
	if c.scope != nil {
		return g, nil
	}
	var ignored error
	for _, d := range g.Dirs {
		if err := os.Mkdir(d.Path, 0o755); err != nil {
			return g, err
		}
		err := d.limit(l)
		if err != nil && !errors.Is(err, errIgnored) {
			return g, err
		}
		ignored = errors.Join(ignored, err)
	}
	return g, ignored
}

// limit sets what the folder's controllers are to hold. It goes on after a limit that the host ignores.
func (d groupDir) limit(l groupLimits) error {
	var ignored error
	for _, name := range d.Controllers {
		for _, s := range settings(d.Version, name, l) {
			err := s.apply(d.Path)
			if err != nil && !errors.Is(err, errIgnored) {
				return err
			}
			ignored = errors.Join(ignored, err)
		}
	}
	return ignored
}

// countsSwap tells whether a memory limit holds for swap too. Where there is no swap it always does.
func (c *cgroups) countsSwap() bool {
	if b, err := os.ReadFile("/proc/swaps"); err == nil && strings.Count(strings.TrimSpace(string(b)), "\n") == 0 {
		return true
	}
	for _, p := range c.parents {
		if !slices.Contains(p.Controllers, memory) {
			continue
		}
		file := "memory.memsw.limit_in_bytes"
		if p.Version == 2 {
			file = "memory.swap.max"
		}
		_, err := os.Stat(filepath.Join(p.Path, file))
		return err == nil
	}
	return c.scope != nil
}

// wrap makes a command start in the group of a kernel where systemd makes it.
func (c *cgroups) wrap(cmd *exec.Cmd, id string, l groupLimits) {
	if c.scope == nil {
		return
	}
	argv := c.scope.argv(c.prefix+"-"+id, l)
	cmd.Path, cmd.Args = argv[0], append(append(argv, cmd.Path), cmd.Args[1:]...)
	cmd.Env = append(cmd.Env, c.scope.env...)
}
