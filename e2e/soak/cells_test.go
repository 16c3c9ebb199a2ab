package soak

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"strings"
	"sync"
	"time"

	"cellblock/e2e/rig"
)

// kinds are the cells of the mix. Each runs one cell, or a few, and says what was wrong.
var kinds = []struct {
	name string
	run  func(context.Context, *session) error
}{
	{"value", plain("['TOKEN', n]", "ok", "['TOKEN', ")},
	{"lines", lines},
	{"error", plain("def f(x):\n    return x / 0\nprint('before')\nf('TOKEN' and 1)", "error", "before", "return x / 0", "ZeroDivisionError")},
	{"images", images},
	{"big", big},
	{"interrupt", interrupt},
	{"stderr", plain("import sys; print('ü 漢字 🎉 TOKEN'); print('TOKEN err', file=sys.stderr)", "ok", "ü 漢字 🎉 TOKEN", "TOKEN err")},
	{"big", big},
	{"abandon", abandon},
	{"redrawn", plain("for i in range(500): print(f'\\rTOKEN {i:3} %', end='')", "ok", "TOKEN 499 %")},
	{"burst", burst},
	{"big", big},
	{"plot", plot},
	{"timeout", timeout},
	{"children", plain("import subprocess; print(subprocess.run(['echo', 'TOKEN from a child'], capture_output=True, text=True).stdout)",
		"ok", "TOKEN from a child")},
}

// plain is a kind whose result is all in its text.
func plain(code, status string, parts ...string) func(context.Context, *session) error {
	return func(ctx context.Context, s *session) error {
		c := s.newCell(code)
		r, err := c.run(ctx, nil, nil)
		if err != nil {
			return err
		}
		expected := make([]string, len(parts))
		for i, part := range parts {
			expected[i] = strings.ReplaceAll(part, "TOKEN", c.token)
		}
		return c.check(r, status, expected...)
	}
}

// lines prints many lines, flushed one by one.
func lines(ctx context.Context, s *session) error {
	c := s.newCell("for i in range(300): print(f'TOKEN line {i}', flush=True)")
	var parts []string
	for i := range 300 {
		parts = append(parts, fmt.Sprintf("%s line %d\n", c.token, i))
	}
	r, err := c.run(ctx, nil, nil)
	if err != nil {
		return err
	}
	return c.check(r, "ok", strings.Join(parts, ""))
}

const drawToken = `import struct, zlib
from IPython.display import Image, display
def chunk(kind, data): return struct.pack('>I', len(data)) + kind + data + struct.pack('>I', zlib.crc32(kind + data))
def drawn(text):
    row = text.encode()
    return Image(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', len(row), 1, 8, 0, 0, 0, 0))
        + chunk(b'IDAT', zlib.compress(b'\0' + row)) + chunk(b'IEND', b''))
for i in range(3):
    print('image', i)
    display(drawn(f'TOKEN image {i}'))`

// images shows pictures whose pixels are the letters of the token.
func images(ctx context.Context, s *session) error {
	c := s.newCell(drawToken)
	r, err := c.run(ctx, nil, nil)
	if err != nil {
		return err
	}
	if len(r.Images) != 3 {
		return c.wrong(r, "%d images", len(r.Images))
	}
	for i, raw := range r.Images {
		if got, want := pixels(raw), fmt.Sprintf("%s image %d", c.token, i); got != want {
			return c.wrong(r, "image %d shows %q", i, got)
		}
	}
	return c.check(r, "ok", "image 0", "image 1", "image 2")
}

// pixels reads what drawToken has written into an image.
func pixels(raw []byte) string {
	decoded, err := png.Decode(bytes.NewReader(raw))
	if err != nil {
		return err.Error()
	}
	gray, ok := decoded.(*image.Gray)
	if !ok {
		return fmt.Sprintf("%T", decoded)
	}
	return string(gray.Pix)
}

// plot draws with Matplotlib.
func plot(ctx context.Context, s *session) error {
	c := s.newCell("import matplotlib.pyplot as plt\nplt.figure(figsize=(2, 2)); plt.plot([1, 3, 2]); plt.title('TOKEN'); plt.show()\nprint('plotted')")
	r, err := c.run(ctx, nil, nil)
	if err != nil {
		return err
	}
	if len(r.Images) != 1 {
		return c.wrong(r, "%d images", len(r.Images))
	}
	return c.check(r, "ok", "plotted")
}

const sleepLong = "import time\nfor _ in range(6000): time.sleep(0.1)"

// interrupt stops a cell by the tool for it.
func interrupt(ctx context.Context, s *session) error {
	c := s.newCell(sleepLong)
	begun, told := c.begun()
	return c.during(ctx, begun, told, func() error {
		r, err := s.c.Call(ctx, "interrupt_session", map[string]any{"session_id": s.id}, nil)
		if err == nil && r.IsError {
			err = c.wrong(r, "interrupt_session failed")
		}
		return err
	}, func(r rig.Result, err error) error {
		if err != nil {
			return err
		}
		return c.check(r, "interrupted", "KeyboardInterrupt")
	})
}

// abandon gives a call up. In 2026-07-28 that stops its cell; in the handshake revisions the cell goes on.
func abandon(ctx context.Context, s *session) error {
	code, status, parts := sleepLong, "cancelled", []string{"KeyboardInterrupt"}
	if s.handshake {
		code, status, parts = "import time; time.sleep(0.5); print('went on')", "ok", []string{"went on"}
	}
	c := s.newCell(code)
	begun, told := c.begun()
	call, giveUp := context.WithCancel(ctx)
	defer giveUp()
	return c.during(call, begun, told, func() error { giveUp(); return nil }, func(r rig.Result, err error) error {
		if err != nil { // else it was faster
			r, err = c.again(ctx)
		}
		if err != nil {
			return err
		}
		return c.check(r, status, parts...)
	})
}

// during runs a cell, does something once it has begun, and lets its result be judged.
func (c cell) during(ctx context.Context, begun <-chan struct{}, told func(string), do func() error, judge func(rig.Result, error) error) error {
	type outcome struct {
		r   rig.Result
		err error
	}
	ended := make(chan outcome, 1)
	go func() {
		r, err := c.run(ctx, nil, told)
		ended <- outcome{r, err}
	}()
	select {
	case <-begun:
	case o := <-ended:
		return errors.Join(o.err, c.wrong(o.r, "it ended before its first line was told"))
	}
	err := do()
	o := <-ended
	return errors.Join(err, judge(o.r, o.err))
}

// timeout lets a cell run into its time limit.
func timeout(ctx context.Context, s *session) error {
	c := s.newCell(sleepLong)
	r, err := c.run(ctx, map[string]any{"timeout_seconds": 1}, nil)
	if err != nil {
		return err
	}
	return c.check(r, "timed out", "KeyboardInterrupt")
}

// bigLines is how many lines big prints, about 1.2 MB.
const bigLines = 12_000

// big prints more than a result shows: its beginning and its end are there, and the whole can be read.
func big(ctx context.Context, s *session) error {
	filler := strings.Repeat("·x", 30)
	c := s.newCell(fmt.Sprintf("for i in range(%d): print(f'TOKEN {i} %s')", bigLines, filler))
	var whole strings.Builder
	whole.WriteString(c.head() + "\n")
	for i := range bigLines {
		fmt.Fprintf(&whole, "%s %d %s\n", c.token, i, filler)
	}
	r, err := c.run(ctx, nil, nil)
	if err != nil {
		return err
	}
	if err := c.check(r, "ok", c.token+" 0 ", "left out here", fmt.Sprintf("%s %d ", c.token, bigLines-1)); err != nil {
		return err
	}
	got, err := readWhole(ctx, c)
	if err == nil && strings.TrimRight(got, "\n") != strings.TrimRight(whole.String(), "\n") {
		err = fmt.Errorf("%s: the whole output has %d bytes, not %d, or is another", c.token, len(got), whole.Len())
	}
	return err
}

// readWhole reads a cell's output page by page.
func readWhole(ctx context.Context, c cell) (string, error) {
	var whole strings.Builder
	for offset := 0; ; {
		uri := fmt.Sprintf("cellblock://sessions/%s/executions/%d/output?offset=%d&limit=400000", c.s.id, c.number, offset)
		page, meta, err := c.s.c.Read(ctx, uri)
		if err != nil {
			return "", err
		}
		place, _ := meta["cellblock/execution"].(map[string]any)
		next, total := number(place["next"]), number(place["characters"])
		if next <= offset || total == 0 {
			return "", fmt.Errorf("%s: the page at %d goes on at %d of %d", uri, offset, next, total)
		}
		letters := []rune(page)
		whole.WriteString(string(letters[:min(next-offset, len(letters))])) // without the line that says how to read on
		if offset = next; offset >= total {
			return whole.String(), nil
		}
	}
}

func number(v any) int {
	f, _ := v.(float64)
	return int(f)
}

// burst sends cells at once: they run in the order in which the server got them, which is theirs to say.
func burst(ctx context.Context, s *session) error {
	const together = 3
	first := len(s.tokens) + 1
	var (
		all   sync.WaitGroup
		mu    sync.Mutex
		wrong error
		seen  = map[int]bool{}
	)
	for range together {
		c := s.newCell("print('TOKEN in a burst')")
		all.Go(func() {
			r, err := c.run(ctx, nil, nil)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				c.number, err = place(r, c.token)
				c.number += s.lost
				seen[c.number] = true
			}
			if err == nil {
				err = c.check(r, "ok", c.token+" in a burst")
			}
			wrong = errors.Join(wrong, err)
		})
	}
	all.Wait()
	for i := range together {
		if !seen[first+i] && wrong == nil {
			wrong = fmt.Errorf("%s: the cells %d… of a burst ran as %v", s.id, first, seen)
		}
	}
	return wrong
}

// place reads from a result which cell of its kernel a token became.
func place(r rig.Result, token string) (n int, err error) {
	_, after, _ := strings.Cut(r.Text, "<"+token+" #")
	if _, err = fmt.Sscanf(after, "%d>", &n); err != nil {
		return 0, fmt.Errorf("%s: no place in %q", token, r.Text)
	}
	return n, nil
}

// patience bounds one round of a session, so that what hangs is named.
const patience = 2 * time.Minute
