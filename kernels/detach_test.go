package kernels

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unsafe"

	"cellblock/kernels/wire"
)

// Who keeps an output counts what it has. So it must not hold a message that is much larger, and must hold a picture without a copy.
func TestOutputsHoldNoMessages(t *testing.T) {
	long := strings.Repeat("A", 1<<20)
	for name, tt := range map[string]struct {
		msgType, content string
		buffers          [][]byte
		shares           bool
	}{
		"a picture":                   {"display_data", `{"data":{"image/png":"` + long + `"}}`, nil, true},
		"a member that nobody knows":  {"display_data", `{"data":{"text/plain":"x"},"metadata":{"a":1},"junk":"` + long + `"}`, nil, false},
		"buffers":                     {"display_data", `{"data":{"text/plain":"x"},"metadata":{"a":1}}`, [][]byte{[]byte(long)}, false},
		"a message of another type":   {"comm_msg", `{"data":"` + long + `"}`, nil, true},
		"another type, with a buffer": {"comm_msg", `{"data":"x"}`, [][]byte{[]byte(long)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := wire.Message{Header: wire.NewHeader("a", "b", tt.msgType), Content: json.RawMessage(tt.content), Buffers: tt.buffers}
			size := len(tt.content)
			for _, b := range tt.buffers {
				size += len(b)
			}
			out, err := decodeOutput(m, 1)
			if err != nil {
				t.Fatal(err)
			}
			before := out
			before.Data = map[string]json.RawMessage{}
			for mime, value := range out.Data {
				before.Data[mime] = value
			}
			out.detach(int64(size))
			pairs := [][2]json.RawMessage{{before.Metadata, out.Metadata}, {before.Content, out.Content}}
			for mime, value := range out.Data {
				pairs = append(pairs, [2]json.RawMessage{before.Data[mime], value})
			}
			for _, pair := range pairs {
				if !bytes.Equal(pair[0], pair[1]) {
					t.Errorf("%.50q became %.50q", pair[0], pair[1])
				}
				if len(pair[1]) > 0 && (unsafe.SliceData(pair[0]) == unsafe.SliceData(pair[1])) != tt.shares {
					t.Errorf("%.50q shares the message's memory: %v", pair[1], !tt.shares)
				}
			}
		})
	}
}
