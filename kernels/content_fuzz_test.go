package kernels

import (
	"encoding/json"
	"testing"

	"cellblock/kernels/wire"
)

// FuzzContent reads any content of every message that the client looks into: it is refused, or what is read of it can be written
// again, without a panic.
func FuzzContent(f *testing.F) {
	kinds := []string{"stream", "execute_result", "display_data", "update_display_data", "clear_output", "error", "input_request", "comm_open",
		"execute_reply", "complete_reply", "inspect_reply"}
	for i := range kinds {
		for _, seed := range []string{"", "{}", "null", "[]", `{"name":"stdout","text":"a\ud800"}`, `{"data":{"text/plain":"a","image/png":"AA==","a":[{}]},"metadata":{"b":1},"transient":{"display_id":"x"}}`,
			`{"data":{"a":1,"a":2},"execution_count":-1e400}`, `{"ename":"E","evalue":"v","traceback":["\u001b[31ma",1]}`, `{"prompt":"? ","password":true}`, `{"wait":true}`,
			`{"status":"error","ename":1}`, `{"status":"ok","execution_count":1,"user_expressions":{},"payload":[{"source":"page","data":{}}]}`, `{"matches":["a"],"cursor_start":9,"cursor_end":-1}`,
			`{"found":true,"data":{"text/plain":"d"}}`} {
			f.Add(uint8(i), []byte(seed))
		}
	}
	f.Fuzz(func(t *testing.T, kind uint8, content []byte) {
		switch what := kinds[int(kind)%len(kinds)]; what {
		case "execute_reply":
			var r Result
			if r.fromReply(content, nil); r.Status == StatusError && r.Error == nil {
				t.Errorf("%q is an error without one", content)
			}
		case "complete_reply":
			var c Completion
			_ = decodeReply(what, content, &c)
		case "inspect_reply":
			var i Inspection
			if err := decodeReply(what, content, &i); err == nil {
				written(t, content, i.Data)
			}
		default:
			out, err := decodeOutput(wire.Message{Header: wire.NewHeader("a", "b", what), Content: content}, 1)
			if err == nil {
				out.detach(int64(len(content)))
				written(t, content, out.Data)
			}
		}
	})
}

// written tells whether what was read of a content can be written.
func written(t *testing.T, content []byte, data map[string]json.RawMessage) {
	t.Helper()
	if _, err := json.Marshal(data); err != nil {
		t.Errorf("of %q was read what cannot be written: %v", content, err)
	}
}
