package htmltext

import (
	"strings"
	"testing"
	"time"
)

func FuzzOf(f *testing.F) {
	f.Add("<p>a<b>b</b><table><tr><td>1<td>2")
	f.Add("<script>x</script></script></pre><pre> a\n b")
	f.Fuzz(func(t *testing.T, s string) {
		if got := Of(s); len(got) > 8*len(s)+16 {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}

// Tables that are too deep are parts of the one around them, and what follows them is where it was.
func TestTablesInEachOther(t *testing.T) {
	within := strings.Repeat("<table><tr><td>", 100) + "deep" + strings.Repeat("</td></tr></table>", 100)
	if got, want := Of("<table><tr><td>a</td><td>"+within+"</td><td>b</td></tr><tr><td>c</td></tr></table>d"), "a | deep | b\nc\nd"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// A cell that reaches down stands in each row of a table that it reaches into, and not behind one that ends before it.
func TestCellsOfSeveralRows(t *testing.T) {
	for source, want := range map[string]string{
		"<tr><td rowspan=2>a<td>b<tr><td>c<tr><td>d<td>e":                              "a | b\n | c\nd | e",
		"<tr><td>a<td rowspan=3>b<tr><td>c<tr><td>d<tr><td>e<td>f":                     "a | b\nc | \nd | \ne | f",
		"<tr><td>a<td>b<td rowspan=3>c<tr><td>d<tr><td>e<td>f<td>g<tr><td>h<td>i<td>j": "a | b | c\nd\ne | f |  | g\nh | i | j",
	} {
		if got := Of("<table>" + source); got != want {
			t.Errorf("%s: %q, want %q", source, got, want)
		}
	}
}

// HTML can be made to be of the same in great number: the time that it takes to read grows with its length, and not with the square of it.
func TestLongTextsAreReadOnce(t *testing.T) {
	const many, most = 100_000, 10 * time.Second // it takes a hundredth
	for name, source := range map[string]string{
		"cells and rows":       "<table><tr>" + strings.Repeat("<td>", many) + strings.Repeat("<tr>", many),
		"tables in each other": strings.Repeat("<table><td>", many) + strings.Repeat("text ", many),
	} {
		start := time.Now()
		if Of(source); time.Since(start) > most {
			t.Errorf("%s take %s", name, time.Since(start))
		}
	}
}
