package render

import (
	"iter"
	"slices"
	"strings"
	"testing"

	"cellblock/kernels"
)

// What Bokeh writes for a notebook in several outputs is put together in one document, and nothing but the plot is seen.
func TestBokeh(t *testing.T) {
	load := bundle("application/javascript", "old", bokehLoad, "new()"+strings.Repeat(" ", minLibrary))
	fetches := bundle("application/javascript", "old", bokehLoad, "fetch()")
	place := bundle("text/html", "\n<div id=\"b1\" data-root-id=\"p1\" style=\"display: contents;\"></div>\n")
	script := bundle("application/javascript", `Bokeh.embed("b1")`, bokehExec, "")
	if Library(load) != bokeh || Library(fetches) != "" || !slices.Equal(Uses(script), []string{bokeh}) || Uses(place) != nil {
		t.Error("the library is not told from what uses it")
	}
	if made := Bundle(place, there{}) + Bundle(bundle("text/html", `<style>.bk-notebook-logo {}</style><span>Loading BokehJS ...</span>`), there{}); made != "" {
		t.Errorf("a place is shown as %s", made)
	}
	if made := Bundle(fetches, there{}); !strings.Contains(string(made), "INLINE") {
		t.Errorf("nobody is told what to write: %s", made)
	}
	other, text := bundle("text/html", `<div id="b2" data-root-id="p1"></div>`), bundle("text/html", "<p>b1</p>")
	before := func(outputs ...kernels.Output) iter.Seq[kernels.Output] { return slices.Values(outputs) }
	whole := FrameOf(Placed(script, before(kernels.Output{Text: "b1"}, other, place)), []kernels.Output{load}, true)
	for _, want := range []string{`<div hidden><script>new()`, `data-root-id="p1" style="display: contents;"></div>` + "\n<div></div><script>((element) => {{Bokeh.embed(\"b1\")\n}})(cellblockElement())</script>"} {
		if !strings.Contains(whole, want) {
			t.Errorf("no %s in\n%s", want, whole)
		}
	}
	if strings.Contains(whole, `<p class="cellblock-blocked">`) {
		t.Error("it says that there is no library, and there is")
	}
	if made := FrameOf(script, nil, false); !strings.Contains(made, "was not found") {
		t.Errorf("it says that what may have been loaded was not:\n%s", made)
	}
	if made := FrameOf(script, nil, true); !strings.Contains(made, `<p class="cellblock-blocked">Bokeh would load itself`) {
		t.Errorf("nobody is told why nothing is drawn:\n%s", made)
	}
	if len(Placed(script, before(other, text)).Data["text/html"]) > 0 || len(Placed(text, before(place)).Data) != 1 {
		t.Error("what is no place became one")
	}
}
