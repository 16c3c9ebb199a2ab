package mcpserver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/gif"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/kernels"
	"cellblock/kernels/stream"
	"cellblock/sessions"
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
func picture(w, h int, noisy bool) string {
	img := image.NewNRGBA(image.Rect(0, 0, w, h))
	seed := uint32(1)
	for i := range img.Pix {
		if noisy {
			seed = seed*1664525 + 1013904223
			img.Pix[i] = byte(seed >> 24)
		}
	}
	data, err := encodePNG(img)
	if err != nil {
		panic(err)
	}
	return base64.StdEncoding.EncodeToString(data)
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
	png := picture(4, 3, false)
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
			display("image/png", png), stdout("after\n"),
		}, text("before") + "── image image/png 4×3\n" + text("between") + "── image image/png 4×3\n" + text("after")},
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
		{"latex over plain", []kernels.Output{display("text/latex", "$x$", "text/plain", "x", "text/html", "<i>x</i>")}, text("$x$")},
		{"json", []kernels.Output{display("application/json", map[string]any{"a": []int{1}}, "text/plain", "<IPython.core.display.JSON object>")}, text(`{"a":[1]}`)},
		{"plain over html", []kernels.Output{display("text/html", "<table><tr><td>1</td></tr></table>", "text/plain", "   a\n0  1")}, text("   a\n0  1")},
		{"html when plain says nothing", []kernels.Output{display("text/html", "<h1>T</h1><p>a <b>b</b></p><ul><li>c<li>d</ul><table><tr><th>x<th>y<tr><td>1<td>2</table><script>no()</script>",
			"text/plain", "<IPython.core.display.HTML object>")}, text("T\na b\n- c\n- d\nx | y\n1 | 2")},
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
			text("head\n… 5,000,000,000 characters (1 line) left out here …\ntail")},
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

func TestOtherErrors(t *testing.T) {
	for _, tt := range []struct {
		name string
		err  kernels.ExecError
		want string
	}{
		{"nothing", kernels.ExecError{}, ""},
		{"name only", kernels.ExecError{Name: "KeyboardInterrupt"}, "KeyboardInterrupt"},
		{"no traceback", kernels.ExecError{Name: "E", Value: "what"}, "E: what"},
		{"another kernel's", kernels.ExecError{Name: "TypeError", Value: "x is not a function", Traceback: []string{
			"\x1b[31mTypeError: x is not a function\x1b[0m\n    at <anonymous>:1:1\n    at run (node:vm:1)"}},
			"TypeError: x is not a function\n    at <anonymous>:1:1\n    at run (node:vm:1)"},
		{"in one piece", kernels.ExecError{Name: "E", Traceback: []string{"Traceback (most recent call last):\n  File \"x.py\", line 1, in f\nE: x"}},
			"  File \"x.py\", line 1, in f\nE: x"},
		{"says where it runs", kernels.ExecError{Name: "gaierror", Value: "[Errno -3] Temporary failure in name resolution"},
			"gaierror: [Errno -3] Temporary failure in name resolution\nHint: " + network{}.hint()},
		{"a client's own error", kernels.ExecError{Name: "httpx.ConnectError", Value: "[Errno -2] Name or service not known"},
			"httpx.ConnectError: [Errno -2] Name or service not known\nHint: " + network{}.hint()},
		{"a file of the user's machine", kernels.ExecError{Name: "FileNotFoundError", Value: "[Errno 2] No such file or directory: '/home/me/data.csv'"},
			"FileNotFoundError: [Errno 2] No such file or directory: '/home/me/data.csv'\nHint: " + hintFiles},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := dump(render(kernels.Output{Kind: kernels.OutputError, Error: &tt.err}))
			if tt.want != "" {
				tt.want = text(tt.want)
			}
			if got != tt.want {
				t.Errorf("got\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}

// Of exceptions in libraries of which each quotes the one before, one is told.
func TestQuotedErrorsAreToldOnce(t *testing.T) {
	const cause, led = "[Errno -3] Temporary failure in name resolution", "\nThe above exception was the direct cause of the following exception:\n"
	library := "File /usr/lib/python3/dist-packages/urllib3/x.py:3, in g()\n----> 3 g()"
	connection := "<connection at 0x7f>: Failed to resolve 'a.example' (" + cause + ")"
	pool := `Pool(host='a.example'): Max retries exceeded (Caused by NameResolutionError("` + connection + `"))`
	e := kernels.ExecError{Name: "ConnectionError", Value: pool, Traceback: []string{
		library, "gaierror: " + cause, led, library, "NameResolutionError: " + connection, led, library, "KeyError: 0", led,
		library, "MaxRetryError: " + pool, led, "Cell In[1], line 1\n----> 1 get()", library, "ConnectionError: " + pool}}
	want := "Cell In[1], line 1\n----> 1 get()\nFile /usr/lib/python3/dist-packages/urllib3/x.py:3, in g()\n----> 3 g()\nConnectionError: " + pool +
		"\nBefore that, inside a library: KeyError: 0"
	if got := errorText(e, 0); got != want {
		t.Errorf("%s", got)
	}
}

func TestDeepTracebackIsThinned(t *testing.T) {
	e := kernels.ExecError{Name: "E"}
	for i := range 1000 {
		e.Traceback = append(e.Traceback, fmt.Sprintf("Cell In[1], line %d, in f%d()\n----> %d f%d()", i, i, i, i+1))
	}
	e.Traceback = append(e.Traceback, "E: "+strings.Repeat("long ", 10_000))
	got := errorText(e, 0)
	for _, want := range []string{"line 0, in", "980 inner frames left out", "line 999, in", "E: long", "characters (0 lines) left out"} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
	if n := len(got); n > 8000 {
		t.Errorf("%d bytes", n)
	}
}

// chars counts what a model reads.
func chars(blocks []mcp.Content) (text, images int) {
	for _, b := range blocks {
		switch c := b.(type) {
		case mcp.TextContent:
			text += utf8.RuneCountInString(c.Text)
		case mcp.ImageContent:
			images += len(c.Data)
		}
	}
	return text, images
}

func TestBudget(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	longError := kernels.Output{Kind: kernels.OutputError, Error: &kernels.ExecError{Name: "ValueError", Value: "the end",
		Traceback: []string{"Cell In[1], line 7\n----> 7 boom()", "ValueError: the end"}}}
	for _, tt := range []struct {
		name  string
		outs  []kernels.Output
		words []string
	}{
		{"one long text", []kernels.Output{stdout("first\n"), stdout(strings.Repeat(line, 10_000)), stdout("last\n")},
			[]string{"first\n", "characters (9,6", "left out here", "\nlast"}},
		{"a flood of small texts", slices.Repeat([]kernels.Output{stdout("tick\n")}, 300_000), []string{"left out here"}},
		{"a flood in two streams", slices.Repeat([]kernels.Output{stdout("o\n"), stderr("e\n")}, 50_000), []string{"o\n[stderr] e\no\n", "left out here"}},
		{"a flood of displays", slices.Repeat([]kernels.Output{display("text/plain", "shown")}, 5000), []string{"left out here"}},
		{"an error after a flood", []kernels.Output{stdout(strings.Repeat(line, 50_000)), longError}, []string{"Cell In[1], line 7", "ValueError: the end"}},
		{"wide characters", []kernels.Output{stdout(strings.Repeat("漢字", 100_000))}, []string{"left out here"}},
		{"already elided", []kernels.Output{stdout(strings.Repeat(line, 1000)), elided(stream.Elided{Stream: "stdout", Bytes: 1_000_000_000, Lines: 5}), stdout(strings.Repeat(line, 1000))},
			[]string{"… 1,000,160", "left out here"}},
		{"one line", []kernels.Output{stdout(strings.Repeat("0123456789", 1_000_000))}, []string{"characters (0 lines) left out"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			blocks := render(tt.outs...)
			n, _ := chars(blocks)
			if n > defaultBudget.chars+200 || n < defaultBudget.chars/10 || len(blocks) > maxBlocks {
				t.Errorf("%d characters in %d blocks", n, len(blocks))
			}
			got := dump(blocks)
			for _, w := range tt.words {
				if !strings.Contains(got, w) {
					t.Errorf("it does not say %q: %.300s … %s", w, got, got[max(0, len(got)-300):])
				}
			}
			if strings.Count(got, "left out here") != 1 {
				t.Errorf("it says %d times that something is left out", strings.Count(got, "left out here"))
			}
		})
	}
}

// Nothing is lost between what is shown and what is said to be left out.
func TestCutCountsExactly(t *testing.T) {
	line := strings.Repeat("y", 63) + "\n"
	for _, n := range []int{624, 625, 626, 700, 5000, 40_000} {
		blocks := render(stdout(strings.Repeat(line, n)), display("image/png", picture(2, 2, false)), stdout(strings.Repeat(line, n)))
		shown, images := 0, 0
		var missing int
		for _, b := range blocks {
			switch c := b.(type) {
			case mcp.TextContent:
				shown += strings.Count(c.Text, "y")
				if i := strings.Index(c.Text, "… "); i >= 0 {
					fmt.Sscanf(strings.ReplaceAll(c.Text[i:], ",", ""), "… %d", &missing)
				}
			case mcp.ImageContent:
				images++
			}
		}
		if got := shown + missing*63/64; images != 1 || got < 2*n*63-1 || got > 2*n*63+1 {
			t.Errorf("%d lines: %d shown, %d left out (%d characters), %d images", n, shown, missing*63/64, missing, images)
		}
	}
}

func TestImagesFitTheBudget(t *testing.T) {
	large := display("image/png", picture(3000, 200, false))
	noisy := display("image/png", picture(600, 600, true))
	blocks := render(append([]kernels.Output{large}, slices.Repeat([]kernels.Output{noisy}, 6)...)...)
	got := dump(blocks)
	_, size := chars(blocks)
	if size > defaultBudget.images {
		t.Errorf("%d bytes of images", size)
	}
	if !strings.HasPrefix(got, "── image image/png 1568×104\n"+text("[scaled down from 3000×200 pixels]")+"── image image/jpeg ") {
		t.Errorf("got\n%s", got)
	}
	if !strings.Contains(got, "[image/png left out: the images of this result are too large together; show fewer") {
		t.Errorf("got\n%s", got)
	}
}

// A broken image would make a model's provider refuse the whole conversation.
func TestBrokenImageIsNotPassedOn(t *testing.T) {
	for _, encoded := range []string{picture(40, 30, true), base64.StdEncoding.EncodeToString(jpegOf(t, 40, 30))} {
		raw, _ := base64.StdEncoding.DecodeString(encoded)
		cut := base64.StdEncoding.EncodeToString(raw[:len(raw)-len(raw)/3])
		got := dump(render(display("image/png", cut, "text/plain", "a plot")))
		if strings.Contains(got, "── image") || !strings.Contains(got, "cannot be decoded") {
			t.Errorf("got %s", got)
		}
	}
}

func jpegOf(t *testing.T, w, h int) []byte {
	t.Helper()
	data, err := encodeJPEG(image.NewRGBA(image.Rect(0, 0, w, h)))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestImagesAreBoundedInNumberAndWork(t *testing.T) {
	got := dump(render(slices.Repeat([]kernels.Output{display("image/png", picture(2, 2, false))}, 1000)...))
	if n := strings.Count(got, "── image"); n < 20 || n > 60 {
		t.Errorf("%d small images", n)
	}
	a, b := newArea(), defaultBudget
	for range 8 {
		a.add(display("image/png", picture(700, 600, false)))
	}
	b.pixels = 4*700*600 + 1
	if n := strings.Count(dump(a.blocks(b, bounds{})), "── image"); n != 4 {
		t.Errorf("%d images were decoded, and there was room for the pixels of 4", n)
	}
}

// What comes late is shown as large as what comes in time.
func TestLateImagesKeepTheirSize(t *testing.T) {
	s := &service{budget: defaultBudget}
	got := dump(s.lateBlocks(sessions.Late{Number: 1, Outputs: []kernels.Output{display("image/png", picture(40, 30, false))}}))
	if !strings.Contains(got, "── image image/png 40×30") {
		t.Errorf("got %s", got)
	}
}

func TestImageBomb(t *testing.T) {
	raw, _ := base64.StdEncoding.DecodeString(picture(1, 1, false))
	copy(raw[16:24], []byte{0, 0, 0xff, 0xff, 0, 0, 0xff, 0xff}) // IHDR: 65535×65535
	got := dump(render(display("image/png", base64.StdEncoding.EncodeToString(raw))))
	if !strings.Contains(got, "left out") {
		t.Errorf("got %s", got)
	}
}

// Where a client knows resources, an image that was made smaller or converted says where the original is.
func TestImageNamesItsOriginal(t *testing.T) {
	const original = "cellblock://sessions/s/executions/3/outputs/7"
	for _, tt := range []struct {
		name  string
		image string
		links bool
		want  any
	}{
		{"as it is", picture(40, 30, false), true, nil},
		{"scaled down", picture(3000, 20, false), true, original},
		{"as JPEG, in its size", picture(600, 600, true), true, original},
		{"for a client without links", picture(3000, 20, false), false, nil},
	} {
		a := newArea()
		a.index, a.place = 7, place{session: "s", execution: 3, links: tt.links}
		a.add(display("image/png", tt.image))
		image := a.blocks(defaultBudget, bounds{})[0].(mcp.ImageContent)
		var got any
		if image.Meta != nil {
			got = image.Meta.AdditionalFields[OriginalMeta]
		}
		if got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// A kernel may send as many links as it likes, and each is compared with all that are kept.
func TestLongChainIsCutShort(t *testing.T) {
	e := kernels.ExecError{Name: "E", Value: "end"}
	for i := range 1000 {
		e.Traceback = append(e.Traceback, "File /usr/lib/python3/dist-packages/x.py:3, in g()\n----> 3 g()", fmt.Sprintf("KeyError: %03d", i),
			"\nThe above exception was the direct cause of the following exception:\n")
	}
	e.Traceback = append(e.Traceback, "Cell In[1], line 1\n----> 1 g()", "E: end")
	got := errorText(e, 0)
	if n := strings.Count(got, "Before that"); n != maxFrames || !strings.Contains(got, "E: end") {
		t.Errorf("%d causes are told, want %d:\n%s", n, maxFrames, got)
	}
}

// What cannot be read any more says so, and what there is not to see says nothing.
func TestTooSmallToRead(t *testing.T) {
	b := defaultBudget
	image, note := bundleImage(mimeBundle{"image/png": json.RawMessage(`"` + picture(300, 7000, false) + `"`)}, &b, "")
	if image == nil || note != "[scaled down from 300×7000 to 67×1568 pixels, too small to read: show less in one image]" {
		t.Error(note)
	}
	a := newArea()
	a.add(kernels.Output{Kind: kernels.OutputDisplay, Data: mimeBundle{"text/plain": json.RawMessage(`"<Figure size 640x480 with 0 Axes>"`)}})
	if got := a.blocks(defaultBudget, bounds{}); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// A line that quotes the data keeps its ends; a message of many lines stays whole.
func TestLongLineOfAnError(t *testing.T) {
	long := "Could not convert string '" + strings.Repeat("x", 4300) + "' to numeric"
	got := errorText(kernels.ExecError{Name: "TypeError", Value: long, Traceback: []string{"TypeError: " + long}}, 0)
	if len(got) > 700 || !strings.HasPrefix(got, "TypeError: Could not convert string 'xxx") || !strings.HasSuffix(got, "xxx' to numeric") {
		t.Errorf("%d: %s", len(got), got)
	}
	many := strings.TrimSpace(strings.Repeat("a line of it\n", 100))
	if got := errorText(kernels.ExecError{Name: "E", Value: many}, 0); !strings.Contains(got, many) {
		t.Error(got)
	}
}
