package history

import (
	"encoding/json"
	"reflect"
	"testing"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

var samples = map[string]kernels.Output{
	"nothing": {},
	"stream":  {Stream: "stderr", Text: "a\x00\u2028\r\n\x1b[31mé"},
	"bundle": {
		Data: map[string]json.RawMessage{
			"text/plain":       json.RawMessage(`"<b> \u003c \ud83d"`),
			"application/json": json.RawMessage("{ \"a\" : [1, 2.50, 1e400],\n \"a\": null }"),
			"image/png":        json.RawMessage(`"iVBORw0KGgo="`),
			"":                 json.RawMessage(``),
		},
		Metadata: json.RawMessage(`{"isolated":true}`), DisplayID: "d1", ExecutionCount: -3,
	},
	"empty bundle": {Data: map[string]json.RawMessage{}, Metadata: json.RawMessage{}},
	"error":        {Error: &kernels.ExecError{Name: "KeyError", Value: "'x'", Traceback: []string{"", "line 2"}}},
	"bare error":   {Error: &kernels.ExecError{}},
	"no lines":     {Error: &kernels.ExecError{Traceback: []string{}}},
	"clear":        {Wait: true},
	"input":        {Text: "Password: ", Password: true},
	"notice":       {Notice: &kernels.Notice{Elided: &stream.Elided{Stream: "stdout", Bytes: 1 << 40, Lines: 3}}},
	"comm":         {Type: "comm_msg", Content: json.RawMessage(`{"comm_id": "x"}`)},
}

func TestBodyKeepsOutputsAsTheyAre(t *testing.T) {
	for name, out := range samples {
		t.Run(name, func(t *testing.T) {
			body, err := encodeBody(out)
			if err != nil {
				t.Fatal(err)
			}
			var got kernels.Output
			if err := decodeBody(&got, body); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, out) {
				t.Errorf("got  %#v\nwant %#v", got, out)
			}
		})
	}
}

// What a damaged file or a newer program left must be an error, and what is read must be the same when written again.
func FuzzBody(f *testing.F) {
	for _, out := range samples {
		body, _ := encodeBody(out)
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var out kernels.Output
		if decodeBody(&out, body) != nil {
			return
		}
		again, err := encodeBody(out)
		if err != nil {
			t.Skip("a notice that JSON reads but does not write")
		}
		var same kernels.Output
		if err := decodeBody(&same, again); err != nil {
			t.Fatalf("its own body is not read: %v", err)
		}
		if !reflect.DeepEqual(out, same) {
			t.Fatalf("got  %#v\nwant %#v", same, out)
		}
	})
}

func BenchmarkBody(b *testing.B) {
	out := kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: "a line of output\n"}
	b.ReportAllocs()
	for b.Loop() {
		body, _ := encodeBody(out)
		var got kernels.Output
		if decodeBody(&got, body) != nil {
			b.Fatal("not read")
		}
	}
}
