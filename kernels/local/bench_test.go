//go:build linux

package local

import (
	"fmt"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
)

// BenchmarkLaunch is a sandbox with a shim that answers, made and taken away; the kernel's own start is not in it.
func BenchmarkLaunch(b *testing.B) {
	dir := kernelstest.ShortDir(b)
	p, err := New(Config{StateDir: dir + "/state", RunDir: dir + "/run", ShimPath: kernelstest.BuildShim(b)})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	if err := p.Health(b.Context()); err != nil {
		b.Skip(err)
	}
	workspace := kernelstest.Workspace(b, p)
	for i := 0; b.Loop(); i++ {
		h, err := p.Launch(b.Context(), kernels.Spec{
			ID: fmt.Sprintf("bench%06d", i), Workspace: workspace, Limits: kernels.Limits{Memory: 256 << 20, CPUs: 1, PIDs: 64},
			Kernelspec: kernels.Kernelspec{Name: "sleep", Argv: []string{"/bin/sleep", "1000"}},
		})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := h.Stop(b.Context(), 0); err != nil {
			b.Fatal(err)
		}
		_ = h.Close()
		b.StartTimer()
	}
}
