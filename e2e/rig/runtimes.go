package rig

import (
	"os"
	"os/exec"
	"testing"

	"cellblock/kernels/kernelstest"
)

// Runtimes are the ways to run kernels that are here, of local, docker and podman. What is missing is said, and is a failure
// where nothing may be skipped; where there is none the test is skipped.
func Runtimes(t testing.TB) []string {
	t.Helper()
	_, err := exec.LookPath("bwrap")
	here := map[string]bool{
		"local":  need(t, err == nil, "bubblewrap"),
		"docker": need(t, os.Getenv("CELLBLOCK_TEST_DOCKER_HOST") != "", "a Docker engine with the kernels' image (CELLBLOCK_TEST_DOCKER_HOST)"),
		"podman": need(t, os.Getenv("CELLBLOCK_TEST_PODMAN_HOST") != "", "a Podman engine with the kernels' image (CELLBLOCK_TEST_PODMAN_HOST)"),
	}
	var names []string
	for _, name := range []string{"local", "docker", "podman"} {
		if here[name] {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		t.Skip("SKIPPED: there is nothing here to run kernels with")
	}
	return names
}

// need reports whether something is here. What is missing is said, and is a failure where nothing may be skipped.
func need(t testing.TB, here bool, what string) bool {
	t.Helper()
	if !here {
		if os.Getenv(kernelstest.NoSkip) == "1" {
			t.Errorf("needs %s, and nothing may be skipped here", what)
		}
		t.Logf("SKIPPED in part: needs %s", what)
	}
	return here
}

// RuntimeFlags are the flags of serve and stdio that choose a runtime.
func RuntimeFlags(runtime string) []string {
	switch runtime {
	case "docker":
		return []string{"--provisioner", "docker", "--docker-host", os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")}
	case "podman":
		return []string{"--provisioner", "docker", "--docker-host", os.Getenv("CELLBLOCK_TEST_PODMAN_HOST")}
	}
	return []string{"--provisioner", runtime}
}
