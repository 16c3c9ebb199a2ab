package audit

import (
	"fmt"
	"strings"
	"testing"
)

func TestRecent(t *testing.T) {
	l, err := Open(Options{Path: t.TempDir() + "/audit.jsonl", Key: []byte("key"), Required: true, Code: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if got, err := l.Recent(10); err != nil || len(got) > 1 {
		t.Errorf("of a new log: %v, %v", got, err)
	}
	for i := range 50 {
		if err := l.Require(t.Context(), Entry{Event: Called, Tool: fmt.Sprint("tool", i), Code: strings.Repeat("secret\n", 2000)}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := l.Recent(3)
	if err != nil || len(got) != 3 || got[0].Tool != "tool49" || got[2].Tool != "tool47" || got[0].Code != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := l.Recent(1000); err != nil || len(got) < 10 || len(got) > 50 { // as many as there are in what is read
		t.Errorf("%d entries, %v", len(got), err)
	}
	if got, err := (*Log)(nil).Recent(3); got != nil || err != nil {
		t.Errorf("of no log: %v, %v", got, err)
	}
}

func TestRecentPassesOverWhatIsNoLine(t *testing.T) {
	got := lastEntries([]byte("half\n{\"event\":\"called\"}\nnull\n[]\n{\"event\":\"answered\"}\n{\"eve"), 10)
	if len(got) != 2 || got[0].Event != Answered || got[1].Event != Called {
		t.Errorf("%+v", got)
	}
}
