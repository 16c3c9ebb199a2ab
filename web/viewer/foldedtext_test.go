package viewer

import (
	"strings"
	"testing"
)

// A long line is folded as many lines are, short ones are not, and all of it is there when it is asked for.
func TestLongLinesAreFolded(t *testing.T) {
	long := strings.Repeat("0123456789", 20_000)
	for name, one := range map[string]struct {
		text  string
		shown int // at most, of a folded text
		label string
	}{
		"one line":            {"begin" + long + "end", 9000, " between"},
		"a few":               {"begin" + strings.Repeat(long[:50_000]+"\n", 2) + "end", 4500, "Show all 97.7 KiB"},
		"many":                {"begin" + strings.Repeat(long[:2000]+"\n", 60) + "end", 14_000, "Show all 61 lines"},
		"short, however many": {"begin" + strings.Repeat("x\n", 39) + "end", 0, ""},
		"one that fits":       {"begin" + long[:3900] + "end", 0, ""},
	} {
		var folded foldedText
		folded.add(one.text)
		html := string(folded.html("/text"))
		if !strings.Contains(html, "begin") || !strings.Contains(html, "end") {
			t.Errorf("%s: its ends are not there", name)
		}
		if one.label == "" {
			if strings.Contains(html, "<button") {
				t.Errorf("%s: it is folded: %.200s", name, html)
			}
			continue
		}
		if len(html) > one.shown || !strings.Contains(html, one.label+"</button>") {
			t.Errorf("%s: %d bytes, %.300s … %.300s", name, len(html), html, html[max(0, len(html)-300):])
		}
		whole := foldedText{all: true}
		whole.add(one.text)
		if html := string(whole.html("/text")); !strings.Contains(html, one.text) {
			t.Errorf("%s: unfolded it is not whole", name)
		}
	}
}

// Of a line that is far too long both ends are shown.
func TestEndsOfAHugeLine(t *testing.T) {
	var folded foldedText
	folded.add("begin" + strings.Repeat("é", 500_000) + "end")
	if html := string(folded.html("/text")); !strings.Contains(html, "begin") || !strings.Contains(html, "end") || !strings.Contains(html, "class=\"unfold\"") || len(html) > 20_000 {
		t.Errorf("%d bytes: %.300s", len(html), html)
	}
}
