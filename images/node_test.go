package images_test

import (
	"os/exec"
	"testing"

	"cellblock/kernels/kernelstest"
)

// TestNodeUnits runs what the Node kernel's own tests say of its parts.
func TestNodeUnits(t *testing.T) {
	_, folder := kernelstest.Node(t, "javascript")
	cmd := exec.CommandContext(t.Context(), "node", "--test", "test/")
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
