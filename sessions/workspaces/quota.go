package workspaces

import (
	"errors"
	"io/fs"
	"os"

	"cellblock/sessions/quota"
)

// CheckQuota tells whether the file system of a data folder bounds its workspaces: nil, or what is missing.
func CheckQuota(dataDir string) error {
	err := quota.Check(in(dataDir))
	if errors.Is(err, fs.ErrNotExist) { // no server has run here yet
		err = quota.Check(dataDir)
	}
	return err
}

// Quota is to how many bytes the file system bounds each workspace; 0: it does not.
func (w *Folders) Quota() int64 { return w.quota }

// quotaOf returns to what the file system is to bound each workspace; 0 where it cannot, or where that is not wanted.
func (w *Folders) quotaOf(wanted int64) int64 {
	if wanted <= 0 {
		return 0
	}
	if err := quota.Check(w.root); err != nil {
		w.log.Debug("workspaces are measured while cells run", "why", err)
		return 0
	}
	return wanted
}

// bound has the file system bound a workspace, if it can. What it does not bound is still measured.
func (w *Folders) bound(dir string) {
	if w.quota == 0 {
		_ = quota.Lift(dir) // that an operator has taken back
		return
	}
	if err := quota.Bound(dir, w.quota); err != nil {
		w.log.Warn("a workspace's quota cannot be set", "error", err)
	}
}

// boundTogether makes what bounds one folder hold for both, as it must when files are moved from it.
func (w *Folders) boundTogether(from, to string) {
	if err := quota.Join(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
		w.log.Warn("a workspace's quota cannot be shared", "error", err)
	}
}

// unbound is called before a workspace is removed.
func (w *Folders) unbound(dir string) { _ = quota.Lift(dir) }

// removeEmpty removes a workspace, unless there are files in it.
func (w *Folders) removeEmpty(dir string) error {
	if n, err := countEntries(dir, 1); err == nil && n == 0 {
		w.unbound(dir)
	}
	return os.Remove(dir)
}
