package main

import (
	"context"
	"fmt"
	"time"

	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"cellblock/e2e/chromium"
)

// noBrowser is the note where rows of the viewer are left out.
const noBrowser = "the viewer's rows are left out: apt-get install chromium"

// page is a tab of a browser that is signed in to a server's viewer.
type page struct {
	ctx  context.Context
	base string // of addresses
	stop func()
}

// startViewer starts a server with its data in a folder, and opens a page of its viewer.
func startViewer(ctx context.Context, o options, folder string) (s *server, p *page, stop func(), err error) {
	if s, err = startServer(ctx, o, folder, "--provisioner", "local"); err != nil {
		return nil, nil, nil, err
	}
	if p, err = openPage(ctx, o, s, folder); err != nil {
		s.stop()
		return nil, nil, nil, err
	}
	return s, p, func() { p.stop(); s.stop() }, nil
}

// openPage starts a browser and signs in to the server whose data folder that is.
func openPage(ctx context.Context, o options, s *server, folder string) (*page, error) {
	link, err := signInLink(ctx, o, s, folder)
	if err != nil {
		return nil, err
	}
	browser, stop, err := chromium.Start(ctx)
	if err != nil {
		stop()
		return nil, fmt.Errorf("the browser does not start: %w", err)
	}
	p := &page{ctx: browser, base: s.base(), stop: stop}
	if err := p.do(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(link), chromedp.WaitVisible("#main h1")); err != nil {
		stop()
		return nil, err
	}
	return p, nil
}

// do carries out actions, within five minutes.
func (p *page) do(actions ...chromedp.Action) error {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Minute)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// openSession shows a session, of which a cell with a number is to be seen.
func (p *page) openSession(id string, cell int) error {
	return p.do(chromedp.Navigate(p.base+"/s/"+id), chromedp.WaitVisible(fmt.Sprintf("#c%d", cell)))
}

// eval runs a script in the page, waits for its promise and decodes its value into a pointer.
func (p *page) eval(script string, into any) error {
	return p.do(chromedp.Evaluate(script, into, func(e *runtime.EvaluateParams) *runtime.EvaluateParams { return e.WithAwaitPromise(true) }))
}
