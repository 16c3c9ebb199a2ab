package browser

import (
	"os"
	"testing"

	"cellblock/e2e/rig"
)

// drawn is true when Bokeh has drawn the red line of testdata/bokeh.py.
const drawnByBokeh = `(() => {
	const canvases = (root) => [...root.querySelectorAll('*')].flatMap((e) => [...(e.tagName === 'CANVAS' ? [e] : []), ...(e.shadowRoot ? canvases(e.shadowRoot) : [])]);
	return canvases(document).some((canvas) => {
		if (!canvas.width || !canvas.height) return false;
		const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
		let red = 0;
		for (let i = 0; i < data.length; i += 4) if (data[i] > 200 && data[i + 1] < 60 && data[i + 2] < 60 && data[i + 3] > 200) red++;
		return red > 500;
	});
})()`

// Bokeh's plots are drawn: those of show() after output_notebook() of an earlier cell, and a file's HTML. Where the library would come
// from the network, the page says what to write.
func TestBokeh(t *testing.T) {
	bokehJS, err := os.ReadFile(rig.NeedNode(t).Package("@bokeh", "bokehjs", "bokeh.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	python, err := os.ReadFile("testdata/bokeh.py")
	if err != nil {
		t.Fatal(err)
	}
	s := shared(t)
	c := s.mcp(t)
	for name, content := range map[string]string{"bokeh.py": string(python), "bokeh.min.js": string(bokehJS)} {
		if _, err := c.Call(t.Context(), "write_file", map[string]any{"session_id": "bokeh", "path": name, "content": content}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, code := range []string{
		"from bokeh import *; output_notebook('load_from_a_cdn()')", "show()", "output_notebook()", "print('between')", "show()", "file_html()",
	} {
		if r := s.python(t, c, "bokeh", code); r.IsError {
			t.Fatalf("%s: %s", code, r.Text)
		}
	}
	p := s.signIn(t)
	p.open("/s/bokeh")
	p.untilCell(1, "cell.innerText.includes('output_notebook(INLINE)') && !cell.innerText.includes('Loading')")
	p.frame(2).until(`document.querySelector('.cellblock-blocked')?.innerText.includes('output_notebook(INLINE)')`)
	p.untilCell(3, "cell.innerText.includes('A library for the outputs that follow') && !cell.querySelector('iframe')")
	for _, n := range []int{5, 6} {
		p.frame(n).until(drawnByBokeh)
		p.untilCell(n, "cell.querySelectorAll('iframe').length === 1 && parseInt(cell.querySelector('iframe').style.height) > 240")
	}
}
