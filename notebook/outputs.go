package notebook

import (
	"encoding/json"
	"fmt"
	"strings"

	"cellblock/internal/words"
	"cellblock/kernels"
)

// content is what displays show that have the same display id; a later message may replace it. count is how many they are,
// size what it takes in one of them.
type content struct {
	data, metadata Object
	size, count    int64
}

// displays are the contents that a kernel may still replace, by their display ids.
type displays map[string]*content

// shown is an output that gets its content in the end.
type shown struct {
	output  *Output
	content *content
}

// outputs applies what one cell produced to the cell.
type outputs struct {
	cell     *Cell
	displays displays
	failure  string
	// asked is what a prompt says that has no answer yet.
	asked string
	// text is the stream that the cell's last output is, while more may be joined to it.
	text []string
	// cleared tells that the next output takes the place of all so far.
	cleared bool

	// shown are the cell's displays, pending those of all cells.
	shown   []*content
	pending *[]shown

	// left is the room that there is, used what the cell's outputs take of it, grown what its messages made displays grow.
	left, used, grown int64
	// missing counts outputs that did not fit, lost their bytes.
	missing int
	lost    int64
}

// hidden stands for a password, as notebook programs show one.
const hidden = "········"

// add applies one output. Of prompts that nobody answered, and of comms, a notebook's file has nothing.
func (o *outputs) add(out kernels.Output) {
	switch out.Kind {
	case kernels.OutputStream:
		o.stream(out.Stream, out.Text)
	case kernels.OutputDisplay, kernels.OutputResult, kernels.OutputUpdate:
		o.display(out)
	case kernels.OutputError:
		o.failed(out.Error)
	case kernels.OutputClear:
		if o.cleared = out.Wait; !out.Wait {
			o.clear()
		}
	case kernels.OutputInput:
		o.asked = out.Text
	case kernels.OutputAnswer:
		o.answer(out)
	case kernels.OutputNotice:
		o.notice(out.Notice.String())
	}
}

// stream adds to a stream, which goes on where the last output is the same.
func (o *outputs) stream(name, text string) {
	o.settle()
	if !o.fits(textSize(text), 0) {
		return
	}
	if last := o.last(); o.text == nil || last.Name != name {
		o.put(&Output{Type: Stream, Name: name})
	}
	o.text = append(o.text, text)
}

// answer adds a prompt with its answer, as programs do that run notebooks: as text that was printed.
func (o *outputs) answer(out kernels.Output) {
	line := out.Text
	if out.Password {
		line = hidden
	}
	o.stream("stdout", o.asked+line+"\n")
	o.asked = ""
}

// display adds a display or a result, or replaces what is shown: a display of an id that is there already does both.
func (o *outputs) display(out kernels.Output) {
	c, size := o.displays[out.DisplayID], bundleSize(out.Data)
	update := out.Kind == kernels.OutputUpdate
	if update && c == nil {
		return
	}
	own, growth := size, int64(0)
	if update {
		own = 0
	} else {
		o.settle()
	}
	if c != nil {
		growth = (size - c.size) * c.count
	}
	if !o.fits(own, growth) {
		return
	}
	if c == nil {
		c = &content{}
	}
	c.data, c.metadata, c.size = bundleOf(out.Data), objectOf(out.Metadata), size
	if !update {
		o.show(c, out)
	}
}

// show adds an output with a content.
func (o *outputs) show(c *content, out kernels.Output) {
	if out.DisplayID != "" {
		o.displays[out.DisplayID] = c
	}
	c.count++
	o.shown = append(o.shown, c)
	added := &Output{Type: Display}
	if out.Kind == kernels.OutputResult {
		added.Type, added.ExecutionCount = Result, out.ExecutionCount
	}
	o.put(added)
	*o.pending = append(*o.pending, shown{added, c})
}

func (o *outputs) failed(e *kernels.ExecError) {
	o.settle()
	if e == nil || !o.fits(textSize(strings.Join(e.Traceback, "\n"))+int64(len(e.Value)), 0) {
		return
	}
	o.put(&Output{Type: Error, EName: e.Name, EValue: e.Value, Traceback: e.Traceback})
}

// notice adds a remark of ours, as an output of its own.
func (o *outputs) notice(text string) {
	o.settle()
	o.put(&Output{Type: Stream, Name: "stderr", Text: text + "\n"})
}

// settle makes a clear_output that waited for the next output happen.
func (o *outputs) settle() {
	if o.cleared {
		o.clear()
	}
}

func (o *outputs) clear() {
	o.flush()
	for _, c := range o.shown {
		c.count--
	}
	o.cell.Outputs, o.shown, o.cleared = nil, nil, false
	o.used, o.missing, o.lost = 0, 0, 0
}

func (o *outputs) last() *Output {
	if n := len(o.cell.Outputs); n > 0 {
		return o.cell.Outputs[n-1]
	}
	return nil
}

func (o *outputs) put(out *Output) {
	o.flush()
	o.cell.Outputs = append(o.cell.Outputs, out)
}

// flush gives the last output the text that was joined.
func (o *outputs) flush() {
	if o.text != nil {
		o.last().Text = strings.Join(o.text, "")
		o.text = nil
	}
}

// fits takes room for an output, and for what it makes others grow; an output for which there is none is counted.
func (o *outputs) fits(size, growth int64) bool {
	if o.used+o.grown+size+growth > o.left {
		o.missing++
		o.lost += size + max(0, growth)
		return false
	}
	o.used += size
	o.grown += growth
	return true
}

// end says what is missing and why the cell ended, and returns the room that the cell has taken.
func (o *outputs) end() int64 {
	o.cleared = false // nothing came that it waited for
	if o.missing > 0 {
		o.notice(fmt.Sprintf("… %s (%s) of this cell left out: a notebook has at most %s of a cell and %s of a session …",
			words.Count(int64(o.missing), "output"), words.Bytes(o.lost), words.Bytes(maxCell), words.Bytes(MaxBytes)))
	}
	if o.failure != "" {
		o.notice(o.failure)
	}
	o.flush()
	return o.used + o.grown
}

// textSize is about what a text takes in a file, where every line is one.
func textSize(text string) int64 { return int64(len(text) + 12*strings.Count(text, "\n")) }

func bundleSize(data map[string]json.RawMessage) int64 {
	size := 0
	for mime, value := range data {
		size += len(mime) + len(value)
	}
	return int64(size)
}
