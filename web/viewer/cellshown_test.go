package viewer

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

// feed applies outputs, each with its index.
func feed(s *shown, outs ...kernels.Output) {
	for _, out := range outs {
		s.add(sessions.Numbered{Output: out, Index: s.next, Next: s.next + 1})
	}
}

func printed(name, text string) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: name, Text: text}
}

func displayed(kind kernels.OutputKind, id, text string) kernels.Output {
	raw, _ := json.Marshal(text) // a string is JSON
	return kernels.Output{Kind: kind, DisplayID: id, Data: map[string]json.RawMessage{"text/plain": raw}}
}

func asks(text string, password bool) kernels.Output {
	return kernels.Output{Kind: kernels.OutputInput, Text: text, Password: password}
}

func answers(text string, password bool) kernels.Output {
	return kernels.Output{Kind: kernels.OutputAnswer, Text: text, Password: password}
}

// seen is what a cell shows, an item on each line: its key and its text.
func seen(s *shown) string {
	var b strings.Builder
	for _, it := range s.views() {
		text := strings.NewReplacer(`<pre class="text">`, "", "<pre>", "", "</pre>", "", "\n", "/").Replace(string(it.HTML))
		fmt.Fprintf(&b, "%s %s %s\n", it.Key, it.Kind, strings.TrimSuffix(text, "/"))
	}
	return strings.TrimSpace(b.String())
}

func TestWhatACellShows(t *testing.T) {
	clear := func(wait bool) kernels.Output { return kernels.Output{Kind: kernels.OutputClear, Wait: wait} }
	const display, update = kernels.OutputDisplay, kernels.OutputUpdate
	for name, tt := range map[string]struct {
		outs []kernels.Output
		want string
	}{
		"a stream in pieces":      {[]kernels.Output{printed("stdout", "a"), printed("stdout", "b\n")}, "0 stdout ab"},
		"streams that take turns": {[]kernels.Output{printed("stdout", "a"), printed("stderr", "b"), printed("stdout", "c")}, "0 stdout a\n1 stderr b\n2 stdout c"},
		"a stream of any name":    {[]kernels.Output{printed(`x" onload="`, "a")}, "0 stdout a"},
		"clear":                   {[]kernels.Output{printed("stdout", "a"), clear(false), printed("stdout", "b")}, "2 stdout b"},
		"clear, waiting":          {[]kernels.Output{printed("stdout", "a"), clear(true)}, "0 stdout a"},
		"clear, waited":           {[]kernels.Output{printed("stdout", "a"), clear(true), printed("stdout", "b")}, "2 stdout b"},
		"an update":               {[]kernels.Output{displayed(display, "d", "1"), printed("stdout", "a"), displayed(update, "d", "2")}, "0 display 2\n1 stdout a"},
		"an update of another":    {[]kernels.Output{displayed(display, "d", "1"), displayed(update, "e", "2")}, "0 display 1"},
		"comms":                   {[]kernels.Output{{Kind: kernels.OutputOther}}, ""},
		"a prompt":                {[]kernels.Output{asks("<b>?", false)}, "0 asked &lt;b&gt;?"},
		"an answer":               {[]kernels.Output{asks("a? ", false), answers("<i>", false), printed("stdout", "x"), asks("b?", false)}, "0 asked a? <kbd>&lt;i&gt;</kbd>\n2 stdout x\n3 asked b?"},
		"a password":              {[]kernels.Output{asks("word: ", true), answers("", true)}, "0 asked word: <kbd aria-label=\"a password\">········</kbd>"},
		"an answer to nothing":    {[]kernels.Output{asks("a? ", false), {Kind: kernels.OutputClear}, answers("x", false)}, ""},
	} {
		s := newShown("s", sessions.ExecutionInfo{Number: 1, Generation: 1})
		feed(s, tt.outs...)
		if got := seen(s); got != tt.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, tt.want)
		}
	}
}

// What is taken in any portions is, together, what is there in the end.
func TestTakenInPortions(t *testing.T) {
	s := newShown("s", sessions.ExecutionInfo{Number: 1, Generation: 1})
	page := map[string]string{}
	var order []string
	for i := range 200 {
		switch {
		case i%50 == 49:
			feed(s, kernels.Output{Kind: kernels.OutputClear})
		case i%7 == 0:
			feed(s, displayed(kernels.OutputDisplay, "d", fmt.Sprint(i)))
		case i%11 == 0:
			feed(s, displayed(kernels.OutputUpdate, "d", fmt.Sprint(i)))
		default:
			feed(s, printed("stdout", fmt.Sprintln(i)))
		}
		if i%3 != 0 {
			continue
		}
		cleared, changed, _ := s.take()
		if cleared {
			page, order = map[string]string{}, nil
		}
		for _, it := range changed {
			if page[it.Key] == "" {
				order = append(order, it.Key)
			}
			page[it.Key] = string(s.html(it))
		}
	}
	_, rest, _ := s.take()
	for _, it := range rest {
		if page[it.Key] == "" {
			order = append(order, it.Key)
		}
		page[it.Key] = string(s.html(it))
	}
	for i, it := range s.views() {
		if i >= len(order) || order[i] != it.Key || page[it.Key] != string(it.HTML) {
			t.Fatalf("item %d is %s %q, the page has %v", i, it.Key, it.HTML, order)
		}
	}
}

func TestShownIsBounded(t *testing.T) {
	s := newShown("s", sessions.ExecutionInfo{Number: 1, Generation: 1})
	for range 3 * maxItems {
		feed(s, displayed(kernels.OutputDisplay, "", "x"))
	}
	if views := s.views(); len(views) != maxItems+1 || !strings.Contains(string(views[maxItems].HTML), "800 more outputs") ||
		!strings.Contains(string(views[maxItems].HTML), `href="/s/s/notebook"`) || !strings.Contains(string(views[maxItems].HTML), `href="/s/s/cells/1/text"`) {
		t.Errorf("%d items, the last %q", len(views), views[len(views)-1].HTML)
	}
	if _, changed, _ := s.take(); len(changed) != maxItems+1 {
		t.Errorf("%d items are told", len(changed))
	}
	if _, changed, _ := s.take(); len(changed) != 0 {
		t.Errorf("%d items are told again", len(changed))
	}
	s = newShown("s", sessions.ExecutionInfo{Number: 1, Generation: 1})
	for i := range 200_000 {
		feed(s, printed("stdout", fmt.Sprintf("line %d of many\n", i)))
	}
	made := string(s.views()[0].HTML)
	text := s.items[0].text
	if text.head.Len()+text.tail.Len() > 4*keepText || !strings.Contains(made, "line 0 of") || !strings.Contains(made, "line 199999 of") || strings.Contains(made, "line 100000 of") || !strings.Contains(made, `class="unfold"`) {
		t.Errorf("%d and %d bytes are kept: %.2000s", text.head.Len(), text.tail.Len(), made)
	}
	whole := newShown("s", sessions.ExecutionInfo{Number: 1, Generation: 1})
	whole.all = true
	for i := range 200_000 {
		feed(whole, printed("stdout", fmt.Sprintf("line %d of many\n", i)))
	}
	made = string(whole.views()[0].HTML)
	for _, part := range []string{"line 49999 of", "line 199999 of", "between not shown here", `href="/s/s/cells/1/text"`, `class="refold"`} {
		if !strings.Contains(made, part) || len(made) > 2*maxShown {
			t.Errorf("all of it, %d bytes, has no %s", len(made), part)
		}
	}
}

// An error that came before its cell's end names the cell by the session's number once the kernel's is known.
func TestErrorsAreRenumbered(t *testing.T) {
	s := newShown("s", sessions.ExecutionInfo{Number: 11, Generation: 2})
	feed(s, printed("stdout", "a"), kernels.Output{Kind: kernels.OutputError, Error: &kernels.ExecError{
		Name: "NameError", Value: "x", Traceback: []string{"\x1b[31mNameError\x1b[39m  Traceback (most recent call last)", "\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 1\x1b[39m\n\x1b[32m----> 1\x1b[39m x"},
	}})
	s.take()
	s.renumber(sessions.ExecutionInfo{Number: 11, Result: sessions.Result{Result: kernels.Result{ExecutionCount: 1}}})
	_, changed, _ := s.take()
	if len(changed) != 1 || changed[0].Key != "1" || !strings.Contains(string(s.html(changed[0])), "In[11]") {
		t.Errorf("%d items are told again: %s", len(changed), seen(s))
	}
	s.renumber(sessions.ExecutionInfo{Number: 11, Result: sessions.Result{Result: kernels.Result{ExecutionCount: 1}}})
	if _, changed, _ := s.take(); len(changed) != 0 {
		t.Errorf("%d items are told once more", len(changed))
	}
}

// Streams that take turns all the time are a text that folds, whether they are read at once or one by one.
func TestManyTurnsFold(t *testing.T) {
	var s shown
	for i := range 1000 {
		feed(&s, printed("stdout", fmt.Sprintln("loss", i)), printed("stderr", fmt.Sprintln("warning", i)))
		s.take()
	}
	views := s.views()
	if len(views) != maxTurns+1 || views[maxTurns].Key != "40" {
		t.Fatalf("%d items", len(views))
	}
	last := string(views[maxTurns].HTML)
	for _, want := range []string{"loss 20\n", `<span class="term-fg33">warning 20</span>` + "\n", "Show all 1,960 lines", "loss 999\n", `<span class="term-fg33">warning 999</span>`} {
		if !strings.Contains(last, want) {
			t.Errorf("no %s in %s", want, last)
		}
	}
	if strings.Contains(last, "500") {
		t.Error("it is not folded")
	}
	feed(&s, displayed(kernels.OutputDisplay, "", "x"), printed("stderr", "y"))
	if views := s.views(); views[len(views)-1].Kind != "stderr" {
		t.Errorf("behind other output stderr is %s", views[len(views)-1].Kind)
	}
}
