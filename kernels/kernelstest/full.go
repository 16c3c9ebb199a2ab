package kernelstest

import "os"

// FullSuite tells that tests are to repeat on every engine and carrier what these can hardly change: CELLBLOCK_SUITE=full asks
// for that.
func FullSuite() bool { return os.Getenv("CELLBLOCK_SUITE") == "full" }

// HasTwin tells that the engine which the variable env names is Podman, and that Docker is tried, too: of what an image's kernel
// and the shim beside it decide, the same everywhere, nothing is repeated then, unless it is the full suite.
func HasTwin(env string) bool {
	return env == "CELLBLOCK_TEST_PODMAN_HOST" && os.Getenv("CELLBLOCK_TEST_DOCKER_HOST") != "" && !FullSuite()
}
