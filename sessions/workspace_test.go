package sessions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
)

func TestFilesAreKeptAndFoundAgain(t *testing.T) {
	dir := t.TempDir()
	inDir := func(c *Config) { c.DataDir = dir }
	p := &fakeProvisioner{}
	m := newTestManager(t, p, inDir)
	execute(t, m, alice, "s", "x")
	workspace := p.specs[0].Workspace
	info, err := os.Stat(workspace)
	if err != nil || info.Mode().Perm() != 0o700 || strings.Contains(workspace, "/s") && filepath.Base(workspace) == "s" {
		t.Fatalf("workspace %s: %v %v", workspace, info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(workspace, "plot.png"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := m.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}

	m = newTestManager(t, p, inDir) // the server was started again
	if _, err := m.Get(t.Context(), alice, "s"); fault.KindOf(err) != fault.NotFound || !strings.Contains(err.Error(), "files are kept") {
		t.Errorf("before its next call: %v", err)
	}
	e, _ := execute(t, m, alice, "s", "y")
	if p.specs[1].Workspace != workspace || !strings.Contains(e.Preamble(), "files in the workspace are kept") {
		t.Errorf("workspace %s, want %s; preamble %q", p.specs[1].Workspace, workspace, e.Preamble())
	}
	execute(t, m, bob, "s", "y")
	if p.specs[2].Workspace == workspace {
		t.Error("bob got alice's workspace")
	}

	for range 2 {
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if _, err := os.Stat(workspace); err != nil {
		t.Errorf("files are gone: %v", err)
	}
	if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
		t.Errorf("Close with delete: %v", err)
	}
	if left, _ := filepath.Glob(workspace + "*"); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// Two processes on one data folder, as two desktop clients of one user start them: one id is one folder, which goes only
// when neither uses it.
func TestProcessesShareAWorkspace(t *testing.T) {
	dir, p := t.TempDir(), &fakeProvisioner{}
	one, other := newTestManager(t, p, func(c *Config) { c.DataDir = dir }), newTestManager(t, p, func(c *Config) { c.DataDir = dir })
	execute(t, one, alice, "s", "x")
	execute(t, other, alice, "s", "x")
	workspace := p.specs[0].Workspace
	if p.specs[1].Workspace != workspace {
		t.Fatalf("workspaces %s and %s", workspace, p.specs[1].Workspace)
	}
	if err := one.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(workspace); err != nil {
		t.Errorf("the empty folder went while it was in use: %v", err)
	}
	execute(t, one, alice, "s", "y")
	if err := one.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); fault.KindOf(err) != fault.Conflict {
		t.Errorf("deleted while it was in use: %v", err)
	}
	if err := other.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
		t.Error(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "workspaces", "*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestDeletesWhatTheCodeMadeUnreadable(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	execute(t, m, alice, "s", "x")
	workspace := p.specs[0].Workspace
	outside := filepath.Join(t.TempDir(), "outside")
	deep := filepath.Join(workspace, "a", "b")
	for _, err := range []error{
		os.MkdirAll(deep, 0o700), os.Mkdir(outside, 0o500), os.Symlink(outside, filepath.Join(deep, "link")),
		os.WriteFile(filepath.Join(deep, "f"), nil, 0), os.Chmod(deep, 0), os.Chmod(filepath.Dir(deep), 0),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(workspace); !os.IsNotExist(err) {
		t.Errorf("the workspace is still there: %v", err)
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("a link out of the workspace was followed: %v", err)
	}
}

func TestMintedIDsAreValidAndUnused(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	m.mu.Lock()
	defer m.mu.Unlock()
	for range 20_000 { // more than there are plain names
		k := key{alice, m.mint(alice)}
		if err := sessionid.Validate(k.id); err != nil {
			t.Fatal(err)
		}
		if !m.unused(k) {
			t.Fatalf("%q is used", k.id)
		}
		m.past.put(k, pastEnd{sentence: "used"})
	}
}

// workspacesOf is the folder that has all workspaces.
func workspacesOf(m *Manager) string { return filepath.Join(m.Config().DataDir, "workspaces") }
