package notebook

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func TestParse(t *testing.T) {
	n, err := Parse([]byte(`{"nbformat": 4, "nbformat_minor": 2, "metadata": {"kernelspec": {"name": "python3", "language": "Python"}}, "cells": [
		{"cell_type": "markdown", "metadata": {}, "source": ["# Title\n", "text"], "attachments": {"a.png": {"image/png": "AA"}}},
		{"cell_type": "code", "id": "cell-1", "metadata": {"tags": ["raises-exception"]}, "source": "1/0", "execution_count": null, "outputs": [
			{"output_type": "stream", "name": "stdout", "text": ["a\n", "b"]}, {"output_type": "novel"}]},
		{"cell_type": "raw", "id": "cell-1", "metadata": {}, "source": []}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if n.Language() != "python" || len(n.Cells) != 3 {
		t.Fatalf("%+v", n)
	}
	text, code, raw := n.Cells[0], n.Cells[1], n.Cells[2]
	if text.Source != "# Title\ntext" || text.Attachments == nil || text.MayFail() {
		t.Errorf("%+v", text)
	}
	if code.Source != "1/0" || !code.MayFail() || len(code.Outputs) != 1 || code.Outputs[0].Text != "a\nb" {
		t.Errorf("%+v", code)
	}
	if ids := []string{text.ID, code.ID, raw.ID}; !reflect.DeepEqual(ids, []string{"cell-2", "cell-1", "cell-3"}) {
		t.Errorf("ids %v", ids)
	}
}

// Whatever is no notebook is refused in words that say why.
func TestParseRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ data, want string }{
		"nothing":            {"", "it is empty"},
		"no JSON":            {"print(1)", "not JSON"},
		"a list":             {"[]", "it is a JSON array"},
		"cut off":            {`{"nbformat": 4, "cells": [`, "its end is missing"},
		"something else":     {`{"cells": []}`, "names no nbformat"},
		"nbformat 3":         {`{"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": []}]}`, "nbformat 3; nbformat 4 is wanted"},
		"nbformat 5":         {`{"nbformat": 5, "cells": []}`, "nbformat 5"},
		"no version":         {`{"nbformat": "four", "cells": []}`, "names no nbformat"},
		"no cells":           {`{"nbformat": 4}`, "no list of cells"},
		"cells of no list":   {`{"nbformat": 4, "cells": {}}`, "cells: a JSON object"},
		"a cell of no type":  {`{"nbformat": 4, "cells": [{"source": ""}]}`, "cell 1 has the type"},
		"an unknown cell":    {`{"nbformat": 4, "cells": [{"cell_type": "heading", "source": ""}]}`, `"heading"`},
		"a source of no use": {`{"nbformat": 4, "cells": [{"cell_type": "code", "source": 5}]}`, "neither a text nor"},
		"more behind it":     {`{"nbformat": 4, "cells": []} x`, "follows"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Parse([]byte(tt.data))
			if fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, hint %q", err, fault.Hint(err))
			}
		})
	}
}

// anyNotebook is a random one.
func anyNotebook(r *rand.Rand) *Notebook {
	words := []string{"", "a", "\n", "x = 1\n", "π\u2028", "<b>&", "\r\n", "\x00", `"`, "%%bash\n"}
	text := func() string {
		var b strings.Builder
		for range r.IntN(5) {
			b.WriteString(words[r.IntN(len(words))])
		}
		return b.String()
	}
	n := &Notebook{Metadata: Object{"kernelspec": Object{"name": text(), "display_name": text()}}}
	for i := range r.IntN(6) {
		c := &Cell{Type: []CellType{Code, Markdown, Raw}[r.IntN(3)], ID: fmt.Sprintf("cell-%d", i), Source: text(), Metadata: Object{"x": text()}}
		if c.Type == Code {
			c.ExecutionCount = r.IntN(3)
			for range r.IntN(4) {
				c.Outputs = append(c.Outputs, []*Output{
					{Type: Stream, Name: "stdout", Text: text()},
					{Type: Error, EName: text(), EValue: text(), Traceback: []string{text(), text()}},
					{Type: Display, Data: Object{"text/plain": text(), "application/json": Object{"a": []any{text()}}}, Metadata: Object{}},
					{Type: Result, Data: Object{"text/html": text()}, Metadata: Object{"m": text()}, ExecutionCount: r.IntN(3)},
				}[r.IntN(4)])
			}
		} else if r.IntN(2) == 0 {
			c.Attachments = Object{"f": Object{"text/plain": text()}}
		}
		n.Cells = append(n.Cells, c)
	}
	return n
}

// What is written is read again as the same cells, and written again as the same bytes.
func TestRoundTrip(t *testing.T) {
	for seed := range uint64(500) {
		n := anyNotebook(rand.New(rand.NewPCG(seed, 1)))
		first, err := n.Text()
		if err != nil {
			t.Fatal(err)
		}
		if plain := reencoded(t, first); first != plain {
			t.Fatalf("seed %d: it is\n%s\nand not as Jupyter writes it:\n%s", seed, first, plain)
		}
		again, err := Parse([]byte(first))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, first)
		}
		second, err := again.Text()
		if err != nil || first != second {
			t.Fatalf("seed %d, %v: written\n%s\nthen\n%s", seed, err, first, second)
		}
		if len(n.Cells) != len(again.Cells) || len(n.Cells) > 0 && !reflect.DeepEqual(n.Cells, again.Cells) {
			t.Fatalf("seed %d: read other cells from\n%s", seed, first)
		}
	}
}

// reencoded is a file as encoding/json would write it, with sorted keys and one blank of indentation.
func reencoded(t *testing.T, file string) string {
	t.Helper()
	var value any
	if err := decode([]byte(file), &value); err != nil {
		t.Fatalf("%v\n%s", err, file)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(value); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// FuzzParse: no file makes the reader fail in another way than by an Invalid error with a hint, and what is read can be
// written and read again.
func FuzzParse(f *testing.F) {
	for seed := range uint64(10) {
		text, err := anyNotebook(rand.New(rand.NewPCG(seed, 2))).Text()
		if err != nil {
			f.Fatal(err)
		}
		f.Add([]byte(text))
	}
	f.Add([]byte(`{"nbformat":3,"worksheets":[]}`))
	f.Add([]byte(`{"nbformat":4,"cells":[{"cell_type":"code","source":null,"execution_count":-1,"outputs":[{"output_type":"display_data","data":{"a":[1]}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := Parse(data)
		if err != nil {
			if fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
				t.Fatalf("%v, hint %q", err, fault.Hint(err))
			}
			return
		}
		first, err := n.Text()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse([]byte(first))
		if err != nil {
			t.Fatalf("%v\n%s", err, first)
		}
		if second, err := again.Text(); err != nil || first != second {
			t.Fatalf("written\n%s\nthen\n%s", first, second)
		}
		used := map[string]bool{}
		for _, c := range n.Cells {
			if !validID.MatchString(c.ID) || used[c.ID] {
				t.Fatalf("id %q", c.ID)
			}
			used[c.ID] = true
		}
		if first != reencoded(t, first) {
			t.Fatal("what is written is not as Jupyter writes it")
		}
	})
}
