package sessions

import (
	"fmt"
	"testing"
	"testing/fstest"
)

// psi is /proc/pressure/memory, as Linux 6.1 writes it.
func psi(ten, sixty float64) *fstest.MapFile {
	return &fstest.MapFile{Data: fmt.Appendf(nil, "some avg10=%.2f avg60=%.2f avg300=1.00 total=312491\nfull avg10=%.2f avg60=%.2f avg300=0.80 total=114121\n",
		2*ten, 2*sixty, ten, sixty)}
}

func TestHostMemory(t *testing.T) {
	const mb = 1 << 20
	text := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	meminfo := text("MemTotal:        8388608 kB\nMemFree:          153856 kB\nMemAvailable:    4194304 kB\nBuffers:           53580 kB\n")
	for name, tt := range map[string]struct {
		proc, cgroups fstest.MapFS
		total, free   int64
	}{
		"nothing known": {fstest.MapFS{}, nil, -1, -1},
		"a host":        {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{}, 8192 * mb, 4096 * mb},
		"a container": {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{
			"memory.max": text("1073741824\n"), "memory.current": text("943718400\n"), "memory.stat": text("anon 524288000\ninactive_anon 5\ninactive_file 209715200\n"),
		}, 1024 * mb, 324 * mb},
		"a container without a limit": {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{"memory.max": text("max\n"), "memory.current": text("943718400\n")}, 8192 * mb, 4096 * mb},
		"a roomy container":           {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{"memory.max": text("8589934592\n"), "memory.current": text("1048576\n")}, 8192 * mb, 4096 * mb},
		"cgroups of version 1": {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{
			"memory/memory.limit_in_bytes": text("1073741824\n"), "memory/memory.usage_in_bytes": text("943718400\n"), "memory/memory.stat": text("total_inactive_file 0\n"),
		}, 1024 * mb, 124 * mb},
		"without a limit": {fstest.MapFS{"meminfo": meminfo}, fstest.MapFS{
			"memory/memory.limit_in_bytes": text("9223372036854771712\n"), "memory/memory.usage_in_bytes": text("943718400\n"),
		}, 8192 * mb, 4096 * mb},
		"an engine's host": {fstest.MapFS{"meminfo": meminfo}, nil, 8192 * mb, 4096 * mb},
		"nonsense":         {fstest.MapFS{"meminfo": text("MemAvailable: much\n")}, fstest.MapFS{"memory.max": text("")}, -1, -1},
	} {
		h := &hostMemory{proc: tt.proc}
		if tt.cgroups != nil {
			h.cgroups = tt.cgroups
		}
		if total, free := h.room(); total != tt.total || free != tt.free {
			t.Errorf("%s: %d of %d MiB", name, free/mb, total/mb)
		}
	}
	if total, free := newHostMemory(false).room(); total >= 0 && (free <= 0 || free > total) {
		t.Errorf("here: %d of %d", free, total)
	}
}

// One bad moment counts until it is over for good, and what comes and goes around the limit does not let kernels in and out.
func TestPressureDoesNotFlap(t *testing.T) {
	for _, where := range []string{"pressure/memory", "memory.pressure"} {
		files := fstest.MapFS{}
		h := &hostMemory{proc: files, cgroups: files}
		for i, step := range []struct {
			ten, sixty float64
			want       bool
		}{
			{0, 0, false}, {9.9, 4, false}, {10, 5, true}, {9, 6, true}, {4, 6, true}, {0, 5, true}, {6, 4.9, true}, {4.9, 4.9, false}, {9.9, 5, false}, {88, 20, true}, {0, 0, false},
		} {
			files[where] = psi(step.ten, step.sixty)
			if percent, is := h.stalled(); is != step.want || percent != step.ten {
				t.Errorf("%s, step %d: %v, %v", where, i, percent, is)
			}
		}
		delete(files, where)
		if _, is := h.stalled(); is {
			t.Error("pressed where nothing says so")
		}
	}
}

func TestPoolWaitsWhereMemoryIsShort(t *testing.T) {
	for free, want := range map[int]bool{200: true, 799: true, 820: false} {
		h := &hostMemory{proc: fstest.MapFS{"meminfo": &fstest.MapFile{Data: fmt.Appendf(nil, "MemTotal: %d kB\nMemAvailable: %d kB\n", 8000<<10, free<<10)}}}
		if h.short() != want {
			t.Errorf("%d MiB: %v", free, h.short())
		}
		h.proc.(fstest.MapFS)["pressure/memory"] = psi(20, 20)
		if !h.short() {
			t.Error("programs stand still, and the pool goes on")
		}
	}
}
