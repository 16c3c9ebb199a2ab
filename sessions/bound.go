package sessions

import (
	"errors"
	"io/fs"
	"os"

	"cellblock/sessions/quota"
)

// What bounds how much a workspace holds (Manager.WorkspaceBound).
const (
	// BoundByQuota: the file system refuses what would be too much. Cells are measured besides, because the owner of a file
	// can take it out of the quota where he has no user namespace of his own.
	BoundByQuota = "project quota"
	// BoundByMeasuring: cells that have written too much are interrupted.
	BoundByMeasuring = "measuring"
)

// WorkspaceBound says what bounds how much a workspace holds, "" if nothing does.
func (m *Manager) WorkspaceBound() string {
	switch {
	case !m.measured():
		return ""
	case m.workspaces.quota > 0:
		return BoundByQuota
	}
	return BoundByMeasuring
}

// CheckQuota tells whether the file system of a data folder bounds its workspaces: nil, or what is missing.
func CheckQuota(dataDir string) error {
	err := quota.Check(workspacesIn(dataDir))
	if errors.Is(err, fs.ErrNotExist) { // no server has run here yet
		err = quota.Check(dataDir)
	}
	return err
}

// quotaOf returns what the file system is to bound each workspace to; 0 where it cannot, or where that is not wanted.
func (m *Manager) quotaOf(root string) int64 {
	if m.cfg.WorkspaceBytes <= 0 {
		return 0
	}
	err := quota.Check(root)
	if err == nil {
		return m.cfg.WorkspaceBytes
	}
	m.cfg.Logger.Debug("workspaces are measured while cells run", "why", err)
	return 0
}

// bound has the file system bound a workspace, if it can. What it does not bound is still measured.
func (w *workspaces) bound(dir string) {
	if w.quota == 0 {
		_ = quota.Lift(dir) // that an operator has taken back
		return
	}
	if err := quota.Bound(dir, w.quota); err != nil {
		w.log.Warn("a workspace's quota cannot be set", "error", err)
	}
}

// boundTogether makes what bounds one folder hold for both, as it must when files are moved from it.
func (w *workspaces) boundTogether(from, to string) {
	if err := quota.Join(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.log.Warn("a workspace's quota cannot be shared", "error", err)
	}
}

// unbound is called before a workspace is removed.
func (w *workspaces) unbound(dir string) { _ = quota.Lift(dir) }

// removeEmpty removes a workspace, unless there are files in it.
func (w *workspaces) removeEmpty(dir string) error {
	if n, err := countEntries(dir, 1); err == nil && n == 0 {
		w.unbound(dir)
	}
	return os.Remove(dir)
}
