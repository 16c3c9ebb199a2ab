package viewer

import (
	"encoding/json"
	"strings"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

// Where the cells of a block are too large together, the last ones have what they have, and of the others each a little; what was left
// out is there when one of them is asked for alone.
func TestBlockIsShared(t *testing.T) {
	p := newPages(t)
	b := p.signIn("ann", all...)
	for range 3 {
		p.ran("ann", "s", "print small\nflood 1000000\nprint end")
		p.ran("ann", "s", "print tiny")
	}
	infos, err := p.sessions.ExecutionPage(t.Context(), b.who.owner, "s", 1, 6)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		left    int64
		crowded string // the cells that are
	}{
		{maxBlockBytes, ""}, {maxCellBytes + 3_000_000, ""}, {1_500_000, "1 3"}, {0, "1 3 5"},
	} {
		made := block{v: p.viewer, owner: b.who.owner, id: "s", from: 1, left: tt.left}
		crowded := ""
		for _, view := range made.views(t.Context(), infos) {
			text := ""
			for _, it := range view.Items {
				text += string(it.HTML)
			}
			begun, ended := strings.Contains(text, "small"), strings.Contains(text, "end\n")
			if view.Crowded {
				crowded += " " + string(rune('0'+view.Number))
			}
			if even := view.Number%2 == 0; even && !strings.Contains(text, "tiny") || !even && (!begun || ended == view.Crowded) || view.Unread != "" {
				t.Errorf("of %d bytes, cell %d (crowded: %v) shows %.100q", tt.left, view.Number, view.Crowded, text)
			}
		}
		if crowded = strings.TrimSpace(crowded); crowded != tt.crowded {
			t.Errorf("of %d bytes, the cells %q are cut, want %q", tt.left, crowded, tt.crowded)
		}
		if tt.left < minCellBytes && made.left < -6*minCellBytes {
			t.Errorf("%d bytes more than there were are read", -made.left)
		}
	}
}

// A picture costs next to nothing, however large it is: the page fetches it by its address.
func TestPicturesAreNotKept(t *testing.T) {
	picture := kernels.Output{Kind: kernels.OutputDisplay, DisplayID: "d", Data: map[string]json.RawMessage{
		"image/png": json.RawMessage(`"iVBORw0KGgo` + strings.Repeat("A", 8<<20) + `"`), "text/plain": json.RawMessage(`"<Figure>"`)}}
	s := newShown("s", sessions.ExecutionInfo{Number: 3, Generation: 1})
	may := budget{outputs: maxCellOutputs, bytes: maxCellBytes, strict: true}
	for i := range 20 {
		if !may.takes(picture) {
			t.Fatalf("there is no room for picture %d", i)
		}
		feed(s, picture)
	}
	for _, it := range s.views() {
		if it.out.Data != nil || !strings.Contains(string(it.HTML), `src="/s/s/cells/3/outputs/`+it.Key+`?mime=image%2Fpng"`) {
			t.Errorf("of %s are kept %d forms; it is %.300s", it.Key, len(it.out.Data), it.HTML)
		}
	}
	feed(s, displayed(kernels.OutputUpdate, "d", "text now"))
	if html := string(s.views()[0].HTML); !strings.Contains(html, "text now") {
		t.Errorf("updated, it is %.300s", html)
	}
}
