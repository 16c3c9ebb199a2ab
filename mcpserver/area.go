package mcpserver

import (
	"bytes"

	"cellblock/kernels"
)

// area is what a notebook shows below one cell: stream texts are joined, clear_output clears, and a display that is
// updated changes at its place. Outputs go in as they come; content.go makes blocks of what is there in the end.
type area struct {
	place place
	index int // of the output that comes next, among all of its cell; -1 where that is not known
	items []*item
	byID  map[string]*item
	clear bool // clear_output(wait=True): at the next output
	held  int  // bytes of the items' bundles
}

// item is one thing in an area.
type item struct {
	kind  kernels.OutputKind
	index int
	text  longText // of both streams, in turn
	out   kernels.Output
	// tooMuch tells that the bundle's large forms were let go, because the cell shows more than a call can hold.
	tooMuch bool
	// like is an earlier item with the same image, nil if there is none; seen tells that this one's image is in the result.
	like *item
	seen bool
	// crowded tells that all there was to show is an image for which there was no room.
	crowded bool
}

const (
	// maxHeld bounds the bundles that an area holds, in bytes: far more than any result shows, far less than a cell may
	// show. Of what comes beyond it, forms over largeForm are only named.
	maxHeld   = 32 << 20
	largeForm = 16 << 10
)

func newArea() *area { return &area{index: -1, byID: map[string]*item{}} }

// add puts an output where a notebook would.
func (a *area) add(out kernels.Output) {
	switch out.Kind {
	case kernels.OutputClear:
		if a.clear = out.Wait; !out.Wait {
			a.wipe()
		}
		return
	case kernels.OutputOther, kernels.OutputInput, kernels.OutputAnswer:
		return // widgets' messages; prompts, which the user has seen, and his answers, which are the code's
	}
	if a.clear {
		a.wipe()
	}
	switch out.Kind {
	case kernels.OutputStream:
		a.addText(out)
	case kernels.OutputNotice:
		a.items = append(a.items, &item{kind: out.Kind, out: out})
	case kernels.OutputUpdate:
		if shown := a.byID[out.DisplayID]; shown != nil {
			a.held -= bundleSize(shown.out.Data)
			shown.out.Data, shown.index = out.Data, a.index
			a.hold(shown)
			return
		}
		a.addItem(out) // a display of an earlier cell: what it shows now is news
	default:
		a.addItem(out)
	}
}

func (a *area) wipe() { *a = area{place: a.place, index: a.index, byID: map[string]*item{}} }

// addText goes on in the last item if that is a text, of either stream.
func (a *area) addText(out kernels.Output) {
	if len(a.items) == 0 || a.items[len(a.items)-1].kind != kernels.OutputStream {
		a.items = append(a.items, &item{kind: kernels.OutputStream})
	}
	a.items[len(a.items)-1].text.addOf(out.Text, out.Stream == "stderr")
}

func (a *area) addItem(out kernels.Output) {
	it := &item{kind: out.Kind, index: a.index, out: out}
	a.items = append(a.items, it)
	a.hold(it)
	if out.DisplayID != "" {
		a.byID[out.DisplayID] = it
	}
}

// hold counts an item's bundle, and lets go of its large forms if there is no room for them.
func (a *area) hold(it *item) {
	size := bundleSize(it.out.Data)
	it.out.Metadata = nil // nobody shows it
	if it.tooMuch = a.held+size > maxHeld && size > largeForm; it.tooMuch {
		small := mimeBundle{}
		for mime, value := range it.out.Data {
			if len(value) <= largeForm {
				small[mime] = bytes.Clone(value) // it shares the memory of the large ones
			}
		}
		it.out.Data, size = small, bundleSize(small)
	}
	a.held += size
}

func bundleSize(data mimeBundle) (size int) {
	for mime, value := range data {
		size += len(mime) + len(value)
	}
	return size
}

// hasError tells whether the area shows an error.
func (a *area) hasError() bool {
	for _, it := range a.items {
		if it.kind == kernels.OutputError {
			return true
		}
	}
	return false
}
