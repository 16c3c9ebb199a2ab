package kernels_test

import (
	"encoding/json"
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

// What a kernel answers is bounded, and an answer that is none is an error.
func TestReplyIsBounded(t *testing.T) {
	matches := func(n int) json.RawMessage {
		return json.RawMessage(`{"status":"ok","matches":["` + strings.Repeat("x", n) + `"]}`)
	}
	for name, tt := range map[string]struct {
		reply json.RawMessage
		words string
	}{
		"good":     {matches(10), ""},
		"too long": {matches(kernels.MaxReply), "too long"},
		"an error": {json.RawMessage(`{"status":"error","ename":"KeyError","evalue":"x"}`), "KeyError: x"},
		"no JSON":  {json.RawMessage(`x`), "could not be read"},
		"odd":      {json.RawMessage(`{"status":"ok","matches":7}`), "could not be read"},
	} {
		var c kernels.Completion
		err := kernels.DecodeReply("complete_request", tt.reply, &c)
		if tt.words == "" && err != nil || tt.words != "" && (fault.KindOf(err) != fault.Unavailable || !strings.Contains(err.Error(), tt.words)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
