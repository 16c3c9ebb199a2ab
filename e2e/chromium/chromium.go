// Package chromium starts the browser that tests and benchmarks look through.
package chromium

import (
	"context"
	"os"
	"os/exec"
	"time"

	"github.com/chromedp/chromedp"
)

// Program is the browser's program, "" where there is none.
func Program() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// Start starts a browser with a profile of its own. Its context is what chromedp makes tabs from; stop ends the browser, and must
// be called also where it did not start.
func Start(ctx context.Context) (browser context.Context, stop func(), err error) {
	profile, err := os.MkdirTemp("", "cb-chromium")
	if err != nil {
		return nil, func() {}, err
	}
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(profile),
		chromedp.ExecPath(Program()), chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("disable-dev-shm-usage", true), chromedp.WSURLReadTimeout(time.Minute))
	allocator, cancelAllocator := chromedp.NewExecAllocator(ctx, flags...)
	// What newer browsers say that the library does not know is no matter.
	browser, cancelBrowser := chromedp.NewContext(allocator, chromedp.WithErrorf(func(string, ...any) {}))
	stop = func() {
		cancelBrowser()
		cancelAllocator()
		_ = os.RemoveAll(profile)
	}
	return browser, stop, chromedp.Run(browser)
}
