//go:build linux

package docker

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// volumesProvisioner returns a provisioner that keeps workspaces in volumes: one process of those on a data folder.
func volumesProvisioner(t *testing.T, dataFolder, process string) *Provisioner {
	s := setting{"", "CELLBLOCK_TEST_DOCKER_HOST", CarrierStdio, FilesVolume}
	return newProvisioner(t, Config{Host: s.host(t), Carrier: s.carrier, Files: s.files, Installation: dataFolder, Slot: process})
}

// runOnce runs a script in a workspace and returns its exit code.
func runOnce(t *testing.T, p *Provisioner, spec kernels.Spec) int {
	t.Helper()
	spec.ID = fmt.Sprintf("k%016x", rand.Uint64())
	h := launchKernel(t, p, spec)
	status := awaitExit(t, h, 20*time.Second)
	if err := h.Stop(t.Context(), 0); err != nil {
		t.Fatal(fault.Text(err))
	}
	return status.Code
}

// A volume belongs to the kernel's user, and every process on the data folder finds it, wherever that folder is now.
func TestWorkspaceVolumeIsFoundAgain(t *testing.T) {
	data := fmt.Sprintf("test-%d", rand.Uint64())
	one, other := volumesProvisioner(t, data, "s0"), volumesProvisioner(t, data, "c0")
	spec := newSpec(t, one, `[ "$(stat -c %u:%a /workspace)" = "`+itoa(DefaultUID)+`:700" ] && echo kept >>/workspace/kept && sleep 0.5 && exit "$(wc -l </workspace/kept)"`)
	for want, p := range []*Provisioner{one, one, other} {
		if p == other {
			spec.Workspace = filepath.Join("/elsewhere", filepath.Base(spec.Workspace))
		}
		if got := runOnce(t, p, spec); got != want+1 {
			t.Errorf("exit code %d, want %d", got, want+1)
		}
	}
}

// Volumes go when they are to go: an empty one by any process, one with files only when that is meant.
func TestWorkspaceVolumesAreRemoved(t *testing.T) {
	data := fmt.Sprintf("test-%d", rand.Uint64())
	one, other := volumesProvisioner(t, data, "s0"), volumesProvisioner(t, data, "c0")
	full, emptyName := newSpec(t, one, "echo >/workspace/.hidden; sleep 0.5"), "empty"
	runOnce(t, one, full)
	if _, err := one.workspaceMount(t.Context(), one.known(), testImage, "/data/"+emptyName); err != nil {
		t.Fatal(fault.Text(err))
	}
	fullName := filepath.Base(full.Workspace)
	check := func(want ...string) {
		t.Helper()
		got, err := other.Workspaces(t.Context())
		if slices.Sort(want); err != nil || !slices.Equal(slices.Sorted(slices.Values(got)), want) {
			t.Errorf("kept are %v, %v, want %v", got, err, want)
		}
	}
	check(fullName, emptyName)
	for name, want := range map[string]bool{fullName: false, emptyName: true, "never-was": true} {
		if gone, err := other.RemoveEmptyWorkspace(t.Context(), name); err != nil || gone != want {
			t.Errorf("%s: gone %v, %v, want %v", name, gone, err, want)
		}
	}
	check(fullName)
	for range 2 {
		if err := other.RemoveWorkspace(t.Context(), fullName); err != nil {
			t.Error(fault.Text(err))
		}
	}
	check()
	if left := containersOf(t, one.known(), data); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}

// What a kernel has written into its volume can be read, and be put into another one, whose folder is empty then.
func TestWorkspaceVolumeIsCopied(t *testing.T) {
	one := volumesProvisioner(t, fmt.Sprintf("test-%d", rand.Uint64()), "s0")
	spec := newSpec(t, one, `cd /workspace && mkdir -p deep/er && echo text >deep/er/plain && chmod 754 deep/er/plain && ln deep/er/plain second &&
ln -s deep/er/plain link && ln -s /etc/passwd passwd && : >closed && chmod 0 closed && mkfifo pipe && sleep 0.5 && exit 7`)
	if got := runOnce(t, one, spec); got != 7 {
		t.Fatalf("exit code %d", got)
	}
	folder := t.TempDir()
	var names []string
	found, err := one.CopyWorkspace(t.Context(), filepath.Base(spec.Workspace), func(h *tar.Header, content io.Reader) error {
		to := filepath.Join(folder, h.Name)
		if h.Name == "output" { // the shim's stand-in has written it
			return nil
		}
		names = append(names, fmt.Sprintf("%s:%c:%o:%d", path.Clean(h.Name), h.Typeflag, h.Mode, h.Uid))
		switch h.Typeflag {
		case tar.TypeDir:
			return os.Mkdir(to, 0o700)
		case tar.TypeSymlink:
			return os.Symlink(h.Linkname, to)
		case tar.TypeReg:
			text, err := io.ReadAll(content)
			return errors.Join(err, os.WriteFile(to, text, fs.FileMode(h.Mode)), os.Chmod(to, fs.FileMode(h.Mode)))
		}
		return nil
	})
	want := strings.ReplaceAll("closed:0:0:U deep/er/plain:0:754:U deep/er:5:755:U deep:5:755:U link:2:777:U passwd:2:777:U pipe:6:644:U second:0:754:U", "U", itoa(DefaultUID))
	if got := strings.Join(slices.Sorted(slices.Values(names)), " "); !found || err != nil || got != want {
		t.Errorf("%v, %v\n%s, want\n%s", found, err, got, want)
	}
	if found, err := one.CopyWorkspace(t.Context(), "none", nil); found || err != nil {
		t.Errorf("of none: %v, %v", found, err)
	}

	other := volumesProvisioner(t, fmt.Sprintf("test-%d", rand.Uint64()), "s0")
	again := newSpec(t, other, `cd /workspace && [ "$(cat link)" = text ] && [ "$(readlink passwd)" = /etc/passwd ] && [ ! -e pipe ] &&
[ "$(stat -c %u:%a deep/er/plain closed | tr '\n' ' ')" = "`+itoa(DefaultUID)+`:754 `+itoa(DefaultUID)+`:0 " ] && echo more >>second && sleep 0.5 && exit "$(wc -l <second)"`)
	if err := errors.Join(os.Remove(again.Workspace), os.Rename(folder, again.Workspace)); err != nil {
		t.Fatal(err)
	}
	for want := range 2 { // the second time there is nothing to move any more, and nothing is as it was
		if got := runOnce(t, other, again); got != want+2 {
			t.Errorf("exit code %d, want %d", got, want+2)
		}
		if left, err := os.ReadDir(again.Workspace); err != nil || len(left) > 0 {
			t.Errorf("in the folder: %v, %v", left, err)
		}
	}
}

// The archive of a folder that cannot be read to its end has none, by which an engine would take it for whole.
func TestWorkspaceThatCannotBeRead(t *testing.T) {
	var archive bytes.Buffer
	e := engine{user: identity{user: "1:1"}}
	err := e.archiveFolder(&archive, "/proc/sys/kernel/random") // its files are longer than they say
	if err == nil || archive.Len() == 0 || bytes.HasSuffix(archive.Bytes(), make([]byte, 1024)) {
		t.Errorf("%d bytes, %v", archive.Len(), err)
	}
}

// A volume that a kernel works in stays.
func TestWorkspaceVolumeInUseStays(t *testing.T) {
	p := volumesProvisioner(t, fmt.Sprintf("test-%d", rand.Uint64()), "s0")
	spec := newSpec(t, p, forever)
	launchKernel(t, p, spec)
	name := filepath.Base(spec.Workspace)
	if err := p.RemoveWorkspace(t.Context(), name); err == nil {
		t.Error("it was removed")
	}
	if gone, err := p.RemoveEmptyWorkspace(t.Context(), name); gone {
		t.Errorf("it is gone, %v", err)
	}
}

// Whether workspaces are volumes is asked each time: the engine may not answer yet when a server starts.
func TestKeepsWorkspaces(t *testing.T) {
	missing := "unix://" + filepath.Join(t.TempDir(), "none.sock")
	for files, want := range map[Files]bool{FilesVolume: true, FilesBind: false} {
		p := newProvisioner(t, Config{Host: missing, Files: files})
		if keeps, err := p.KeepsWorkspaces(t.Context()); keeps != want || err != nil {
			t.Errorf("%s: %v, %v", files, keeps, err)
		}
	}
	p := newProvisioner(t, Config{Host: missing})
	if _, err := p.KeepsWorkspaces(t.Context()); fault.KindOf(err) != fault.Unavailable {
		t.Errorf("nothing is known: %v", err)
	}
}
