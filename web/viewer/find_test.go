package viewer

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// What is looked for is found in code and in what cells have put out, in capitals or not, in the order of the cells, by its owner alone.
func TestFind(t *testing.T) {
	p := newPages(t)
	for _, code := range []string{"print Needle in hay", "x = 1", "needle = 2", "print more hay"} {
		p.ran("ann", "s", code)
	}
	ann := p.signIn("ann", all...)
	for text, want := range map[string][]int{"needle": {1, 3}, "NEEDLE IN": {1}, "hay": {1, 4}, "straw": {}} {
		var got struct {
			Cells   []int
			Partial bool
		}
		if err := json.Unmarshal([]byte(ann.want(200, "GET", "/s/s/find?text="+url.QueryEscape(text), nil)), &got); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Cells, want) || got.Partial {
			t.Errorf("%q: %+v, want %v", text, got, want)
		}
	}
	ann.want(400, "GET", "/s/s/find?text=", nil)
	ann.want(400, "GET", "/s/s/find?text="+strings.Repeat("x", 201), nil)
	p.signIn("bob", all...).want(404, "GET", "/s/s/find?text=hay", nil)
}
