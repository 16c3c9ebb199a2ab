package main

import (
	"context"
	"fmt"
	"path/filepath"

	"cellblock/e2e/chromium"
)

// watchTimes has a page note, for each "at <milliseconds>." that appears among its cells, how long after that time the frame was
// painted that shows it first: what is posted in a frame's callback is handled when that frame has been painted.
const watchTimes = `(() => {
	const seen = new Set(), cells = document.getElementById('cells');
	globalThis.took = [];
	const painted = new MessageChannel();
	painted.port1.onmessage = ({data}) => { const now = performance.timeOrigin + performance.now(); for (const at of data) took.push(now - at); };
	const look = () => {
		const times = [...cells.textContent.matchAll(/at (\d+\.\d)\d*\./g)].map(([, at]) => at).filter((at) => !seen.has(at));
		if (times.length === 0) return;
		for (const at of times) seen.add(at);
		requestAnimationFrame(() => painted.port2.postMessage(times));
	};
	look();
	took.length = 0;
	new MutationObserver(look).observe(cells, {childList: true, subtree: true, characterData: true});
	return true;
})()`

// tellTimes waits until a page has noted so many times, and tells them.
const tellTimes = `new Promise((resolve) => {
	const look = () => took.length < %d ? setTimeout(look, 20) : resolve(took);
	look();
})`

// slowLines prints count lines, so that each has a frame of its own.
const slowLines = "for i in range(count):\n    time.sleep(.1 + i % 7 / 500)\n    print(f'at {time.time() * 1000:.2f}.', flush=True)"

// pixelCells are ways of cells to print what people wait for: all of it, or one line each time they run.
var pixelCells = []struct {
	what, code string
	once       bool
}{
	{"a line of a cell that prints ten a second", slowLines, true},
	{"a line behind 20,000 others of its cell", "for i in range(20_000): print('line', i)\ntime.sleep(1)\n" + slowLines, true},
	{"the first line of a cell", "time.sleep(.1); print(f'at {time.time() * 1000:.2f}.', flush=True)", false},
}

// measurePixel tells how long it takes from what a kernel prints, by its clock, to the frame of a browser that shows it.
func measurePixel(ctx context.Context, o options, dir string) (r report, err error) {
	if chromium.Program() == "" {
		return report{notes: []string{noBrowser}}, nil
	}
	folder := filepath.Join(dir, "pixel")
	srv, page, stop, err := startViewer(ctx, o, folder)
	if err != nil {
		return report{}, err
	}
	defer stop()
	for i, cell := range pixelCells {
		runs := o.cells
		if cell.once {
			runs = 1
		}
		times, err := pixelTimes(ctx, o, srv, page, fmt.Sprintf("pixel-%d", i), cell.code, runs)
		if err != nil {
			return report{}, fmt.Errorf("%s: %w", cell.what, err)
		}
		what := "from print to painted frame: " + cell.what
		r.costs = append(r.costs, cost{what: what + ", median", value: median(times), unit: "ms", goal: 50},
			cost{what: what + ", 99th percentile", value: quantile(times, .99), unit: "ms"})
	}
	return r, nil
}

// pixelTimes has a session run code, which prints o.cells times in all, has a page show it, and tells how long that took each time, in milliseconds.
func pixelTimes(ctx context.Context, o options, srv *server, page *page, session, code string, runs int) (times []float64, err error) {
	if err := srv.execute(ctx, session, fmt.Sprintf("import time\ncount = %d\nprint('ready')", o.cells)); err != nil {
		return nil, err
	}
	if err := page.openSession(session, 1); err != nil {
		return nil, err
	}
	var ok bool
	if err := page.eval(watchTimes, &ok); err != nil {
		return nil, err
	}
	for range runs {
		if err := srv.execute(ctx, session, code); err != nil {
			return nil, err
		}
	}
	err = page.eval(fmt.Sprintf(tellTimes, o.cells), &times)
	return times, err
}
