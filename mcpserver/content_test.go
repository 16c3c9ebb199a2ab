package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"image/png"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
	"cellblock/kernels/stream"
)

func stdout(text string) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text}
}

func stderr(text string) kernels.Output {
	return kernels.Output{Kind: kernels.OutputStream, Stream: "stderr", Text: text}
}

// display makes a display of pairs of MIME type and value; a value that is no string goes in as JSON.
func display(pairs ...any) kernels.Output {
	out := kernels.Output{Kind: kernels.OutputDisplay, Data: mimeBundle{}}
	for i := 0; i < len(pairs); i += 2 {
		value, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		out.Data[pairs[i].(string)] = value
	}
	return out
}

func withID(id string, kind kernels.OutputKind, out kernels.Output) kernels.Output {
	out.Kind, out.DisplayID = kind, id
	return out
}

func result(text string) kernels.Output {
	out := display("text/plain", text)
	out.Kind = kernels.OutputResult
	return out
}

func elided(e stream.Elided) kernels.Output {
	return kernels.Output{Kind: kernels.OutputNotice, Notice: &kernels.Notice{Elided: &e}}
}

// picture returns a PNG of that size; noisy ones do not compress.
func drawing(w, h int, noisy bool) string {
	return pictureOf(w, h, func(noise uint32, _ float64) byte {
		if !noisy {
			return 0
		}
		return byte(noise >> 24)
	})
}

// pictureOf is an opaque PNG whose bytes are made of noise and of how much of it there is already.
func pictureOf(w, h int, paint func(noise uint32, done float64) byte) string {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	noise := uint32(w * h)
	for i := range img.Pix {
		noise = noise*1664525 + 1013904223
		img.Pix[i] = paint(noise, float64(i)/float64(len(img.Pix)))
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	var data bytes.Buffer
	if err := png.Encode(&data, img); err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(data.Bytes())
}

func render(outs ...kernels.Output) []mcp.Content {
	a := newArea()
	for _, out := range outs {
		a.add(out)
	}
	return a.blocks(defaultBudget, bounds{memory: 2 << 30})
}

// dump writes blocks for people: texts as they are, images by their type and size.
func dump(blocks []mcp.Content) string {
	var b strings.Builder
	for _, block := range blocks {
		switch c := block.(type) {
		case mcp.TextContent:
			fmt.Fprintf(&b, "── text\n%s\n", c.Text)
		case mcp.ImageContent:
			fmt.Fprintf(&b, "── image %s %s\n", c.MIMEType, imageSize(c))
		default:
			fmt.Fprintf(&b, "── %T\n", c)
		}
	}
	return b.String()
}

func imageSize(c mcp.ImageContent) string {
	raw, err := base64.StdEncoding.DecodeString(c.Data)
	if err != nil {
		return err.Error()
	}
	config, format, err := image.DecodeConfig(bytes.NewReader(raw))
	if err != nil || "image/"+format != c.MIMEType {
		return fmt.Sprint("is ", format, err)
	}
	return fmt.Sprintf("%d×%d", config.Width, config.Height)
}

func text(lines ...string) string {
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "── text\n%s\n", l)
	}
	return b.String()
}

// Several images come in order, at their place in the text; stderr is no error.
func TestOutputsBecomeBlocks(t *testing.T) {
	png := drawing(4, 3, false)
	var animated bytes.Buffer
	if err := gif.Encode(&animated, image.NewPaletted(image.Rect(0, 0, 5, 5), color.Palette{color.Black, color.White}), nil); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name string
		outs []kernels.Output
		want string
	}{
		{"nothing", nil, ""},
		{"stream texts are joined", []kernels.Output{stdout("a"), stdout("b\n"), stdout("c\n")}, text("ab\nc")},
		{"only white space", []kernels.Output{stdout("\n\n"), stderr("")}, ""},
		{"stderr is marked", []kernels.Output{stdout("a\n"), stderr("b\n"), stdout("c\n")}, text("a", "[stderr] b", "c")},
		{"long stderr is marked once", []kernels.Output{stderr("a\nb\n")}, text("[stderr]\na\nb")},
		{"indentation is kept", []kernels.Output{stdout("  a\n b\n")}, text("  a\n b")},
		{"progress bar", []kernels.Output{stderr("\r 0%"), stderr("\r 50%"), stderr("\r100%\n")}, text("[stderr] 100%")},
		{"colours", []kernels.Output{stdout("\x1b[31mred\x1b[0m \x1b[1;4mbold\x1b[m\n")}, text("red bold")},
		{"a result after prints", []kernels.Output{stdout("a\n"), result("42")}, text("a", "42")},
		{"plots at their places", []kernels.Output{
			stdout("before\n"), display("image/png", png, "text/plain", "<Figure size 640x480 with 1 Axes>"), stdout("between\n"),
			display("image/png", drawing(5, 3, false)), stdout("after\n"),
		}, text("before") + "── image image/png 4×3\n" + text("between") + "── image image/png 5×3\n" + text("after")},
		{"base64 in lines", []kernels.Output{display("image/png", png[:20]+"\n"+png[20:]+"\n")}, "── image image/png 4×3\n"},
		{"gif becomes png", []kernels.Output{display("image/gif", base64.StdEncoding.EncodeToString(animated.Bytes()))}, "── image image/png 5×5\n"},
		{"broken image falls back", []kernels.Output{display("image/png", "AAAA", "text/plain", "a plot")},
			text("a plot\n[image/png left out: image/png cannot be decoded: image: unknown format]")},
		{"a small svg is read", []kernels.Output{display("image/svg+xml", "<svg><text>a</text></svg>", "text/plain", "<IPython.core.display.SVG object>")},
			text("<svg><text>a</text></svg>")},
		{"a large svg has a way out", []kernels.Output{display("image/svg+xml", "<svg>"+strings.Repeat("<p/>", 1024)+"</svg>", "text/plain", "<graphviz.graphs.Digraph at 0x7f0c>")},
			text("<graphviz.graphs.Digraph at 0x7f0c>\n[not shown: image/svg+xml, 4 KiB; make it a PNG, with matplotlib for example, to see it]")},
		{"a bitmap over svg", []kernels.Output{display("image/svg+xml", "<svg/>", "image/png", png)}, "── image image/png 4×3\n"},
		{"plain over svg", []kernels.Output{display("image/svg+xml", "<svg/>", "text/plain", "a -> b")}, text("a -> b")},
		{"audio is named", []kernels.Output{display("audio/wav", strings.Repeat("UklG", 1000), "text/plain", "<IPython.lib.display.Audio object>")},
			text("<IPython.lib.display.Audio object>\n[not shown: audio/wav, 2.9 KiB]")},
		{"audio in HTML is not read out", []kernels.Output{display("text/html", `<audio controls><source src="data:audio/wav;base64,UklGRg=="/>Your browser does not support audio.</audio>`,
			"text/plain", "<IPython.lib.display.Audio object>")}, text("[audio player]")},
		{"a video in HTML", []kernels.Output{display("text/html", `<p>a<video controls><source src="movie.mp4"><source src="movie.webm">No video.</video>b <video src="x.mp4"><source src="y.mp4"></video><audio><audio></audio>c</audio>d <video>`)},
			text("a [video player: movie.mp4] b [video player: x.mp4] [audio player] d [video player]")},
		{"a page in HTML", []kernels.Output{display("text/html", `<p>a<iframe src="https://example.com/x"></iframe>b <img width=3 src="y.png"> <img src="data:image/png;base64,AA"></p>`)},
			text("a [embedded page: https://example.com/x] b [image: y.png] [image]")},
		{"a chart that has a word", []kernels.Output{display("application/vnd.plotly.v1+json", map[string]any{"data": 1}, "text/plain", "Figure")},
			text("Figure\n[not shown: application/vnd.plotly.v1+json, 10 bytes; make it a PNG, with matplotlib for example, to see it]")},
		{"broken image without a word", []kernels.Output{display("image/png", "AAAA", "text/plain", "<IPython.core.display.Image object>")},
			text("[image/png left out: image/png cannot be decoded: image: unknown format]")},
		{"markdown over plain", []kernels.Output{display("text/markdown", "# x", "text/plain", "<IPython.core.display.Markdown object>")}, text("# x")},
		{"latex over a longer text", []kernels.Output{display("text/latex", "$x^2$", "text/plain", "x to the second", "text/html", "<i>x</i>")}, text("$x^2$")},
		{"latex over a placeholder", []kernels.Output{display("text/latex", `$\displaystyle \frac{x}{2}\frac{y}{3}\frac{z}{4}\frac{u}{5}$`, "text/plain", "<IPython.core.display.Latex object>")},
			text(`$\displaystyle \frac{x}{2}\frac{y}{3}\frac{z}{4}\frac{u}{5}$`)},
		{"code over a longer formula", []kernels.Output{display("text/latex", `$\displaystyle \sqrt{\pi}$`, "text/plain", "sqrt(pi)")}, text("sqrt(pi)")},
		{"latex over a drawing", []kernels.Output{display("text/latex", `$\displaystyle \frac{x}{2}$`, "text/plain", "x\n─\n2")}, text(`$\displaystyle \frac{x}{2}$`)},
		{"a table over latex", []kernels.Output{display("text/latex", `\begin{tabular}{l}a\end{tabular}`, "text/plain", "a table of plain text with lines\n===\na")},
			text("a table of plain text with lines\n===\na")},
		{"json", []kernels.Output{display("application/json", map[string]any{"a": []int{1}}, "text/plain", "<IPython.core.display.JSON object>")}, text(`{"a":[1]}`)},
		{"plain over html", []kernels.Output{display("text/html", "<table><tr><td>1</td></tr></table>", "text/plain", "   a\n0  1")}, text("   a\n0  1")},
		{"html when plain says nothing", []kernels.Output{display("text/html", "<h1>T</h1><p>a <b>b</b></p><ul><li>c<li>d</ul><table><tr><th>x<th>y<tr><td>1<td>2</table><script>no()</script>",
			"text/plain", "<IPython.core.display.HTML object>")}, text("T\na b\n- c\n- d\nx | y\n1 | 2")},
		{"a table of groups", []kernels.Output{display("text/html", `<table><thead><tr><th class="blank">&nbsp;</th><th>&nbsp;</th><th colspan="2">v</th></tr><tr><th>g</th><th>h</th><th>sum</th><th>mean</th></tr></thead>
			<tbody><tr><th rowspan="2">A</th><th>x</th><td>1</td><td>2</td></tr><tr><th>y</th><td>3</td><td>4<br>5</td></tr><tr><th>B</th><th>x</th><td><p>6</p></td><td></td></tr></tbody></table>after`)},
			text(" |  | v | \ng | h | sum | mean\nA | x | 1 | 2\n | y | 3 | 4 / 5\nB | x | 6 | \nafter")},
		{"a row that ends before a cell from above", []kernels.Output{display("text/html", `<table><tr><td>a<td rowspan=2>b<tr><td>c<tr><td>d<td>e</table>`)}, text("a | b\nc | \nd | e")},
		{"a table in a table", []kernels.Output{display("text/html", `<table><tr><td><table><tr><td>1<td>2</tr><tr><td>3<td>4</table></td></tr><tr><td><table><tr><td>5</table><td>6</table>`)}, text("1 | 2\n3 | 4\n5 | 6")},
		{"cells without a table", []kernels.Output{display("text/html", `<td>a</td><td>b</td></table></tr>c`)}, text("a b\nc")},
		{"a chart that a script draws", []kernels.Output{display("text/plain", "alt.Chart(...)", "text/html", "<style>x</style><div id=v></div>\n<script>draw()</script>")},
			text("alt.Chart(...)\n[not shown: text/html, 56 bytes; make it a PNG, with matplotlib for example, to see it]")},
		{"what a library is loaded with", []kernels.Output{display("text/html", "        <script type=\"text/javascript\">\n        window.PlotlyConfig = {MathJaxConfig: 'local'};\n define('plotly') </script>\n")}, ""},
		{"a chart with its library", []kernels.Output{display("text/html", "<script>window.PlotlyConfig = {};</script><div id=x></div><script>draw()</script>")},
			text("[not shown: text/html, 81 bytes; make it a PNG, with matplotlib for example, to see it]")},
		{"a style for the page", []kernels.Output{stdout("a\n"), display("text/html", "<style>.container { width: 100% }</style>", "text/plain", "<IPython.core.display.HTML object>"), stdout("b\n")}, text("a", "b")},
		{"no lines yet", []kernels.Output{display("text/html", "<pre style=\"white-space:pre\"><span></span></pre>\n", "text/plain", "")}, ""},
		{"a place for something", []kernels.Output{display("text/html", "<div id=x></div>")}, text("[not shown: text/html, 16 bytes]")},
		{"only html", []kernels.Output{display("text/html", "<p>a &lt; b</p>")}, text("a < b")},
		{"widget", []kernels.Output{display("application/vnd.jupyter.widget-view+json", map[string]any{"model_id": "x"}, "text/plain", "IntSlider(value=3)")}, text("IntSlider(value=3)")},
		{"nothing readable", []kernels.Output{display("application/vnd.plotly.v1+json", map[string]any{"data": 1})}, text("[not shown: application/vnd.plotly.v1+json, 10 bytes; make it a PNG, with matplotlib for example, to see it]")},
		{"a list of lines", []kernels.Output{display("text/plain", []string{"a\n", "b"})}, text("a\nb")},
		{"clear_output", []kernels.Output{stdout("gone\n"), {Kind: kernels.OutputClear}, stdout("stays\n")}, text("stays")},
		{"clear_output that waits", []kernels.Output{stdout("gone\n"), {Kind: kernels.OutputClear, Wait: true}, stdout("stays\n")}, text("stays")},
		{"clear_output that waits for nothing", []kernels.Output{stdout("stays\n"), {Kind: kernels.OutputClear, Wait: true}}, text("stays")},
		{"update_display", []kernels.Output{
			withID("d", kernels.OutputDisplay, display("text/plain", "old")), stdout("between\n"), withID("d", kernels.OutputUpdate, display("text/plain", "new")),
		}, text("new", "between")},
		{"update of an earlier cell's display", []kernels.Output{withID("e", kernels.OutputUpdate, display("text/plain", "new"))}, text("new")},
		{"elided by the shim", []kernels.Output{stdout("head\n"), elided(stream.Elided{Stream: "stdout", Bytes: 5_000_000_000, Lines: 1}), stdout("tail\n")},
			text("head\n… 5,000,000,000 characters (1 line) left out here: they are not kept …\ntail")},
		{"outputs elided", []kernels.Output{elided(stream.Elided{Messages: 12, Bytes: 99})}, text("… 12 outputs left out here …")},
		{"prompts and widgets' messages", []kernels.Output{{Kind: kernels.OutputInput, Text: "?"}, {Kind: kernels.OutputOther}}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := dump(render(tt.outs...)); got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// What a real kernel sent for typical cells, as the model gets to see it.
func TestPythonCells(t *testing.T) {
	data, err := os.ReadFile("testdata/python.json")
	if err != nil {
		t.Fatal(err)
	}
	var cells map[string]struct {
		Code string
		Msgs []struct {
			Type, Name, Text, Ename, Evalue string
			Traceback                       []string
			Data                            mimeBundle
		}
	}
	if err := json.Unmarshal(data, &cells); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(cells)) {
		var outs []kernels.Output
		for _, m := range cells[name].Msgs {
			outs = append(outs, kernels.Output{Kind: kernels.OutputKind(m.Type), Stream: m.Name, Text: m.Text, Data: m.Data,
				Error: &kernels.ExecError{Name: m.Ename, Value: m.Evalue, Traceback: m.Traceback}})
		}
		fmt.Fprintf(&b, "════ %s\n%s\n%s\n", name, cells[name].Code, dump(render(outs...)))
	}
	golden(t, "content/python.txt", b.String())
}
