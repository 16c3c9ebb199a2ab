package browser

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"cellblock/auth"
	"cellblock/e2e/rig"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// longCells cells with longBytes of text each are a history of 50 MB.
const longCells, longBytes = 10_000, 5000

// writeLong writes a long session into the history of an installation whose server does not run yet.
func writeLong(t *testing.T, folder string, owner sessions.Owner, id string) {
	t.Helper()
	text := strings.Repeat(strings.Repeat("x", 99)+"\n", longBytes/100)
	writeSession(t, folder, owner, id, longCells, func(n int) []kernels.Output {
		return []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: fmt.Sprintf("output of %d\n", n) + text}}
	})
}

// writeSession writes a session of so many cells, which have ended, into such a history.
func writeSession(t *testing.T, folder string, owner sessions.Owner, id string, cells int, outputs func(n int) []kernels.Output) {
	t.Helper()
	store, err := history.Open(t.Context(), history.Options{Folder: folder})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	began := time.Now().Add(-time.Hour)
	s, err := store.Open(t.Context(), sessions.StoredSession{Owner: owner, ID: id, Language: "python", Created: began})
	if err != nil {
		t.Fatal(err)
	}
	changes := []sessions.Change{sessions.GenerationBegan{Number: 1, Started: began}}
	commit := func() {
		if err := store.Commit(t.Context(), s.Ref, changes...); err != nil {
			t.Fatal(err)
		}
		changes = nil
	}
	var seq uint64
	for n := 1; n <= cells; n++ {
		outs := outputs(n)
		for i := range outs {
			seq++
			outs[i].Seq = seq
		}
		changes = append(changes,
			sessions.ExecutionQueued{Number: n, MsgID: fmt.Sprint("m", n), Code: fmt.Sprintf("print('cell %d')", n), Caller: "a test", Queued: began},
			sessions.ExecutionBegan{Number: n, Generation: 1, Started: began},
			sessions.OutputsKept{Number: n, Outputs: outs},
			sessions.ExecutionEnded{Number: n, Ended: began, Own: len(outs), Result: sessions.Result{Result: kernels.Result{Status: kernels.StatusOK}}})
		if n%500 == 0 {
			commit()
		}
	}
	changes = append(changes, sessions.GenerationEnded{Number: 1, Ended: time.Now(), Why: "it was long enough"},
		sessions.SessionClosed{Closed: time.Now(), Why: "it was long enough"})
	commit()
}

// A session of ten thousand cells and 50 MB opens at its end, and any part of it comes into sight when one goes there. The page never
// holds more than a few hundred cells.
func TestLongSession(t *testing.T) {
	needs(t)
	host := rig.Install(t, rig.RuntimeFlags("local")...)
	writeLong(t, host.DataDir, sessions.Owner{Issuer: auth.DevIssuer, Subject: subject(t)}, "long")
	s := siteOf(host.Serve(t))
	p := s.signIn(t)
	p.expects("/s/long/variables") // there is no kernel to ask
	p.open("/s/long")
	p.until("document.querySelector('#c10000')?.getBoundingClientRect().top < innerHeight")
	p.untilText("#c10000 .outputs", "output of 10000")
	inSight := func(n int) string {
		return fmt.Sprintf("(r => r && r.bottom > 0 && r.top < innerHeight)(document.querySelector('#c%d')?.getBoundingClientRect())", n)
	}
	p.press("gg")
	p.until(inSight(1))
	eval[int](p, "(async () => { for (let n = 0; n < 8; n++) await new Promise(requestAnimationFrame); return 8 })()") // it has settled there
	const held = "document.querySelectorAll('.cell').length"
	for _, part := range []float64{0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95} {
		// wherever one scrolls to, there are cells before long, and about those that belong there
		eval[bool](p, fmt.Sprintf("(scrollTo(0, %g * document.documentElement.scrollHeight), true)", part))
		p.until("(globalThis.seen = document.elementFromPoint(innerWidth / 2, innerHeight / 2)?.closest('.cell')?.dataset.n) !== undefined")
		n := eval[int](p, "Number(seen)")
		if want := part * longCells; float64(n) < want-1500 || float64(n) > want+1500 {
			t.Errorf("at %g of the page is cell %d", part, n)
		}
		if cells := eval[int](p, held); cells > 450 {
			t.Errorf("the page holds %d cells", cells)
		}
	}
	p.press("G")
	p.until(inSight(longCells))
	p.open("/s/long#c5000")
	onTop := func(n int) string {
		return fmt.Sprintf("(r => r?.top > 0 && r.top < 200)(document.querySelector('#c%d')?.getBoundingClientRect())", n)
	}
	p.until(onTop(5000))
	p.press("j")
	p.until("document.activeElement?.dataset.n === '5001'")
	p.press("k")
	p.press("o")
	p.until("document.querySelector('#c5000.folded')")
	for n := 5001; n <= 5005; n++ {
		p.press("j")
		p.until(fmt.Sprintf("document.activeElement?.dataset.n === '%d'", n))
	}
	p.do(chromedp.Reload()) // shows what was there, whatever the address names
	p.until(onTop(5005))
	p.open("/")
	p.do(chromedp.NavigateBack())
	p.until(onTop(5005))
	p.press("G")
	p.until(inSight(longCells))
	p.do(chromedp.Reload())
	p.until(inSight(longCells))
}

// What is looked for is found in all cells, also in those that the page does not hold, and gone to one by one.
func TestFindInAllCells(t *testing.T) {
	needs(t)
	host := rig.Install(t, rig.RuntimeFlags("local")...)
	writeSession(t, host.DataDir, sessions.Owner{Issuer: auth.DevIssuer, Subject: subject(t)}, "sought", 300, func(n int) []kernels.Output {
		if n == 250 {
			return []kernels.Output{{Kind: kernels.OutputDisplay, Data: map[string]json.RawMessage{"text/markdown": json.RawMessage(`"` + strings.Repeat("§ ", 200_000) + `"`)}}}
		}
		return []kernels.Output{{Kind: kernels.OutputStream, Stream: "stdout", Text: fmt.Sprintf("output of %d\n", n)}}
	})
	p := siteOf(host.Serve(t)).signIn(t)
	p.expects("/s/sought/variables") // there is no kernel to ask
	p.open("/s/sought")
	p.until("document.querySelector('#c300') && !document.querySelector('#c21')")
	p.key("/")
	p.until(focused("#find-text"))
	p.write("OUTPUT of 21")
	for i, n := range []int{21, 210, 211} {
		p.key("Enter")
		p.untilText("#find-count", fmt.Sprintf("%d of 11 cells", i+1))
		p.until(fmt.Sprintf("document.querySelector('#c%d .outputs')?.checkVisibility() && %s && CSS.highlights.get('found')?.size === 1", n, focused("#find-text")))
		p.until(inSight(fmt.Sprintf("#c%d .outputs pre", n)))
	}
	p.key("Enter", shift)
	p.untilText("#find-count", "2 of 11 cells")
	p.until(inSight("#c210 .outputs pre") + " && " + focused("#find-text"))
	p.key("ArrowDown")
	p.untilText("#find-count", "3 of 11 cells")
	p.click("#find-before + button") // to the right of it, as browsers have it
	p.untilText("#find-count", "4 of 11 cells")
	p.click("#find-before")
	p.untilText("#find-count", "3 of 11 cells")
	p.do(chromedp.Focus("#find-text", chromedp.ByQuery))
	p.key("ArrowUp")
	p.untilText("#find-count", "2 of 11 cells")
	p.until(inSight("#c210 .outputs pre") + " && " + focused("#find-text"))
	p.key("Escape")
	p.until("document.querySelector('#find-count').textContent === '' && !CSS.highlights.has('found') && document.activeElement.id === 'c210'")
	p.key("/")
	p.write("output of 21")
	p.key("Enter") // which begins where one is
	p.untilText("#find-count", "2 of 11 cells")
	p.key("Escape") // on the way to the cell
	p.key("/")
	p.write("nowhere")
	p.key("Enter")
	p.untilText("#find-count", "Not found")
	p.write("!") // another text, of which nobody knows yet
	p.until("document.querySelector('#find-count').textContent === ''")
	p.key("Escape") // and what is there too often is marked as far as a browser can
	p.key("/")
	p.write("§")
	p.key("Enter")
	p.until("document.querySelector('#c250')?.textContent.length > 300_000 && CSS.highlights.get('found')?.size === 1000")
}
