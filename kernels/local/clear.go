//go:build linux

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// clear kills what is left of a kernel, waits for it, and takes away every trace. It may be called again, and for a
// launch that came half the way. The folder goes last: as long as it is there, the next List tries again.
func (p *Provisioner) clear(e *entry, st state) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	if err := p.killAll(ctx, st); err != nil {
		return err
	}
	group := p.cgroups.group(e.id)
	group.Dirs = append(group.Dirs, st.Group.Dirs...)
	group.kill()
	if err := group.remove(ctx); err != nil {
		return err
	}
	for _, path := range []string{p.socketPath(e.id), p.bareDir(e.id)} {
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return e.remove()
}

// killAll kills a kernel's processes and waits until they have ended.
func (p *Provisioner) killAll(ctx context.Context, st state) error {
	if boot, err := bootID(); err != nil || st.Boot != boot || st.Main.PID == 0 {
		return err // of another boot, or never started
	}
	all, err := openAll(st)
	if err != nil {
		return err
	}
	defer closeAll(all)
	kill(all, st)
	for _, proc := range all {
		if err := proc.waitFor(ctx); err != nil {
			return err
		}
		proc.reap()
	}
	return nil
}

// kill kills a kernel by its processes. The end of the sandbox's first is the end of all in it; bubblewrap itself is let
// live to tell of it, unless it has not got that far.
func kill(all []*process, st state) {
	for _, proc := range all {
		switch {
		case proc.identity != st.Main:
			_ = proc.signal(unix.SIGKILL)
		case !st.Sandboxed:
			killTree(proc)
			proc.killGroup()
		case len(all) == 1:
			killTree(proc)
			proc.killGroup()
		}
	}
}

// waitFor waits until the process has ended or ctx has.
func (p *process) waitFor(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = p.close() })
	defer stop()
	if err := p.wait(); err != nil {
		return fmt.Errorf("process %d does not end: %w", p.PID, errors.Join(ctx.Err(), err))
	}
	return nil
}

// killTree kills a process's descendants, round by round because they may fork. A shim adopts the orphans among them, so
// that as long as it lives all are found.
func killTree(root *process) {
	for range 64 {
		list := descendants(root.PID)
		if len(list) == 0 {
			return
		}
		for _, pid := range list {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// descendants returns the living processes below a process.
func descendants(root int) []int {
	all := children()
	var found []int
	for next := []int{root}; len(next) > 0; next = next[1:] {
		found = append(found, all[next[0]]...)
		next = append(next, all[next[0]]...)
	}
	return found
}

// children returns the host's living processes by their parents.
func children() map[int][]int {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int][]int{}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && !st.zombie {
			all[st.parent] = append(all[st.parent], pid)
		}
	}
	return all
}
