package mcpserver

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
)

// Streams that take turns are told in turn: a few as blocks, many as the lines of one.
func TestStreamsInTurn(t *testing.T) {
	for _, n := range []int{2, maxTurns, maxTurns + 1, 1000} {
		var outs []kernels.Output
		var want []string
		for i := range n {
			line := fmt.Sprintf("line %d", i)
			outs = append(outs, []kernels.Output{stdout(line + "\n"), stderr(line + "\n")}[i%2])
			want = append(want, []string{line, "[stderr] " + line}[i%2])
		}
		var got []string
		blocks := render(outs...)
		for _, block := range blocks {
			got = append(got, strings.Split(block.(mcp.TextContent).Text, "\n")...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%d turns: %q", n, got)
		}
		if n > maxTurns && len(blocks) != 1 || n <= maxTurns && len(blocks) != n {
			t.Errorf("%d turns are %d blocks", n, len(blocks))
		}
	}
}

// Of many turns a reader can tell where each ends, and an error behind them is a block of its own.
func TestLongTurnsInTurn(t *testing.T) {
	var outs []kernels.Output
	for range maxTurns {
		outs = append(outs, stderr("warning:\n  why\n"), stdout("a\n"), stderr("short\n"), stdout("b\nc\n"))
	}
	turns := strings.TrimRight(strings.Repeat("[stderr]\nwarning:\n  why\n[stdout] a\n[stderr] short\nb\nc\n", maxTurns), "\n")
	outs = append(outs, display("text/plain", "shown"))
	if got, want := dump(render(outs...)), text(turns, "shown"); got != want {
		t.Errorf("they are told as %s", got)
	}
}

// Of very many outputs the texts are one block, too, in which one can tell whose each is.
func TestManyOutputs(t *testing.T) {
	var outs []kernels.Output
	for range maxBlocks {
		outs = append(outs, display("text/plain", "shown"), stderr("warning:\n  why\n"), stdout("a\nb\n"), stderr("c\nd\n"))
	}
	want := strings.TrimRight(strings.Repeat("[output] shown\n[stderr]\nwarning:\n  why\n[stdout]\na\nb\n[stderr]\nc\nd\n", maxBlocks), "\n")
	if got, want := dump(render(outs...)), text(strings.TrimPrefix(want, "[output] ")); got != want {
		t.Errorf("they are told as %s", got)
	}
	outs = append(outs[:40], append([]kernels.Output{display("image/png", drawing(4, 3, false))}, outs...)...)
	if blocks := render(outs...); len(blocks) != 3 {
		t.Errorf("around an image they are %d blocks", len(blocks))
	}
}

// A progress bar is its last state, at its place, also where something is printed between its states.
func TestBarsAmongPrints(t *testing.T) {
	var outs []kernels.Output
	for epoch := range 3 {
		for i := range 50 {
			outs = append(outs, stderr(fmt.Sprintf("\repoch %d: %d/50", epoch, i+1)), stdout(fmt.Sprintf("batch %d\n", i)))
		}
		outs = append(outs, stderr("\n"), stdout(fmt.Sprintf("loss %d\n", epoch)))
	}
	if got := dump(render(outs...)); strings.Count(got, "epoch") != 3 || strings.Count(got, "batch") != 150 ||
		strings.Index(got, "epoch 1") < strings.Index(got, "loss 0") || strings.Index(got, "loss 1") > strings.Index(got, "epoch 2") {
		t.Errorf("they are told as %s", got)
	}
}

// Of more turns than a result can hold, the first and the last are told, in turn, and what is between is counted.
func TestFloodOfTurns(t *testing.T) {
	const n = 500_000
	a := newArea()
	for i := range n {
		line := fmt.Sprintf("%07d\n", i)
		a.add([]kernels.Output{stdout(line), stderr(line)}[i%2])
	}
	blocks := a.blocks(defaultBudget, bounds{})
	got := dump(blocks)
	lines := strings.Split(strings.TrimSpace(got), "\n")
	if size, _ := chars(blocks); len(blocks) != 1 || size > defaultBudget.chars || size < defaultBudget.chars/2 {
		t.Errorf("%d blocks with %d characters", len(blocks), size)
	}
	if lines[1] != "0000000" || lines[2] != "[stderr] 0000001" || lines[len(lines)-2] != "0499998" || lines[len(lines)-1] != "[stderr] 0499999" {
		t.Errorf("it is told as %.100s … %s", got, got[len(got)-100:])
	}
	if left := n - (len(lines) - 2); !strings.Contains(strings.ReplaceAll(got, ",", ""), fmt.Sprintf("(%d lines) left out here", left)) {
		t.Errorf("%d lines are left out: %q", left, lines[slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "left out") })])
	}
	held := 0
	for _, it := range a.items {
		held += len(it.text.head) + len(it.text.tail)
	}
	if held > 2*longTextHalf/turnSize {
		t.Errorf("%d turns are held", held)
	}
}
