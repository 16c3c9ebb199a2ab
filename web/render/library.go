package render

import (
	"html/template"
	"iter"
	"maps"
	"regexp"
	"strings"

	"cellblock/internal/words"
	"cellblock/kernels"
)

// The types of what Bokeh writes for a notebook: one output loads its library, and for each plot one is the place and the next the
// script that draws there.
const (
	bokehLoad = "application/vnd.bokehjs_load.v0+json"
	bokehExec = "application/vnd.bokehjs_exec.v0+json"
)

// The libraries that an output may load for those after it, by the word that whatever uses them has.
const (
	plotly = "Plotly"
	bokeh  = "Bokeh"
)

// minLibrary is the least size of an output that is taken for a library, in bytes.
const minLibrary = 20 << 10

// maxPlace bounds the HTML of a place, in bytes.
const maxPlace = 4 << 10

// inlineBokeh says what to write where Bokeh would fetch its library.
const inlineBokeh = "Bokeh would load itself from the network, which outputs do not have. Before the plot, write: from bokeh.resources import INLINE; output_notebook(INLINE)"

// lostBokeh says what to write where it is not known whether the library was loaded.
const lostBokeh = "The output that loads Bokeh was not found: not all outputs before this one could be looked through. Run output_notebook(INLINE) again, before the plot"

// Library names the library that an output only loads, for later outputs of the same kernel: Plotly's and Bokeh's first. It is empty
// for any other output, and for one that would fetch its library.
func Library(out kernels.Output) string {
	if raw, ok := out.Data[bokehLoad]; ok {
		if len(raw) < minLibrary {
			return ""
		}
		return bokeh
	}
	source := out.Data["text/html"]
	if len(source) < minLibrary {
		return ""
	}
	if head := string(source[:minLibrary]); strings.Contains(head, "window.PlotlyConfig") && !strings.Contains(head, "newPlot(") {
		return plotly
	}
	return ""
}

// Uses names the libraries that an output may count on.
func Uses(out kernels.Output) (libraries []string) {
	source := scripted(out)
	if strings.Contains(source, plotly) {
		libraries = append(libraries, plotly)
	}
	if _, draws := out.Data[bokehExec]; draws || strings.Contains(source, bokeh) {
		libraries = append(libraries, bokeh)
	}
	return libraries
}

// libraryForm is what an output shows that loads a library, or wants to.
func libraryForm(out kernels.Output) (template.HTML, bool) {
	if Library(out) != "" {
		return remark("A library for the outputs that follow was loaded here (" + words.Bytes(size(out)) + ")."), true
	}
	if _, ok := out.Data[bokehLoad]; ok {
		return remark(inlineBokeh + "."), true
	}
	return "", false
}

// missesBokeh tells whether a plot of Bokeh's has no library to draw it.
func missesBokeh(out kernels.Output, libraries []kernels.Output) bool {
	if _, ok := out.Data[bokehExec]; !ok {
		return false
	}
	for _, l := range libraries {
		if Library(l) == bokeh {
			return false
		}
	}
	return true
}

// emptyPlace is the HTML of an output before a script of Bokeh's: where that draws.
var emptyPlace = regexp.MustCompile(`^\s*<div\s[^<>]*data-root-id="[^"<>]*"[^<>]*>\s*</div>\s*$`)

// isPlace tells whether an output shows nothing by itself: it is where a later one draws, or Bokeh's banner, which says for ever that
// it is loading.
func isPlace(out kernels.Output) bool {
	raw := out.Data["text/html"]
	if len(raw) == 0 || len(raw) >= minLibrary { // both are short
		return false
	}
	source := textOf(raw)
	return emptyPlace.MatchString(source) || strings.Contains(source, "bk-notebook-logo") && strings.Contains(source, "Loading BokehJS")
}

var placeID = regexp.MustCompile(`\sid="([^"<>]+)"`)

// Placed is an output together with the place that one of those before it, the last first, made for it, if it draws there: both need
// to be in one document. Only where it may need one are those before it asked for.
func Placed(out kernels.Output, before iter.Seq[kernels.Output]) kernels.Output {
	if _, ok := out.Data[bokehExec]; !ok || len(out.Data["text/html"]) > 0 {
		return out
	}
	source := scripted(out)
	for place := range before {
		if len(place.Data["text/html"]) > maxPlace {
			continue
		}
		made := textOf(place.Data["text/html"])
		if id := placeID.FindStringSubmatch(made); id != nil && emptyPlace.MatchString(made) && strings.Contains(source, id[1]) {
			out.Data = maps.Clone(out.Data)
			out.Data["text/html"] = place.Data["text/html"]
			return out
		}
	}
	return out
}
