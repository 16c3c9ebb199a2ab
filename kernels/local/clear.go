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
	if err := kill(ctx, all, st); err != nil {
		return err
	}
	for _, proc := range all {
		if err := proc.waitFor(ctx); err != nil {
			return err
		}
		proc.reap()
	}
	return nil
}

// kill kills a kernel by its processes. The end of the sandbox's first is the end of all in it; bubblewrap itself is let
// live to tell of it, unless it has not got that far. Without a sandbox, what the shim has below it ends first.
func kill(ctx context.Context, all []*process, st state) error {
	for _, proc := range all {
		if proc.identity != st.Main {
			if err := proc.signal(unix.SIGKILL); err != nil {
				return err
			}
			continue
		}
		if st.Sandboxed && len(all) > 1 {
			continue
		}
		if err := killBelow(ctx, proc); err != nil {
			return err
		}
		proc.killGroup()
	}
	return nil
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

// killBelow kills a process's descendants and waits for them, round by round because they may fork. A shim adopts the
// orphans among them, so that as long as it lives all are found.
func killBelow(ctx context.Context, root *process) error {
	for {
		list := descendants(root.PID)
		if len(list) == 0 || root.ended() {
			return nil
		}
		for _, id := range list {
			if err := killOne(ctx, id); err != nil {
				return err
			}
		}
	}
}

// killOne kills a process and waits for its end.
func killOne(ctx context.Context, id identity) error {
	proc, err := openProcess(id)
	if errors.Is(err, errEnded) {
		return nil
	}
	if err != nil {
		return err
	}
	defer proc.close()
	if err := proc.signal(unix.SIGKILL); err != nil {
		return err
	}
	return proc.waitFor(ctx)
}

// descendants returns the living processes below a process, those nearest to it first.
func descendants(root int) []identity {
	all := children()
	var found []identity
	for next := []int{root}; len(next) > 0; next = next[1:] {
		for _, id := range all[next[0]] {
			found = append(found, id)
			next = append(next, id.PID)
		}
	}
	return found
}

// children returns the host's living processes by their parents.
func children() map[int][]identity {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	all := map[int][]identity{}
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil && !st.zombie {
			all[st.parent] = append(all[st.parent], identity{PID: pid, Start: st.start})
		}
	}
	return all
}
