//go:build linux

package docker

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
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
