//go:build linux

package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one of a kernel, its shim's, or of what launched it.
type process struct {
	pid  int
	shim bool // the first of its container or sandbox
}

// processes are those of the installation's kernels: nobody else has their user.
func (w *world) processes() (found []process) {
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range folders {
		info, err := os.Stat(folder)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != w.uid {
			continue
		}
		status, _ := os.ReadFile(filepath.Join(folder, "status"))
		_, pids, _ := strings.Cut(string(status), "\nNSpid:")
		pids, _, _ = strings.Cut(pids, "\n")
		if strings.Contains(string(status), "\nState:\tZ") {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(folder))
		ids := strings.Fields(pids)
		found = append(found, process{pid, len(ids) > 1 && ids[len(ids)-1] == "1"})
	}
	return found
}

// of are the processes of a session's kernel: those that see its files. The shim is the first.
func (w *world) of(s *session) (found []process) {
	for _, p := range w.processes() {
		for name, certain := range s.files {
			if !certain {
				continue
			}
			for _, folder := range []string{"cwd", "root/workspace"} {
				if _, err := os.Lstat(fmt.Sprintf("/proc/%d/%s/%s", p.pid, folder, name)); err == nil {
					found = append(found, p)
					break
				}
			}
			break
		}
	}
	slices.SortFunc(found, func(a, b process) int { return a.pid - b.pid })
	return found
}

// killKernels kills processes of the kernels that are to die: of one the first in its sandbox or container, of others the
// kernel.
func killKernels(w *world, deeds []deed) {
	shim := true
	for i, d := range deeds {
		if d.fate.dies == "" {
			continue
		}
		victims := slices.DeleteFunc(w.of(w.sessions[i]), func(p process) bool { return p.shim != shim })
		if len(victims) == 0 {
			w.t.Errorf("%s has no kernel to kill", w.sessions[i])
			continue
		}
		if err := unix.Kill(victims[0].pid, unix.SIGKILL); err != nil {
			w.t.Error(err)
		}
		shim = false
	}
}

// settling is how long what has ended may take to go.
const settling = 15 * time.Second

// leftOver waits until there is as much as so many sessions with a kernel need, and says what else there is.
func (w *world) leftOver(ctx context.Context, least, most int) error {
	ctx, cancel := context.WithTimeout(ctx, settling)
	defer cancel()
	for {
		err := w.count(least, most)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(50 * time.Millisecond): // nothing can tell a test
		}
	}
}

// count looks at everything that a kernel has outside of the server.
func (w *world) count(least, most int) error {
	shims := 0
	for _, p := range w.processes() {
		if p.shim {
			shims++
		}
	}
	counts := map[string]int{"shims": shims}
	for name, pattern := range map[string]string{
		"workspaces": "workspaces/????????????????",
		"labels":     "workspaces/*.json",
	} {
		found, _ := filepath.Glob(filepath.Join(w.install.DataDir, pattern))
		counts[name] = len(found)
	}
	if w.engine == nil {
		kernels, _ := filepath.Glob(filepath.Join(w.install.DataDir, "local/*/state"))
		counts["folders of kernels"] = len(kernels)
		for _, k := range kernels {
			w.folders[filepath.Base(filepath.Dir(k))] = true
		}
	} else {
		containers, err := w.engine.containers()
		if err != nil {
			return err
		}
		counts["containers"] = len(containers)
	}
	var wrong error
	for name, n := range counts {
		if n < least || n > most {
			wrong = errors.Join(wrong, fmt.Errorf("%d %s, not %d to %d", n, name, least, most))
		}
	}
	return wrong
}

// nothingLeft looks for anything of the installation after its last server has ended.
func (w *world) nothingLeft(ctx context.Context) error {
	var left []string
	for _, pattern := range []string{
		filepath.Join(w.install.DataDir, "workspaces/*"), filepath.Join(w.install.DataDir, "local/*"), filepath.Join(w.install.RunDir, "*/*"),
	} {
		found, _ := filepath.Glob(pattern)
		left = append(left, found...)
	}
	for kernel := range w.folders {
		found, _ := filepath.Glob("/sys/fs/cgroup/*/cellblock/*-" + kernel)
		left = append(left, found...)
		found, _ = filepath.Glob("/sys/fs/cgroup/cellblock/*-" + kernel)
		left = append(left, found...)
	}
	if len(left) > 0 {
		return fmt.Errorf("left are %s", strings.Join(left, ", "))
	}
	return w.leftOver(ctx, 0, 0)
}
