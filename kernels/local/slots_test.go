//go:build linux

package local

import (
	"testing"
	"time"
)

// A kernel of another slot is not this process's to find by itself, but to go on with when it is named.
func TestKernelOfAnotherSlot(t *testing.T) {
	dir := t.TempDir()
	inSlot := func(name string) *Provisioner { return newLocal(t, dir, func(c *Config) { c.Slot = name }) }
	first, second := inSlot("c0"), inSlot("c1")
	h, _ := launchScript(t, first, "kernel0001", "true")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[*Provisioner]int{first: 1, second: 0} {
		if refs, err := p.List(t.Context()); err != nil || len(refs) != want {
			t.Errorf("slot %s lists %v, %v", p.cfg.Slot, refs, err)
		}
	}
	again, err := second.Attach(t.Context(), h.Ref())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if err := awaitShim(t.Context(), again.(*handle)); err != nil {
		t.Error(err)
	}
	if err := again.Stop(t.Context(), time.Second); err != nil {
		t.Fatal(err)
	}
	if left := leftovers(t, second, dir); left != "" {
		t.Error(left)
	}
}
