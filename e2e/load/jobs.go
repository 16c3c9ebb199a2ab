package main

import (
	"context"
	"fmt"
	"strings"
)

// job is one kind of work, whose answer is known.
type job struct {
	name string
	run  func(ctx context.Context, w *worker) error
}

// jobs are what every session does, in turn.
var jobs = []job{
	{"count", count},
	{"print", printMuch},
	{"count", count},
	{"fail", failOnPurpose},
	{"compute", compute},
	{"file", keepFile},
	{"count", count},
	{"rest", rest},
}

// lost is an answer that is not what it must be.
type lost string

func (l lost) Error() string { return string(l) }

// patience is how many seconds a call waits for its cell: a slow answer counts as slow, not as lost.
const patience = 600

// execute has a cell run to its end, however slow the server is.
func (w *worker) execute(ctx context.Context, code string) (text string, isError bool, err error) {
	return w.Call(ctx, "execute_python", map[string]any{"session_id": w.id, "code": code, "wait_seconds": patience})
}

// run executes a cell that must say want, and end as it must.
func (w *worker) run(ctx context.Context, code, want string, fails bool) error {
	text, isError, err := w.execute(ctx, code)
	switch {
	case err != nil:
		return err
	case isError && !fails:
		return fmt.Errorf("%s", firstLine(text))
	case isError != fails || !strings.Contains(text, want):
		return lost(fmt.Sprintf("want %q, got %q", want, firstLine(text)))
	}
	return nil
}

// count tells a lost kernel, and a cell that ran twice or never, by a variable.
func count(ctx context.Context, w *worker) error {
	w.cells++
	err := w.run(ctx, "counted = globals().get('counted', 0) + 1; print('at', counted, 'of', __import__('os').getcwd())", fmt.Sprintf("at %d of", w.cells), false)
	if err != nil {
		w.cells = 0 // begin anew
		_, _, _ = w.execute(ctx, "counted = 0")
	}
	return err
}

func printMuch(ctx context.Context, w *worker) error {
	return w.run(ctx, "for i in range(500): print('line', i, flush=i % 50 == 0)", "line 499", false)
}

func failOnPurpose(ctx context.Context, w *worker) error {
	return w.run(ctx, "raise ValueError('on purpose')", "on purpose", true)
}

func compute(ctx context.Context, w *worker) error {
	return w.run(ctx, "sum(i * i for i in range(200_000))", "2666646666700000", false)
}

// keepFile writes a file by a tool and reads it in a cell.
func keepFile(ctx context.Context, w *worker) error {
	_, isError, err := w.Call(ctx, "write_file", map[string]any{"session_id": w.id, "path": "load.txt", "content": "kept for " + w.id})
	if err == nil && isError {
		err = lost("the file was not written")
	}
	if err != nil {
		return err
	}
	return w.run(ctx, "print(open('load.txt').read())", "kept for "+w.id, false)
}

func rest(ctx context.Context, w *worker) error {
	return w.run(ctx, "import time; time.sleep(0.2); print('rested')", "rested", false)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line[:min(len(line), 200)]
}
