//go:build linux

package local

import (
	"os"
	"os/exec"
	"path/filepath"

	"cellblock/kernels/stream"
)

// gateScript waits at the gate and becomes the shim; where there is no sandbox, there is no bubblewrap to hold.
const gateScript = `read -r go <&3 && exec 3<&- && exec "$0"`

// bare prepares the shim without a sandbox.
func (l *launch) bare() error {
	run := l.p.bareDir(l.spec.ID)
	for _, dir := range []string{run, filepath.Join(run, "home")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := os.Lchown(dir, l.p.user.uid, l.p.user.gid); err != nil {
			return err
		}
	}
	for _, path := range []string{filepath.Join(l.spec.Workspace, "x"), filepath.Join(run, "x"), l.p.cfg.ShimPath} {
		if err := l.p.user.reaches(path); err != nil {
			return err
		}
	}
	place := shimPlace{dir: l.spec.Workspace, run: filepath.Join(run, "k"), home: filepath.Join(run, "home")}
	if d := l.state.Group.memory(); d != nil {
		place.cgroup = d.Path
	}
	config, err := l.config(place)
	if err != nil {
		return err
	}
	l.opening = []byte("go\n")
	l.cmd = exec.Command("/bin/sh", "-c", gateScript, l.p.cfg.ShimPath)
	l.cmd.Env = []string{stream.ConfigEnv + "=" + config}
	return nil
}
