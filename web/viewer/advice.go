package viewer

import (
	"html/template"

	"cellblock/kernels"
)

// adviceKey is the key of the item behind all others of a cell that says what to do about what the cell has printed.
const adviceKey = "advice"

// advice is what a model is told to do about what a cell has printed, for people.
type advice struct {
	find func(texts []string, failed *kernels.ExecError) string // nil: nothing is known
	text string
	read int  // the outputs that it was found in are those before this one
	news bool // the page has not been told of it
}

// advise looks for what to do about what a cell has printed, when it has ended.
func (s *shown) advise(failed *kernels.ExecError) {
	a := &s.advice
	if a.find == nil || a.read == s.next {
		return
	}
	var texts []string
	for _, it := range s.items {
		switch {
		case it.text != nil:
			texts = append(texts, it.text.head.String()+it.text.tail.String())
		case it.out.Error != nil:
			texts = append(texts, it.out.Error.Value)
		}
	}
	before := a.text
	a.text, a.read = a.find(texts, failed), s.next
	a.news = a.news || a.text != before
}

// item is the item that tells of the advice.
func (a *advice) item() *item { return &item{Key: adviceKey, Kind: "notice"} }

func (a *advice) html() template.HTML { return remark(a.text) }

// remark is a sentence of ours below an output; nothing for none.
func remark(text string) template.HTML {
	if text == "" {
		return ""
	}
	return template.HTML(`<p class="remark">` + template.HTMLEscapeString(text) + `</p>`)
}
