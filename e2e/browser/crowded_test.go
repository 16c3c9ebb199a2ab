package browser

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"cellblock/auth"
	"cellblock/e2e/rig"
	"cellblock/kernels"
	"cellblock/sessions"
)

// crowdedOutputs are those of a session's cells: the first four print more than a block has room for, the fifth shows large
// pictures, and the others print a line.
func crowdedOutputs(t *testing.T) func(n int) []kernels.Output {
	var drawn bytes.Buffer
	if err := png.Encode(&drawn, image.NewGray(image.Rect(0, 0, 40, 30))); err != nil {
		t.Fatal(err)
	}
	picture, err := json.Marshal(base64.StdEncoding.EncodeToString(append(drawn.Bytes(), make([]byte, 4<<20)...))) // what follows its end is not looked at
	if err != nil {
		t.Fatal(err)
	}
	printed := func(text string) kernels.Output {
		return kernels.Output{Kind: kernels.OutputStream, Stream: "stdout", Text: text}
	}
	long := strings.Repeat(strings.Repeat("x", 99)+"\n", 10<<10)
	return func(n int) (outs []kernels.Output) {
		switch {
		case n <= 4:
			for range 20 {
				outs = append(outs, printed(long))
			}
			outs = append(outs, printed(fmt.Sprintf("the end of %d\n", n)))
		case n == 5:
			for range 6 {
				outs = append(outs, kernels.Output{Kind: kernels.OutputDisplay, Data: map[string]json.RawMessage{"image/png": picture, "text/plain": json.RawMessage(`"<Figure>"`)}})
			}
		default:
			outs = append(outs, printed(fmt.Sprintf("output of %d\n", n)))
		}
		return outs
	}
}

// Where the cells of a page have more output than it can bear, the last ones show theirs, pictures cost nothing, and what the first
// ones lack comes when one asks for it.
func TestCrowdedPage(t *testing.T) {
	needs(t)
	host := rig.Install(t, rig.RuntimeFlags("local")...)
	writeSession(t, host.DataDir, sessions.Owner{Issuer: auth.DevIssuer, Subject: subject(t)}, "crowded", 20, crowdedOutputs(t))
	p := siteOf(host.Serve(t)).signIn(t)
	p.expects("/s/crowded/variables") // there is no kernel to ask
	p.open("/s/crowded")
	p.untilText("#c20 .outputs", "output of 20")
	for n := 6; n <= 20; n++ {
		if got := strings.TrimSpace(eval[string](p, fmt.Sprintf("document.querySelector('#c%d .outputs').textContent", n))); got != fmt.Sprint("output of ", n) {
			t.Errorf("cell %d shows %q", n, got)
		}
	}
	if n := p.count("#c5 .picture img"); n != 6 {
		t.Errorf("there are %d pictures", n)
	}
	lacking := eval[string](p, "[...document.querySelectorAll('.cell')].filter((c) => c.querySelector('.rest')).map((c) => c.id).join(' ')")
	if lacking != "c1" {
		t.Errorf("something is left out of %q", lacking)
	}
	p.press("gg")
	p.until("document.activeElement?.id === 'c1'")
	p.click("#c1 .rest")
	p.until("!document.querySelector('#c1 .rest')")
	p.untilText("#c1 .outputs", "the end of 1")
	if n := p.count(".cell"); n != 20 {
		t.Errorf("then there are %d cells", n)
	}
	for n := 2; n <= 5; n++ { // pictures come when they are near
		p.press("j")
		p.until(fmt.Sprintf("document.activeElement?.id === 'c%d'", n))
	}
	p.until("document.querySelector('#c5 .picture img').complete && document.querySelector('#c5 .picture img').naturalWidth === 40")
}
