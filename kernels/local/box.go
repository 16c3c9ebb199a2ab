//go:build linux

package local

import (
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"cellblock/kernels"
	"cellblock/kernels/seccomp"
	"cellblock/kernels/stream"
)

// sandboxed prepares bubblewrap.
func (l *launch) sandboxed() error {
	box := l.p.box(&l.stage, l.spec.Limits)
	box.workspace = l.p.source(&l.stage, l.spec.Workspace, true)
	box.shim = l.p.source(&l.stage, l.p.cfg.ShimPath, false)
	l.p.mount(&box, &l.stage, l.mounts)
	for _, b := range l.state.Group.binds() {
		b.source = l.p.source(&l.stage, b.source, true)
		box.cgroups = append(box.cgroups, b)
	}
	config, err := l.config(shimPlace{dir: workspacePath, run: ipcPath, home: homePath, cgroup: countsInside(l.state.Group)})
	if err != nil {
		return err
	}
	box.config, box.configEnv = config, stream.ConfigEnv
	if err := l.descriptors(&box); err != nil {
		return err
	}
	if l.opening, err = encode(box.args()); err != nil {
		return err
	}
	l.cmd = exec.Command(l.p.bwrap.path, "--args", strconv.Itoa(gateFD), "--", shimPath)
	l.cmd.Env = []string{}
	return nil
}

// countsInside is what a shim in a sandbox is told about where its group's files are. Those of version 1 are in several
// folders, which it finds where they belong.
func countsInside(g group) string {
	if d := g.memory(); d != nil && d.Version == 2 {
		return cgroupPath
	}
	return ""
}

// descriptors opens what bubblewrap reads and writes beside the gate.
func (l *launch) descriptors(box *sandbox) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	l.info = r
	l.child = append(l.child, w)
	box.infoFD = gateFD + len(l.child) - 1
	status, err := openRegular(l.entry.path(statusFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND)
	if err != nil {
		return err
	}
	l.child = append(l.child, status)
	box.statusFD = gateFD + len(l.child) - 1
	l.child, err = l.p.contents(box, l.child)
	return err
}

// contents appends to a process's descriptors those that the made-up files and the seccomp filter are read from.
func (p *Provisioner) contents(box *sandbox, child []*os.File) ([]*os.File, error) {
	files := accounts(p.user.uid, p.user.gid)
	for _, path := range slices.Sorted(maps.Keys(files)) {
		f, err := memFile(path, []byte(files[path]))
		if err != nil {
			return child, err
		}
		box.files = append(box.files, file{fd: gateFD + len(child), path: path})
		child = append(child, f)
	}
	filter := seccomp.Filter()
	if filter == nil {
		return child, nil
	}
	f, err := memFile("seccomp", filter)
	if err != nil {
		return child, err
	}
	box.seccompFD = gateFD + len(child)
	return append(child, f), nil
}

// memFile returns a file in memory that reads as content.
func memFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(filepath.Base(name), unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err = f.Write(content); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// box returns the sandbox without what is one kernel's own.
func (p *Provisioner) box(st *stage, l kernels.Limits) sandbox {
	size := l.Tmp
	if size <= 0 {
		size = defaultTmp
		if l.Memory > 0 { // rather a full /tmp than a kernel killed for what lies there
			size = min(size, l.Memory/4)
		}
	}
	box := sandbox{readOnly: p.system.binds, links: p.system.links, sized: p.bwrap.sized}
	for _, t := range []tmpfs{{"/dev/shm", size}, {runPath, runSize}, {tmpPath, size}} {
		if p.stages() {
			box.scratch = append(box.scratch, bind{source: st.addScratch(t.size, p.user), target: t.target})
		} else {
			box.tmpfs = append(box.tmpfs, t)
		}
	}
	for _, path := range p.cfg.ReadOnlyPaths {
		box.further = append(box.further, bind{source: p.source(st, path, false), target: path})
	}
	return box
}

// source returns where bubblewrap finds a path of the host.
func (p *Provisioner) source(st *stage, path string, folder bool) string {
	if p.stages() {
		return st.add(path, folder)
	}
	return path
}

// stages tells whether sandboxes are made on a stage.
func (p *Provisioner) stages() bool { return p.user.drop && p.cfg.Sandbox != SandboxNone }
