package workspaces

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cellblock/internal/fault"
)

// A provisioner whose kernels share no files with this host keeps workspaces itself (kernels.WorkspaceKeeper). The folders
// here are empty then, and only stand for what it keeps: nothing can be told from them but whose they are.

// keptTime bounds how long the provisioner may take for one workspace that it keeps.
const keptTime = 30 * time.Second

// kept tells whether the provisioner keeps workspaces itself. The error is Unavailable while that cannot be known.
func (w *Folders) kept(ctx context.Context) (bool, error) {
	if w.keeper == nil {
		return false, nil
	}
	return w.keeper.KeepsWorkspaces(ctx)
}

// Away tells whether files are, or may be, where this host has no way to them.
func (w *Folders) Away(ctx context.Context) bool {
	kept, err := w.kept(ctx)
	return kept || err != nil
}

// Reachable is nil when files are in this host's folders.
func (w *Folders) Reachable(ctx context.Context) error {
	kept, err := w.kept(ctx)
	if err == nil && kept {
		err = fault.New(fault.Unavailable, "workspaces are volumes of a container engine that shares no files with this server").
			WithHint("let code read and write the files")
	}
	return err
}

// removeIfEmpty removes a folder, and what the provisioner keeps for it, if nothing is in either, and tells whether it did.
func (w *Folders) removeIfEmpty(name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), keptTime)
	defer cancel()
	kept, err := w.kept(ctx)
	if err == nil && kept {
		kept, err = w.keeper.RemoveEmptyWorkspace(ctx, name)
		kept = !kept
	}
	if err != nil {
		w.log.Warn("whether a workspace is empty cannot be told, it is kept", "workspace", name, "error", err)
	}
	if err != nil || kept {
		return false
	}
	err = w.removeEmpty(filepath.Join(w.root, name))
	return err == nil || errors.Is(err, fs.ErrNotExist)
}

// deleteKept deletes what the provisioner keeps of a workspace that has no label any more. What cannot be deleted now is
// swept later.
func (w *Folders) deleteKept(name string) error {
	ctx, cancel := context.WithTimeout(context.Background(), keptTime)
	defer cancel()
	kept, err := w.kept(ctx)
	if err != nil || !kept {
		return nil // if it is kept after all, it is swept
	}
	if err := w.keeper.RemoveWorkspace(ctx, name); err != nil {
		w.log.Warn("what the provisioner keeps of a workspace cannot be deleted yet", "workspace", name, "error", err)
		return fault.New(fault.Unavailable, "the session is closed; its files are deleted later: %w", err).
			WithHint("nothing more is to be done: it is tried again until it works")
	}
	return nil
}

// SweepKept deletes what the provisioner keeps of workspaces that have no label, and had none for long: of the names of those that
// have none now, overdue returns which these are.
func (w *Folders) SweepKept(ctx context.Context, overdue func(names map[string]bool) []string) {
	kept, err := w.kept(ctx)
	if err != nil || !kept {
		return // whoever sweeps kernels says what is the matter
	}
	names, err := w.keeper.Workspaces(ctx)
	if err != nil {
		w.log.Warn("workspaces that nobody uses cannot be looked for", "error", err)
		return
	}
	nobodys := map[string]bool{}
	for _, name := range names {
		if _, err := os.Lstat(w.labelPath(name)); errors.Is(err, fs.ErrNotExist) {
			nobodys[name] = true
		}
	}
	if _, err := os.Lstat(w.root); err != nil {
		w.log.Warn("workspaces that nobody uses cannot be looked for", "error", err)
		return // the labels may be on a disk that is not mounted now
	}
	for _, name := range overdue(nobodys) {
		w.sweepOneKept(ctx, name)
	}
}

func (w *Folders) sweepOneKept(ctx context.Context, name string) {
	ctx, cancel := context.WithTimeout(ctx, keptTime)
	defer cancel()
	if err := w.keeper.RemoveWorkspace(ctx, name); err != nil {
		w.log.Warn("a workspace that is nobody's cannot be swept", "workspace", name, "error", err)
		return
	}
	w.log.Info("swept a workspace that is nobody's", "workspace", name, "what", "kept by the provisioner")
}
