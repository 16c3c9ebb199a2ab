package notebook

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

func text(name, text string) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: name, Text: text}
}

func show(kind kernels.OutputKind, id, plain string) kernels.Output {
	return kernels.Output{Kind: kind, DisplayID: id, ExecutionCount: 3, Data: bundleWith("text/plain", plain)}
}

func bundleWith(mime string, value any) map[string]json.RawMessage {
	raw, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	return map[string]json.RawMessage{mime: raw}
}

func clearOutput(wait bool) kernels.Output {
	return kernels.Output{Kind: kernels.OutputClear, Wait: wait}
}

// summary is a cell's outputs, each on a line.
func summary(c *Cell) string {
	var said []string
	for _, o := range c.Outputs {
		switch o.Type {
		case Stream:
			said = append(said, o.Name+" "+o.Text)
		case Error:
			said = append(said, "error "+o.EName+" "+o.EValue+" "+strings.Join(o.Traceback, "|"))
		case Result:
			said = append(said, fmt.Sprintf("result %d %v", o.ExecutionCount, o.Data["text/plain"]))
		default:
			said = append(said, fmt.Sprintf("display %v", o.Data["text/plain"]))
		}
	}
	return strings.Join(said, "; ")
}

// A remark is a comment, where the language is known to have any.
func TestRemarks(t *testing.T) {
	for language, want := range map[string]string{"python": "# why\nx", "Julia": "# why\nx", "C++": "// why\nx", "lua": "-- why\nx", "brainfuck": "x"} {
		b := NewBuilder(Session{ID: "s", Kernelspec: kernels.Kernelspec{Name: "k", Language: language}})
		b.Begin(Run{Number: 1, Code: "x", Remark: "why"})
		if got := b.Notebook().Cells[0].Source; got != want {
			t.Errorf("%s: %q, want %q", language, got, want)
		}
	}
}

// build makes a notebook of cells that produced these outputs.
func build(cells ...[]kernels.Output) *Notebook {
	b := NewBuilder(Session{ID: "s", Kernelspec: kernels.Kernelspec{Name: "python3", DisplayName: "Python 3", Language: "python"}})
	b.NewKernel(1, "")
	for i, outs := range cells {
		b.Begin(Run{Number: i + 1, Generation: 1, Code: "code", Status: "ok"})
		for _, out := range outs {
			b.Output(out)
		}
	}
	return b.Notebook()
}

// What a cell produced is in the notebook as a notebook program would show it in the end.
func TestOutputs(t *testing.T) {
	const display, update, result = kernels.OutputDisplay, kernels.OutputUpdate, kernels.OutputResult
	for name, tt := range map[string]struct {
		outs []kernels.Output
		want string
	}{
		"nothing":                    {nil, ""},
		"a stream in pieces":         {[]kernels.Output{text("stdout", "a"), text("stdout", "b"), text("stdout", "c")}, "stdout abc"},
		"two streams":                {[]kernels.Output{text("stdout", "a"), text("stderr", "b"), text("stdout", "c")}, "stdout a; stderr b; stdout c"},
		"a display between":          {[]kernels.Output{text("stdout", "a"), show(display, "", "d"), text("stdout", "c")}, "stdout a; display d; stdout c"},
		"a result":                   {[]kernels.Output{show(result, "", "42")}, "result 3 42"},
		"an update":                  {[]kernels.Output{show(display, "x", "1"), text("stdout", "a"), show(update, "x", "2")}, "display 2; stdout a"},
		"two displays of an id":      {[]kernels.Output{show(display, "x", "1"), show(display, "x", "2"), show(update, "x", "3")}, "display 3; display 3"},
		"an update of a result":      {[]kernels.Output{show(result, "x", "1"), show(update, "x", "2")}, "result 3 2"},
		"an update of nothing":       {[]kernels.Output{show(update, "x", "2")}, ""},
		"an update joins no streams": {[]kernels.Output{text("stdout", "a"), show(update, "x", "2"), text("stdout", "b")}, "stdout ab"},
		"clear":                      {[]kernels.Output{text("stdout", "a"), clearOutput(false)}, ""},
		"clear, and more":            {[]kernels.Output{text("stdout", "a"), clearOutput(false), text("stdout", "b")}, "stdout b"},
		"clear, waiting":             {[]kernels.Output{text("stdout", "a"), clearOutput(true), text("stdout", "b")}, "stdout b"},
		"clear, waiting in vain":     {[]kernels.Output{text("stdout", "a"), clearOutput(true)}, "stdout a"},
		"an update is not waited for": {[]kernels.Output{show(display, "x", "1"), clearOutput(true), show(update, "x", "2")},
			"display 2"},
		"an update of what is cleared": {[]kernels.Output{show(display, "x", "1"), clearOutput(false), show(update, "x", "2")}, ""},
		"an error": {[]kernels.Output{{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "E", Value: "v", Traceback: []string{"1", "2"}}}},
			"error E v 1|2"},
		"a notice": {[]kernels.Output{text("stdout", "a"), {Kind: kernels.OutputNotice, Notice: &kernels.Notice{
			Elided: &stream.Elided{Stream: "stdout", Bytes: 1234, Lines: 5, Messages: 1}}}, text("stdout", "z")},
			"stdout a; stderr … 1,234 bytes (5 lines) of stdout left out here …\n; stdout z"},
		"a prompt":             {[]kernels.Output{text("stdout", "a\n"), {Kind: kernels.OutputInput, Text: "name? "}, {Kind: kernels.OutputAnswer, Text: "Ada"}, text("stdout", "b")}, "stdout a\nname? Ada\nb"},
		"a password":           {[]kernels.Output{{Kind: kernels.OutputInput, Text: "word: ", Password: true}, {Kind: kernels.OutputAnswer, Password: true}}, "stdout word: ········\n"},
		"what no notebook has": {[]kernels.Output{{Kind: kernels.OutputInput, Text: "name? "}, {Kind: kernels.OutputOther, Type: "comm_open"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := summary(build(tt.outs).Cells[0]); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

// A display is replaced by later cells too, as long as its kernel lives.
func TestUpdatesReachEarlierCells(t *testing.T) {
	n := build([]kernels.Output{show(kernels.OutputDisplay, "x", "1")}, []kernels.Output{show(kernels.OutputUpdate, "x", "2"), text("stdout", "b")})
	if a, b := summary(n.Cells[0]), summary(n.Cells[1]); a != "display 2" || b != "stdout b" {
		t.Errorf("%q, %q", a, b)
	}
	b := NewBuilder(Session{ID: "s"})
	b.NewKernel(1, "")
	b.Begin(Run{Number: 1})
	b.Output(show(kernels.OutputDisplay, "x", "1"))
	b.NewKernel(2, "the kernel was restarted on request.")
	b.Begin(Run{Number: 2})
	b.Output(show(kernels.OutputUpdate, "x", "2"))
	n = b.Notebook()
	if got := summary(n.Cells[0]); got != "display 1" {
		t.Errorf("a new kernel's update replaced what an old one showed: %q", got)
	}
	if mark := n.Cells[1]; mark.Type != Markdown || !strings.Contains(mark.Source, "generation 2") || !strings.Contains(mark.Source, "restarted on request. ") {
		t.Errorf("between the generations: %+v", mark)
	}
}

// Bundles keep all their forms and metadata; what nbformat does not allow becomes a text.
func TestBundles(t *testing.T) {
	out := kernels.Output{Kind: kernels.OutputDisplay, Metadata: json.RawMessage(`{"image/png":{"width":20}}`), Data: map[string]json.RawMessage{
		"image/png": json.RawMessage(`"AAAA\n"`), "application/json": json.RawMessage(`{"a":[1,2.50]}`), "text/plain": json.RawMessage(`5`),
		"text/html": json.RawMessage(`["<b>","x</b>"]`), "application/vnd.x.v1+json": json.RawMessage(`[1]`), "text/x": json.RawMessage(`{"a":1}`),
		"application/x": json.RawMessage(`[1,2]`), "text/null": json.RawMessage(`null`),
	}}
	got := build([]kernels.Output{out}).Cells[0].Outputs[0]
	want := Object{
		"image/png": "AAAA\n", "application/json": Object{"a": []any{json.Number("1"), json.Number("2.50")}}, "text/plain": "5",
		"text/html": "<b>x</b>", "application/vnd.x.v1+json": []any{json.Number("1")}, "text/x": `{"a":1}`, "application/x": "[1,2]", "text/null": "null",
	}
	if !reflect.DeepEqual(got.Data, want) {
		t.Errorf("got  %v\nwant %v", got.Data, want)
	}
	if !reflect.DeepEqual(got.Metadata, Object{"image/png": Object{"width": json.Number("20")}}) {
		t.Errorf("metadata %v", got.Metadata)
	}
	out.Metadata = json.RawMessage(`[1]`)
	if got := build([]kernels.Output{out}).Cells[0].Outputs[0].Metadata; len(got) != 0 || got == nil {
		t.Errorf("metadata that is no object: %v", got)
	}
}

func TestCellMetadata(t *testing.T) {
	b := NewBuilder(Session{ID: "s", Generation: 1, Ended: "culled"})
	b.Begin(Run{
		Number: 7, Generation: 1, Code: "x", ExecutionCount: 4, Status: "kernel died", Caller: "someone 1", Failure: "the kernel was killed",
		Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: 1500 * time.Millisecond,
	})
	n := b.Notebook()
	c := n.Cells[0]
	want := Object{
		"cellblock": Object{"execution_id": 7, "generation": 1, "status": "kernel died", "duration": 1.5, "caller": "someone 1", "started": "2026-01-02T03:04:05Z"},
		"execution": Object{"iopub.execute_input": "2026-01-02T03:04:05Z", "shell.execute_reply": "2026-01-02T03:04:06.5Z"},
	}
	if !reflect.DeepEqual(c.Metadata, want) || c.ID != "cell-7" || c.ExecutionCount != 4 {
		t.Errorf("%+v", c)
	}
	if got := summary(c); got != "stderr the kernel was killed\n" {
		t.Errorf("it says %q", got)
	}
	if about := n.Metadata["cellblock"]; !reflect.DeepEqual(about, Object{"session_id": "s", "generations": 1, "ended": "culled"}) {
		t.Errorf("the notebook says %v", about)
	}
}

func TestMissing(t *testing.T) {
	b := NewBuilder(Session{ID: "s"})
	b.Missing(1, 3, "not kept")
	b.Begin(Run{Number: 4})
	b.Missing(5, 5, "elsewhere")
	n := b.Notebook()
	if got := []string{n.Cells[0].Source, n.Cells[1].ID, n.Cells[2].Source}; !reflect.DeepEqual(got, []string{
		"… cells 1 to 3 left out here: not kept …", "cell-4", "… cell 5 left out here: elsewhere …"}) {
		t.Errorf("%q", got)
	}
}

func TestCodeThatDoesNotFit(t *testing.T) {
	b := NewBuilder(Session{ID: "s"})
	code := strings.Repeat("x", 1<<20)
	kept := 0
	for i := range 40 {
		if b.Begin(Run{Number: i + 1, Code: code}) {
			kept++
		}
	}
	n := b.Notebook()
	last := n.Cells[len(n.Cells)-1]
	if kept != 32 || len(n.Cells) != 33 || last.Type != Markdown || !strings.Contains(last.Source, "8 cells left out") {
		t.Errorf("%d cells kept, the last says %.80q", kept, last.Source)
	}
}
