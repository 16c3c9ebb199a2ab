package viewer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"strconv"

	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/web/render"
)

const (
	// maxItems bounds what of one cell is shown: texts, pictures, tables. More is counted.
	maxItems = 400
	// otherItems is the key of the item that counts those that are not shown.
	otherItems = "more"
	// maxTurns is how often stdout and stderr take turns in items of their own. What comes behind them is one text.
	maxTurns = foldAbove
)

// turnMarks begin what a stream has of a text of both: as on a terminal, but for stderr's colour.
var turnMarks = map[string]string{"stdout": "\x1b[0m", "stderr": "\x1b[0;33m"}

// shown is what one cell shows: its outputs, after clear_output and update_display have had their effect, as a notebook does it. What
// was made of the same outputs has the same keys, whoever makes it.
type shown struct {
	session            string
	number, generation int
	shift              int             // what the session's numbers of cells are more than its kernel's
	all                bool            // no text is folded
	whole              map[string]bool // nor those of items with these keys
	kept               *keeping        // of a page that fetches nothing; nil for the viewer's own
	items              []*item
	hidden, counted    int64 // items that are not shown, and how many of them were told by take
	next               int   // where to read on
	clears             bool  // the next output takes the place of all so far
	cleared            bool  // everything that was there is gone since the last take
	foreign            []*item
	hint               func(kernels.ExecError) string // what to do about an error; nil: nothing is known
	advice             advice
}

// item is one thing that a cell shows.
type item struct {
	// Key names it within its cell. Kind is its class in the page.
	Key, Kind string
	// Display names a display that updates of any cell of the same kernel replace.
	Display string

	number, index int // of the output whose content it has
	out           kernels.Output
	made          template.HTML // instead of out, what is shown by its address
	apart         bool          // out is read again when it is shown
	text          *foldedText
	mixed         string          // of a text of both streams, the one that wrote last; empty for a text of one
	answer        *kernels.Output // to a prompt
	changed       bool
}

// add applies one output.
func (s *shown) add(n sessions.Numbered) {
	s.next = n.Next
	switch n.Kind {
	case kernels.OutputStream:
		s.settle()
		s.stream(n)
	case kernels.OutputDisplay, kernels.OutputResult:
		s.settle()
		s.put(n, "display")
	case kernels.OutputUpdate:
		s.update(n)
	case kernels.OutputError:
		s.settle()
		s.put(n, "failed")
	case kernels.OutputInput:
		s.settle()
		s.put(n, "asked")
	case kernels.OutputAnswer:
		s.answer(n.Output)
	case kernels.OutputNotice:
		s.settle()
		s.put(n, "notice")
	case kernels.OutputClear:
		if s.clears = n.Wait; !n.Wait {
			s.clear()
		}
	}
}

func (s *shown) settle() {
	if s.clears {
		s.clear()
	}
}

func (s *shown) clear() {
	s.items, s.hidden, s.counted, s.clears, s.cleared = nil, 0, 0, false, true
	s.advice.news = s.advice.text != ""
}

// stream adds text, which goes on where the last item is the same stream, or one of both.
func (s *shown) stream(n sessions.Numbered) {
	kind := "stdout"
	if n.Stream == "stderr" {
		kind = "stderr"
	}
	last := s.last()
	if last == nil || last.text == nil || last.Kind != kind && last.mixed == "" || s.hidden > 0 {
		if last = s.newText(n, kind); last == nil {
			return
		}
	}
	if last.mixed != "" && last.mixed != kind {
		last.mixed = kind
		last.text.add(turnMarks[kind])
	}
	last.text.add(n.Text)
	last.changed = true
}

// newText adds an item for a stream's text, and after many turns for that of both; nil if there is no room.
func (s *shown) newText(n sessions.Numbered, kind string) *item {
	mixed := ""
	if s.turns() {
		kind, mixed = "stdout", "stdout"
	}
	it := s.put(n, kind)
	if it != nil {
		it.text, it.mixed = &foldedText{all: s.unfolds(it)}, mixed
	}
	return it
}

// turns tells whether the last items are many texts.
func (s *shown) turns() bool {
	for i := range maxTurns {
		if at := len(s.items) - 1 - i; at < 0 || s.items[at].text == nil {
			return false
		}
	}
	return true
}

func (s *shown) last() *item {
	if len(s.items) == 0 {
		return nil
	}
	return s.items[len(s.items)-1]
}

// put adds an item, nil if there is no room for more.
func (s *shown) put(n sessions.Numbered, kind string) *item {
	if len(s.items) >= maxItems {
		s.hidden++
		return nil
	}
	it := &item{Key: strconv.Itoa(n.Index), Kind: kind, changed: true}
	if kind == "notice" {
		it.Key = "n" + it.Key // it has the index of what follows it
	}
	if kind != "stdout" && kind != "stderr" {
		s.fill(it, n.Output, s.number, n.Index)
	}
	if n.DisplayID != "" {
		it.Display = displayName(s.generation, n.DisplayID)
	}
	s.items = append(s.items, it)
	return it
}

// fill gives an item the content of an output of some cell. What the page fetches by its address is not kept.
func (s *shown) fill(it *item, out kernels.Output, number, index int) {
	it.out, it.made, it.apart, it.number, it.index = out, "", false, number, index
	switch {
	case !render.ByAddress(out):
	case s.kept != nil:
		it.out, it.apart = kernels.Output{}, true
	default:
		it.out, it.made = kernels.Output{}, render.Bundle(out, s.pageOf(it, out))
	}
}

// unfolds tells whether all of an item's text is shown.
func (s *shown) unfolds(it *item) bool { return s.all || s.whole[it.Key] }

// answer puts an answer behind the prompt that it is to.
func (s *shown) answer(out kernels.Output) {
	for i := len(s.items) - 1; i >= 0; i-- {
		if it := s.items[i]; it.Kind == "asked" {
			if it.answer == nil {
				it.answer, it.changed = &out, true
			}
			return
		}
	}
}

// update replaces what is shown of a display, here and, as foreign, in other cells.
func (s *shown) update(n sessions.Numbered) {
	name := displayName(s.generation, n.DisplayID)
	for _, it := range s.items {
		if it.Display == name {
			s.fill(it, n.Output, s.number, n.Index)
			it.changed = true
		}
	}
	elsewhere := &item{Kind: "display", Display: name}
	s.fill(elsewhere, n.Output, s.number, n.Index)
	s.foreign = append(s.foreign, elsewhere)
	if len(s.foreign) > maxItems {
		s.foreign = s.foreign[1:]
	}
}

// displayName is the name of a display in a page: what a kernel calls it is no attribute's value.
func displayName(generation int, id string) string {
	if id == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("%d-%s", generation, hex.EncodeToString(sum[:8]))
}

// take returns what has changed since the last time: whether all that was there is gone, the items that are new or other, and updates of
// displays that may be in other cells.
func (s *shown) take() (cleared bool, changed, foreign []*item) {
	for _, it := range s.items {
		if it.changed {
			it.changed = false
			changed = append(changed, it)
		}
	}
	if s.hidden > s.counted {
		changed = append(changed, s.rest())
	}
	s.counted = s.hidden
	if s.advice.news {
		changed = append(changed, s.advice.item())
	}
	s.advice.news = false
	seen := map[string]bool{}
	for i := len(s.foreign) - 1; i >= 0; i-- { // the last of each display counts
		if it := s.foreign[i]; !seen[it.Display] {
			seen[it.Display] = true
			foreign = append(foreign, it)
		}
	}
	cleared, s.cleared, s.foreign = s.cleared, false, nil
	return cleared, changed, foreign
}

// rest is the item that counts those that are not shown.
func (s *shown) rest() *item {
	return &item{Key: otherItems, Kind: "notice"}
}

// itemView is an item on its way to a page.
type itemView struct {
	*item
	HTML template.HTML
}

// Copies tells whether the item may be a text or a table, which has a button to be copied by. The style sheet hides that of one that is none.
func (v itemView) Copies() bool {
	return v.text != nil || v.Kind == "failed" || v.Kind == "display"
}

// views are all items of the cell, made.
func (s *shown) views() (views []itemView) {
	for _, it := range s.shownItems() {
		views = append(views, itemView{it, s.html(it)})
	}
	return views
}

// shownItems are all items of the cell, with what is said behind them.
func (s *shown) shownItems() []*item {
	items := s.items
	if s.hidden > 0 {
		items = append(items[:len(items):len(items)], s.rest())
	}
	if s.advice.text != "" {
		items = append(items[:len(items):len(items)], s.advice.item())
	}
	return items
}

// html is what an item shows.
func (s *shown) html(it *item) template.HTML {
	switch {
	case it.Key == otherItems:
		return s.inNotebook(words.Count(s.hidden, "more output") + " of this cell")
	case it.Key == adviceKey:
		return s.advice.html()
	case it.made != "":
		return it.made
	case it.apart:
		out, _ := s.kept.of.OutputAt(it.index)
		return render.Bundle(out, s.pageOf(it, out))
	case it.text != nil:
		return it.text.html(s.address(textAddress(s.session, s.number)))
	case it.out.Notice != nil:
		return remark(it.out.Notice.String())
	case it.Kind == "asked":
		return prompted(it.out, it.answer)
	case it.out.Error != nil:
		return s.failed(*it.out.Error)
	}
	return render.Bundle(it.out, s.pageOf(it, it.out))
}

// address is that of something of the session, by its path; empty where the page that shows the cell has no way there.
func (s *shown) address(path string) string {
	if s.kept != nil {
		return s.kept.address(path)
	}
	return path
}

// failed is an error, with what the model is told to do about it.
func (s *shown) failed(e kernels.ExecError) template.HTML {
	made := render.Error(e, s.shift)
	if s.hint != nil {
		made += remark(s.hint(e))
	}
	return made
}

// prompted is a prompt, with what was answered.
func prompted(prompt kernels.Output, answer *kernels.Output) template.HTML {
	made := `<pre>` + template.HTMLEscapeString(clipText(prompt.Text, maxPrompt))
	switch {
	case answer != nil && answer.Password:
		made += `<kbd aria-label="a password">········</kbd>`
	case answer != nil:
		made += `<kbd>` + template.HTMLEscapeString(answer.Text) + `</kbd>`
	}
	return template.HTML(made + `</pre>`)
}

// place is where an output stands: its session, the cell that made it, and its index there.
type place struct {
	session       string
	number, index int
	all           bool // its text is not folded
}

// pageOf is where an item's output stands.
func (s *shown) pageOf(it *item, out kernels.Output) render.Page {
	at := place{session: s.session, number: it.number, index: it.index, all: s.unfolds(it)}
	if s.kept != nil {
		return keptPlace{at, s.kept, out}
	}
	return at
}

func (p place) base() string {
	return fmt.Sprintf("/s/%s/cells/%d/outputs/%d", p.session, p.number, p.index)
}

func (p place) Raw(mime string) string {
	return p.base() + "?mime=" + template.URLQueryEscaper(mime)
}

func (p place) Frame() string { return p.base() + "/frame" }

func (p place) Text(text string) template.HTML {
	folded := foldedText{all: p.all}
	folded.add(text)
	return folded.html(textAddress(p.session, p.number))
}
