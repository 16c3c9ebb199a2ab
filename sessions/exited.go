package sessions

import (
	"encoding/json"
	"slices"
	"time"

	"cellblock/kernels"
)

// exited makes a death of a cell that has asked its kernel to end (Jupyter messaging, "Payloads", ask_exit): the kernel
// answers, and ends a moment later under whatever comes next.
func exited(r kernels.Result) kernels.Result {
	var payload []struct {
		Source     string `json:"source"`
		KeepKernel bool   `json:"keepkernel"`
	}
	if len(r.Payload) == 0 || json.Unmarshal(r.Payload, &payload) != nil {
		return r
	}
	for _, p := range slices.Backward(payload) {
		if p.Source == "ask_exit" && !p.KeepKernel {
			r.Status = kernels.StatusDied
			r.Death = &kernels.Death{Cause: "the code called exit() or quit(), which ends the kernel", Time: time.Now()}
			return r
		}
	}
	return r
}
