package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"cellblock/e2e/chromium"
	"cellblock/sessions"
	"cellblock/sessions/history"
)

// scrolledCells cells with scrolledBytes of text each are a history of 50 MB.
const scrolledCells, scrolledBytes = 10_000, 5000

// scrollThrough scrolls through a page as a wheel does, up from its end by 100 pixels a frame, and then in leaps all over it, and tells how
// long frames took, and the page's long tasks, in milliseconds.
const scrollThrough = `(async () => {
	const tasks = [], frames = [];
	const observer = new PerformanceObserver((list) => { for (const entry of list.getEntries()) tasks.push(entry.duration); });
	observer.observe({type: 'longtask'});
	const frame = () => new Promise((painted) => requestAnimationFrame(painted));
	let last = await frame();
	const step = async () => { const now = await frame(); frames.push(now - last); last = now; };
	for (let i = 0; i < %[1]d; i++) { scrollBy(0, -100); await step(); }
	for (let i = 0; i < %[1]d / 10; i++) {
		scrollTo(0, (i * 0.381966 %% 1) * document.documentElement.scrollHeight);
		for (let rest = 0; rest < 10; rest++) await step();
	}
	observer.disconnect();
	return {tasks, frames};
})()`

// measureScroll tells how smoothly a long session is scrolled through in a browser.
func measureScroll(ctx context.Context, o options, dir string) (report, error) {
	if chromium.Program() == "" {
		return report{notes: []string{noBrowser}}, nil
	}
	folder := filepath.Join(dir, "scroll")
	err := withHistory(ctx, o, folder, func(store *history.Store, owner sessions.Owner) error {
		return closedSession(ctx, store, owner, longSession, scrolledCells, strings.Repeat(strings.Repeat("x", 99)+"\n", scrolledBytes/100))
	})
	if err != nil {
		return report{}, err
	}
	_, page, stop, err := startViewer(ctx, o, folder)
	if err != nil {
		return report{}, err
	}
	defer stop()
	if err := page.openSession(longSession, scrolledCells); err != nil {
		return report{}, err
	}
	var seen struct{ Tasks, Frames []float64 }
	if err := page.eval(fmt.Sprintf(scrollThrough, 10*o.cells), &seen); err != nil {
		return report{}, err
	}
	what := fmt.Sprintf("scrolling through %d cells, 50 MB: ", scrolledCells)
	return report{costs: []cost{
		{what: what + "a frame, median", value: median(seen.Frames), unit: "ms", goal: 20},
		{what: what + "a frame, 99th percentile", value: quantile(seen.Frames, .99), unit: "ms", goal: 100},
		{what: what + "the longest task", value: quantile(append(seen.Tasks, 0), 1), unit: "ms", goal: 200},
	}}, nil
}
