package kernels

import (
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestLimitsBeyondTheMachine(t *testing.T) {
	const gib = 1 << 30
	for _, tt := range []struct {
		name   string
		limits Limits
		cores  int
		memory int64
		words  string
	}{
		{"all of it", Limits{Memory: 4 * gib, CPUs: 2}, 2, 4 * gib, ""},
		{"no limits", Limits{}, 2, 4 * gib, ""},
		{"an unknown machine", Limits{Memory: 900 * gib, CPUs: 64}, 0, 0, ""},
		{"memory", Limits{Memory: 900 * gib, CPUs: 64}, 2, 4 * gib, "its memory is 900 GiB, and the machine that kernels run on has 4 GiB; it has 64 CPUs, and the machine that kernels run on has 2"},
		{"cores", Limits{Memory: gib, CPUs: 2.5}, 2, 4 * gib, "it has 2.5 CPUs, and the machine that kernels run on has 2"},
	} {
		err := tt.limits.Beyond(tt.cores, tt.memory)
		if (err == nil) != (tt.words == "") || err != nil && (!strings.Contains(err.Error(), tt.words) || fault.Hint(err) == "") {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestLimitsOnAMachine(t *testing.T) {
	for _, tt := range []struct {
		cpus  float64
		cores int
		want  float64
	}{{64, 2, 2}, {1.5, 2, 1.5}, {64, 0, 64}, {0, 2, 0}} {
		if got := (Limits{CPUs: tt.cpus}).On(tt.cores).CPUs; got != tt.want {
			t.Errorf("%g of %d: %g, want %g", tt.cpus, tt.cores, got, tt.want)
		}
	}
}
