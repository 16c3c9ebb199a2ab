package sessions

import (
	"encoding/json"
	"testing"

	"cellblock/kernels"
)

func TestExited(t *testing.T) {
	for payload, died := range map[string]bool{
		``:   false,
		`[]`: false,
		`[{"source": "ask_exit", "keepkernel": false}]`:                      true,
		`[{"source": "ask_exit", "keepkernel": true}]`:                       false,
		`[{"source": "page"}, {"source": "ask_exit", "keepkernel": false}]`:  true,
		`{"source": "ask_exit"}`:                                             false,
		`[{"source": "set_next_input", "text": "ask_exit"}, {"source": 17}]`: false,
	} {
		r := exited(kernels.Result{Status: kernels.StatusOK, Payload: json.RawMessage(payload)})
		if (r.Status == kernels.StatusDied) != died || (r.Death != nil) != died {
			t.Errorf("%s: %+v", payload, r)
		}
	}
}
