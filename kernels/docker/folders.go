package docker

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/filters"
)

// folderGrace is how old a kernel's folder must be before it can be nobody's: a launch makes it before its container.
const folderGrace = 10 * time.Minute

// sweepFolders removes the folders of kernels whose containers are gone: taken away by somebody else, or by an engine that
// was set up anew. The run folder may be other servers' too, which use other installations or engines: a folder whose
// kernel this engine does not have goes only when nobody listens in it.
func (p *Provisioner) sweepFolders(ctx context.Context, e *engine) {
	dirs, err := os.ReadDir(p.cfg.RunDir)
	if err != nil || len(dirs) == 0 {
		return
	}
	known := map[string]bool{}
	list, err := e.api.ContainerList(ctx, container.ListOptions{All: true, Filters: filters.NewArgs(filters.Arg("label", labelKernel))})
	if err != nil {
		return
	}
	for _, c := range list {
		known[c.Labels[labelKernel]] = true
	}
	for _, d := range dirs {
		info, err := d.Info()
		if err != nil || !d.IsDir() || !idRule.MatchString(d.Name()) || known[d.Name()] || time.Since(info.ModTime()) < folderGrace {
			continue
		}
		dir := filepath.Join(p.cfg.RunDir, d.Name())
		if conn, err := dialSocket(ctx, dir, socketName); err == nil {
			_ = conn.Close()
			continue
		} else if !notYet(err) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			p.cfg.Logger.Warn("a kernel's folder could not be removed", "kernel", d.Name(), "error", err)
			continue
		}
		p.cfg.Logger.Info("removed the folder of a kernel that is gone", "kernel", d.Name())
	}
}
