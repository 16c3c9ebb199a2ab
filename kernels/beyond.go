package kernels

import (
	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// Beyond returns what of the limits bounds nothing on a machine with so many cores and so many bytes of memory, of which 0 is not known;
// nil if each of them can be reached. Kernels run all the same: it is for the operator, who promises more than there is.
func (l Limits) Beyond(cores int, memory int64) error {
	switch {
	case memory > 0 && l.Memory > memory:
		return fault.New(fault.Invalid, "its memory is %s, and the machine that kernels run on has %s", words.Bytes(l.Memory), words.Bytes(memory)).
			WithHint("Give it less than there is: what goes beyond that is ended by the system, and not by the limit.")
	case cores > 0 && l.CPUs > float64(cores):
		return fault.New(fault.Invalid, "it has %g CPUs, and the machine that kernels run on has %d", l.CPUs, cores).
			WithHint("Give it at most as many as there are.")
	}
	return nil
}

// On returns the limits for a machine with so many cores, 0 if that is not known: engines refuse more, and a kernel's programs start as
// many threads as they are told.
func (l Limits) On(cores int) Limits {
	if cores > 0 {
		l.CPUs = min(l.CPUs, float64(cores))
	}
	return l
}
