package render

import (
	"html/template"
	"strings"
	"testing"
)

// alone is a page that has no way to a server: it holds pictures, as far as they have room.
type alone struct{ room bool }

func (a alone) Raw(mime string) string {
	if a.room && IsPicture(mime) {
		return "data:" + mime + ";base64,iVBORw0KGgo="
	}
	return ""
}
func (alone) Frame() string                  { return "" }
func (alone) Text(text string) template.HTML { return there{}.Text(text) }

// A page without frames shows a picture instead, or what is left of the HTML; and where nothing is, says so.
func TestStill(t *testing.T) {
	const styled = `<style>#T_1{color:red}</style><table id="T_1"><tr><td style="color:red">1.5</td></tr></table>`
	chart := `<div id="x" style="height:400px"></div><script>Plotly.newPlot("x")</script>`
	for name, tt := range map[string]struct {
		out  []any
		want string
		not  string
	}{
		"a table with styles":     {[]any{"text/html", styled, "text/plain", "<Styler>"}, `<table><tbody><tr><td class="number">1.5</td>`, "style"},
		"a chart":                 {[]any{"text/html", chart, "text/plain", "Figure()"}, "An interactive output", "Plotly"},
		"a chart with a picture":  {[]any{"text/html", chart, "image/png", "iVBORw0KGgo="}, `<figure class="picture"><img `, "interactive"},
		"a script":                {[]any{"application/javascript", "alert(1)"}, "An interactive output", "alert"},
		"large HTML":              {[]any{"text/html", strings.Repeat("<b>x</b>", maxTable/4)}, "An interactive output", "<b>"},
		"a plain table":           {[]any{"text/html", "<table><tr><td>a</td></tr></table>"}, "<td>a</td>", "interactive"},
		"what nobody can show":    {[]any{"application/x-mine", "a"}, "application/x-mine (3 bytes)", "href"},
		"a picture, with no link": {[]any{"image/png", "iVBORw0KGgo=", "text/plain", "<Figure>"}, `src="data:image/png;base64,iVBORw0KGgo="`, "href"},
	} {
		if made := string(Bundle(bundle(tt.out...), alone{room: true})); !strings.Contains(made, tt.want) || strings.Contains(made, tt.not) {
			t.Errorf("%s: %.300s", name, made)
		}
	}
	if made := Bundle(bundle("image/png", "iVBORw0KGgo="), alone{}); made != remark("A picture that is too large to be shown here.") {
		t.Errorf("without room: %s", made)
	}
	for _, attack := range attacks {
		for _, mime := range []string{"text/html", "image/svg+xml", "application/javascript", attack} {
			for _, page := range []alone{{room: true}, {}} {
				checkSafe(t, mime+" of "+attack, Bundle(bundle(mime, attack), page))
			}
		}
	}
}
