package kernels

import (
	"fmt"
	"strings"

	"cellblock/internal/fault"
	"cellblock/internal/words"
)

// Beyond returns what of the limits bounds nothing on a machine with so many cores and so many bytes of memory, of which 0 is not known;
// nil if each of them can be reached. Kernels run all the same: it is for the operator, who promises more than there is.
func (l Limits) Beyond(cores int, memory int64) error {
	var beyond, hints []string
	if memory > 0 && l.Memory > memory {
		beyond = append(beyond, fmt.Sprintf("its memory is %s, and the machine that kernels run on has %s", words.Bytes(l.Memory), words.Bytes(memory)))
		hints = append(hints, "Give it less memory than there is: what goes beyond that is ended by the system, and not by the limit.")
	}
	if cores > 0 && l.CPUs > float64(cores) {
		beyond = append(beyond, fmt.Sprintf("it has %g CPUs, and the machine that kernels run on has %d", l.CPUs, cores))
		hints = append(hints, "Give it at most as many CPUs as there are.")
	}
	if len(beyond) == 0 {
		return nil
	}
	return fault.New(fault.Invalid, "%s", strings.Join(beyond, "; ")).WithHint("%s", strings.Join(hints, " "))
}

// On returns the limits for a machine with so many cores, 0 if that is not known: engines refuse more, and a kernel's programs start as
// many threads as they are told.
func (l Limits) On(cores int) Limits {
	if cores > 0 {
		l.CPUs = min(l.CPUs, float64(cores))
	}
	return l
}
