package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReportSaysWhatWasMissed(t *testing.T) {
	r := report{
		rows: []row{
			{what: "fast", ours: "a", theirs: "b", a: []float64{1, 2, 3}, b: []float64{4, 4, 4}, unit: "ms", goal: 1, tail: 1.5},
			{what: "slow", ours: "a", theirs: "b", a: []float64{9, 9, 9}, b: []float64{3, 3, 3}, unit: "ms", goal: 1.1},
			{what: "tail", ours: "a", theirs: "b", a: []float64{1, 1, 99}, b: []float64{3, 3, 3}, unit: "ms", goal: 1.1, tail: 1.5},
		},
		costs: []cost{{what: "memory", value: 5, unit: "MB", goal: 4}, {what: "wakes", value: 5}},
		notes: []string{"a note"},
	}
	dir := t.TempDir()
	markdown, asJSON := filepath.Join(dir, "t.md"), filepath.Join(dir, "t.json")
	if err := r.save(markdown, asJSON); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(markdown)
	for _, want := range []string{
		"| fast | a: 2.00 / 3.00 ms ± 100 % | b: 4.00 / 4.00 ms ± 0 % | 0.5 | ≤ 1 met; p99 ≤ 1.5 met |", "| 3 | ≤ 1.1 **missed** |",
		"≤ 1.1 met; p99 ≤ 1.5 **missed**", "| memory | 5 MB | ≤ 4 MB **missed** |", "| wakes | 5  | – |", "- a note",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	var doc struct {
		Rows []struct {
			Ratio float64
			Met   *bool
		}
		Costs []struct{ Met *bool }
	}
	data, _ := os.ReadFile(asJSON)
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	if len(doc.Rows) != 3 || !*doc.Rows[0].Met || *doc.Rows[1].Met || *doc.Rows[2].Met || doc.Rows[1].Ratio != 3 || *doc.Costs[0].Met || doc.Costs[1].Met != nil {
		t.Errorf("%s", data)
	}
}

func TestChoose(t *testing.T) {
	t.Setenv("CELLBLOCK_TEST_DOCKER_HOST", "")
	all, err := choose("")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for _, m := range all {
		if m.engine {
			t.Errorf("%s needs an engine, and there is none", m.name)
		}
	}
	if one, err := choose("shim"); err != nil || len(one) != 1 || one[0].name != "shim" {
		t.Error(one, err)
	}
	if _, err := choose("warm,wram"); err == nil || !strings.Contains(err.Error(), "wram") {
		t.Error(err)
	}
}
