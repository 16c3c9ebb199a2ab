package render

import (
	"encoding/json"
	"html/template"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2/lexers"

	"cellblock/kernels"
)

func bundle(pairs ...any) kernels.Output {
	out := kernels.Output{Kind: kernels.OutputDisplay, Data: map[string]json.RawMessage{}}
	for i := 0; i < len(pairs); i += 2 {
		raw, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		out.Data[pairs[i].(string)] = raw
	}
	return out
}

// all is what every renderer makes of a text.
func all(text string) map[string]template.HTML {
	made := map[string]template.HTML{
		"python": Code("python", text), "bash": Code("bash", text), "unknown": Code(text, text), "terminal": joined(Terminal(text)), "markdown": Markdown(text), "latex": LaTeX(text),
		"json": JSON([]byte(text)), "error": Error(kernels.ExecError{Name: text, Value: text, Traceback: []string{text, "Cell In[1], line 1\n" + text, "File " + text + "/site-packages/x.py:1"}}, 1),
	}
	if html, ok := HTML(text); ok {
		made["html"] = html
	}
	for _, mime := range []string{"text/plain", "text/html", "text/markdown", "text/latex", "image/svg+xml", "image/png", "application/json", "application/javascript", "application/pdf", text} {
		made["a bundle of "+mime] = Bundle(bundle(mime, text, "text/plain", text), there{})
		made["nothing but "+mime] = Bundle(bundle(mime, text), there{})
	}
	return made
}

func TestNothingHostileIsLeft(t *testing.T) {
	for _, attack := range attacks {
		for name, made := range all(attack) {
			checkSafe(t, name+" of "+attack, made)
		}
	}
}

// What is called a picture and is none is not asked of the browser, which would show a broken one.
func TestPicturesThatAreNone(t *testing.T) {
	for data, want := range map[string]string{
		"iVBORw0KGgo=": "", "/9j/4AAQSkZJRg==": "", "iVBO\nRw0KGgo=\n": "", "iVBORw0KGgo" + strings.Repeat("A", 9001): "",
		"bm90IHBuZw==": "no image that browsers know", "!!!notbase64": "not base64", "": "no image",
	} {
		made := string(Bundle(bundle("image/png", data, "text/plain", "<Image object>"), there{}))
		if strings.Contains(made, "<img") != (want == "") || !strings.Contains(made, want) {
			t.Errorf("%.30q: %s", data, made)
		}
	}
	for i := range 12 { // wherever a large one is cut
		data := strings.Repeat(" ", i) + "iVBORw0KGgoA" + strings.Repeat("\nAAAAAAAA", 2000)
		if made := string(Bundle(bundle("image/png", data), there{})); !strings.Contains(made, "<img") {
			t.Errorf("%d: %s", i, made)
		}
	}
}

// What is shown by its address is made of nothing but that, however large it is; and nothing that the page itself shows is called so.
func TestByAddress(t *testing.T) {
	large := strings.Repeat("<b>x</b>", maxTable/4)
	for name, tt := range map[string]struct {
		out  kernels.Output
		want bool
	}{
		"a picture":               {bundle("image/png", "iVBORw0KGgo"+strings.Repeat("A", maxTable), "text/plain", "a"), true},
		"a picture beside HTML":   {bundle("image/png", "iVBORw0KGgo=", "text/html", "<b>x</b>"), false},
		"a script":                {bundle("application/javascript", large), true},
		"HTML":                    {bundle("text/html", "<b>x</b>"), false},
		"large HTML":              {bundle("text/html", large), true},
		"HTML that looks large":   {bundle("text/html", strings.Repeat("\n", maxTable)), false},
		"large HTML, in lines":    {bundle("text/html", []string{large, large, large, large}), true},
		"a library":               {bundle("text/html", "<script>window.PlotlyConfig={}"+strings.Repeat(" ", minLibrary)), true},
		"a large text":            {bundle("text/plain", large), false},
		"text beside what is big": {bundle("text/plain", "a", "application/x-big", large), false},
	} {
		if got := ByAddress(tt.out); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
		if made := Bundle(tt.out, there{}); tt.want && (len(made) > 1000 || !strings.Contains(string(made), "/there/") && !strings.Contains(string(made), "loaded here")) {
			t.Errorf("%s becomes %.300s", name, made)
		}
	}
}

// Texts that would take time with the square of their length, half a minute for one output, are shown as they stand, or not looked at
// for long.
func TestHostileMarkdownIsCheap(t *testing.T) {
	for _, part := range []string{"> ", "1. ", "- > ", "[a](", "$x$ ", "a\n$ "} {
		checkSafe(t, part, Markdown(strings.Repeat(part, 12<<10/len(part))))
	}
	for source, shown := range map[string]bool{
		strings.Repeat("> ", 32) + "x": true, strings.Repeat("> ", 33) + "x": false, "a\n" + strings.Repeat("1. ", 33) + "x": false,
		strings.Repeat("> ", maxMarkdown): false, strings.Repeat("[a](b) ", maxLinks): true, strings.Repeat("[a](b) ", maxLinks+1): false,
	} {
		if made := string(Markdown(source)); strings.Contains(made, `class="markdown"`) != shown {
			t.Errorf("%.80q became %.80q", source, made)
		}
	}
	long := "$" + strings.Repeat("x", maxFormula-2) + "$"
	if made := string(Markdown(long)); !strings.Contains(made, "<math") {
		t.Error("a formula of the length that may be is none")
	}
	if made := string(Markdown("a $" + strings.Repeat("x", maxFormula-1) + "$")); strings.Contains(made, "<math") {
		t.Error("a formula is looked for further than one may be long")
	}
}

// A colour that a text mixes itself is shown as the basic one that is nearest, and what else its sequence says holds.
func TestMixedColours(t *testing.T) {
	for text, want := range map[string]string{
		"\x1b[38;2;250;90;90mx":                   `<span class="term-fgi91">x</span>`,
		"\x1b[48;2;0;0;180mx":                     `<span class="term-bg44">x</span>`,
		"\x1b[1;38;2;0;140;10;48;2;250;250;250mx": `<span class="term-fg32 term-bgi107 term-fg1">x</span>`,
		"\x1b[7mx":                  `<span class="term-fg7">x</span>`,
		"\x1b[31;07;48;5;5mx":       `<span class="term-fg31 term-bg45 term-fg7">x</span>`,
		"\x1b[7mx\x1b[27my":         `<span class="term-fg7">x</span>y`,
		"\x1b[38;5;7;5mx":           `<span class="term-fg37">x</span>`,
		"\x1b[31m\x1b[5mx\x1b[25my": `<span class="term-fg31">xy</span>`,
		"term-fg5 term-fgx9\x1b[0m": `term-fg5 term-fgx9`,
		"\x1b[38;2;999;999;999mx":   `<span class="term-fgi97">x</span>`,
		"\x1b[0m38;2;1;2;3mx":       `38;2;1;2;3mx`,
	} {
		if got := string(joined(Terminal(text))); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}

// What a text would hide from who watches, as a terminal does, stands there plainly: the model reads it.
func TestNothingIsHidden(t *testing.T) {
	for text, want := range map[string]string{
		"a\x1b[8mb\x1b[28mc":     `abc`,
		"\x1b[31;8mx\x1b[0my":    `<span class="term-fg31">x</span>y`,
		"\x1b[38;5;8mx\x1b[8m y": `<span class="term-fgi90">x y</span>`,
	} {
		if got := string(joined(Terminal(text))); got != want {
			t.Errorf("%q is %s, not %s", text, got, want)
		}
	}
}

// Which tasks of a list are done is seen.
func TestTasks(t *testing.T) {
	made := string(Markdown("- [ ] write\n- [x] test\n- [link](https://example.com)"))
	for _, want := range []string{"<li>☐ write</li>", "<li>☑ test</li>"} {
		if !strings.Contains(made, want) {
			t.Errorf("there is no %s in %s", want, made)
		}
	}
}

// A language is known by its name, its other names and its files' ending; one that is not is told at once.
func TestLanguages(t *testing.T) {
	for _, name := range []string{"python", "Python", "py", "bash", "sh", "r", "js", "typescript", "c++", "cpp", "csharp", "cs", "go", "yml", "toml", "sql", "tex"} {
		if ours, theirs := languages()[strings.ToLower(name)], lexers.Get(name); ours == nil || ours.Config().Name != theirs.Config().Name {
			t.Errorf("%s is not %s", name, theirs.Config().Name)
		}
	}
	for _, name := range []string{"", "nosuch", "[gs]sed"} {
		if languages()[name] != nil {
			t.Errorf("%q is a language", name)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, attack := range attacks {
		f.Add(attack)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 500 { // each is made in thirty ways
			return
		}
		for name, made := range all(text) {
			checkSafe(t, name+" of "+text, made)
		}
	})
}

func TestForms(t *testing.T) {
	const columns = `<table border="1" class="dataframe"><thead><tr><th></th><th colspan="2" halign="left">v</th></tr></thead></table>`
	if got, ok := HTML(columns); !ok || !strings.Contains(string(got), `colspan="2"`) {
		t.Errorf("columns of several levels: %s", got)
	}
	const dataframe = `<div><style scoped>.dataframe tbody tr th {vertical-align: top;}</style><table border="1" class="dataframe"><thead>` +
		`<tr style="text-align: right;"><th></th><th>a</th></tr></thead><tbody><tr><th>0</th><td>1</td></tr></tbody></table></div>`
	for name, tt := range map[string]struct {
		made template.HTML
		want string
	}{
		"a keyword":             {Code("python", "for x in y: pass"), `<span class="hl-k">for</span>`},
		"a magic":               {Code("python", "%timeit f()\nx = 1"), `<span class="hl-magic">%timeit f()`},
		"a shell line":          {Code("python", "!ls -l"), `<span class="hl-magic">!ls -l</span>`},
		"help":                  {Code("python", "len?"), `<span class="hl-magic">len?</span>`},
		"a cell in bash":        {Code("python", "%%bash\nif true; then ls; fi"), `<span class="hl-k">if</span>`},
		"an operator":           {Code("python", "a % b"), `<span class="hl-o">%</span>`},
		"colours":               {joined(Terminal("\x1b[31mred\x1b[0m")), `<span class="term-fg31">red</span>`},
		"256 colours":           {joined(Terminal("\x1b[38;5;28;48;5;231mx")), `<span class="term-fg32 term-bgi107">x</span>`},
		"a progress bar":        {joined(Terminal(" 10%|#   |\r100%|####|\n")), `100%|####|`},
		"an indent":             {joined(Terminal("\tx")), "\tx"},
		"a formula":             {Markdown("so $x^2$ is"), `<msup><mi>x</mi><mn>2</mn></msup>`},
		"a displayed formula":   {Markdown("$$\nx^2\n$$"), `<math display="block">`},
		"prices":                {Markdown("from $5 to $7"), `from $5 to $7`},
		"a table in Markdown":   {Markdown("|a|b|\n|-|-|\n|1|2|"), `<td>1</td>`},
		"a column at the right": {Markdown("|a|\n|-:|\n|1|"), `<td align="right">1</td>`},
		"HTML in Markdown":      {Markdown("a <b>x</b>"), `a x`},
		"LaTeX":                 {LaTeX(`$\displaystyle \frac{x}{2}$`), `<mfrac>`},
		"a document in LaTeX":   {LaTeX(`\begin{tabular}{l}x\end{tabular}`), `<pre class="text">\begin{tabular}`},
		"JSON":                  {JSON([]byte(`{"b":1,"a":[1.50,"x"]}`)), `<span class="json-number">1.50</span>`},
		"no JSON":               {JSON([]byte(`{"b":`)), `<pre class="text">{&#34;b&#34;:</pre>`},
		"a DataFrame":           {Bundle(bundle("text/html", dataframe, "text/plain", "a"), there{}), `<table class="dataframe"><thead><tr><th class="number" data-index="0"></th><th class="number">a</th></tr></thead>`},
		"HTML with a style":     {Bundle(bundle("text/html", `<b style="color:red">x</b>`), there{}), `<iframe class="frame" sandbox="allow-scripts"`},
		"HTML with a script":    {Bundle(bundle("text/html", `<script>1</script>`), there{}), `src="/there/frame"`},
		"JavaScript":            {Bundle(bundle("application/javascript", `1`), there{}), `<iframe`},
		"an image":              {Bundle(bundle("image/png", "iVBORw0KGgo=", "text/plain", "<Figure>"), there{}), `src="/there/raw?mime=image%2Fpng"`},
		"an SVG":                {Bundle(bundle("image/svg+xml", "<svg onload=1>"), there{}), `<img loading="lazy"`},
		"only text":             {Bundle(bundle("text/plain", "a\x1b[1mb"), there{}), `a<span class="term-fg1">b</span>`},
		"a PDF":                 {Bundle(bundle("application/pdf", "AAAA"), there{}), `<a download href="/there/raw?mime=application%2Fpdf">application/pdf</a>`},
		"Plotly without HTML":   {Bundle(bundle("application/vnd.plotly.v1+json", map[string]any{"data": 1}), there{}), `pio.renderers.default`},
		"a library is no noise": {Bundle(bundle("text/html", "<script>window.PlotlyConfig={}"+strings.Repeat(" ", minLibrary)), there{}), `was loaded here`},
	} {
		if !strings.Contains(string(tt.made), tt.want) {
			t.Errorf("%s is\n%s\nwant in it\n%s", name, tt.made, tt.want)
		}
	}
}

func TestErrorIsToldOnce(t *testing.T) {
	for name, e := range map[string]kernels.ExecError{
		"<strong>KeyboardInterrupt</strong></p>": {Name: "KeyboardInterrupt", Traceback: []string{"Cell In[1], line 1\n----> 1 sleep(9)", "\x1b[31mKeyboardInterrupt\x1b[39m: "}},
		"<strong>SyntaxError</strong>: invalid syntax</p>": {Name: "SyntaxError", Value: "invalid syntax (1907491037.py, line 1)", Traceback: []string{
			"  \x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 1\x1b[39m\n    x = = 1\n        ^\n\x1b[31mSyntaxError\x1b[39m\x1b[31m:\x1b[39m invalid syntax\n"}},
		"<strong>Error</strong> in f(): boom</p>": {Name: "ERROR", Value: "Error in f(): boom", Traceback: []string{"Cell In[1], line 1\n----> 1 f()", "Error in f(): boom"}},
	} {
		made := string(Error(e, 0))
		if e.Name == "ERROR" { // R's, which its message has in other letters
			e.Name = "Error"
		}
		if !strings.Contains(made, name) || strings.Count(made, e.Name) != 1 || !strings.Contains(made, "line 1</summary>") {
			t.Errorf("%s is\n%s", e.Name, made)
		}
	}
	if made := string(Error(kernels.ExecError{Name: "SyntaxError", Value: "bad (mine.py, line 3)"}, 0)); !strings.Contains(made, "(mine.py, line 3)") {
		t.Errorf("a file's name is gone: %s", made)
	}
}

func TestErrorFoldsLibraries(t *testing.T) {
	made := string(Error(kernels.ExecError{Name: "KeyError", Value: "'b'", Traceback: []string{
		"\x1b[31m---------------------------------------------------------------------------\x1b[39m",
		"\x1b[31mKeyError\x1b[39m                                  Traceback (most recent call last)",
		"\x1b[36mCell\x1b[39m\x1b[36m \x1b[39m\x1b[32mIn[1]\x1b[39m\x1b[32m, line 1\x1b[39m\n\x1b[32m----> \x1b[39m\x1b[32m1\x1b[39m d['b']",
		"File /usr/lib/python3/dist-packages/a.py:1, in f()\n----> 1 x", "File /usr/lib/python3/dist-packages/b.py:1, in g()\n----> 1 y", "\x1b[31mKeyError\x1b[39m: 'b'", "\x1b[31mKeyError\x1b[39m: 'b'\nand a note",
	}}, 4))
	for _, want := range []string{
		`<strong>KeyError</strong>: &#39;b&#39;`, `<details class="frame-of-error" open><summary>Cell In[5], line 1</summary>`, `<summary>2 frames in libraries</summary>`,
		`<details class="frame-of-error"><summary>File /usr/lib/python3/dist-packages/b.py:1, in g()</summary>`, `<pre class="error-message"><span class="term-fg31">KeyError</span>`,
	} {
		if !strings.Contains(made, want) {
			t.Errorf("no %s in\n%s", want, made)
		}
	}
	if strings.Count(made, "error-message") != 1 {
		t.Errorf("the headline is repeated in\n%s", made)
	}
	if strings.Contains(made, "-----------") || strings.Contains(made, "most recent call last") {
		t.Errorf("ornaments are left in\n%s", made)
	}
}

func TestFrameOf(t *testing.T) {
	library := bundle("text/html", "<script>window.PlotlyConfig={};define('plotly',f)"+strings.Repeat(" ", minLibrary)+"</script>")
	if Library(library) != plotly || Library(bundle("text/html", "<p>")) != "" {
		t.Error("libraries are not told from others")
	}
	made := FrameOf(bundle("text/html", `<div>chart</div>`, "application/javascript", `x = "</script><b>"`), []kernels.Output{library}, true)
	for _, want := range []string{`<div>chart</div><div></div><script>((element) => {{x = "<\/script><b>"` + "\n}})(cellblockElement())</script>", `<div hidden><script>window.PlotlyConfig`, `window.define.amd`} {
		if !strings.Contains(made, want) {
			t.Errorf("no %s in\n%s", want, made)
		}
	}
	if plain := FrameOf(bundle("text/html", `<canvas>`), nil, true); strings.Contains(plain, "define.amd") {
		t.Error("a document that has no use for modules has a loader of them")
	}
}

// Of an exception that led to another each stands behind its own frames, also the one that the headline names.
func TestChainedErrors(t *testing.T) {
	made := string(Error(kernels.ExecError{Name: "ValueError", Value: "outer", Traceback: []string{
		"KeyError Traceback (most recent call last)", "Cell In[1], line 2\n----> 2 g()", "KeyError: 'inner'",
		"\nThe above exception was the direct cause of the following exception:\n",
		"ValueError Traceback (most recent call last)", "Cell In[1], line 4\n----> 4 raise", "ValueError: outer",
	}}, 0))
	at := 0
	for _, want := range []string{"<strong>ValueError</strong>: outer", "line 2", "KeyError: &#39;inner&#39;", "The above exception", "line 4", "ValueError: outer"} {
		n := strings.Index(made[at:], want)
		if n < 0 {
			t.Fatalf("no %q behind %d characters of\n%s", want, at, made)
		}
		at += n + len(want)
	}
}

// A line is shortened between characters, and what is open there is closed, and opened again behind.
func TestShortened(t *testing.T) {
	for line, want := range map[template.HTML]template.HTML{
		"12345":                                  "12345",
		"1234567890":                             "123 … 90",
		"éàüöäßñ":                                "éàü … ßñ",
		"a&lt;b&amp;c&gt;d":                      "a&lt;b … &gt;d",
		`<span class="term-fg31">1234567</span>`: `<span class="term-fg31">123</span> … <span class="term-fg31">67</span>`,
		`1<span class="term-fg31">23</span>4567`: `1<span class="term-fg31">23</span> … 67`,
	} {
		if got := Shortened(line, 3, 2); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
}
