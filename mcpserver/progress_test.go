package mcpserver

import (
	"testing"

	"cellblock/kernels"
)

// What comes after an answer stands on a line of its own, as at a terminal.
func TestProgressAfterAnAnswer(t *testing.T) {
	p := &progress{}
	for _, out := range []kernels.Output{
		{Kind: kernels.OutputInput, Text: "name? "}, {Kind: kernels.OutputAnswer, Text: "Ann"}, {Kind: kernels.OutputStream, Text: "hi\n"},
		{Kind: kernels.OutputInput, Text: "word? ", Password: true}, {Kind: kernels.OutputAnswer, Password: true}, {Kind: kernels.OutputStream, Text: "ok"},
	} {
		p.add(out)
	}
	if text, _ := p.take(); text != "name? Ann\nhi\nword? \nok" {
		t.Errorf("%q", text)
	}
}
