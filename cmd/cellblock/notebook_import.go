package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"github.com/mark3labs/mcp-go/client"
	"github.com/spf13/cobra"

	"cellblock/images"
	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/notebook"
)

// importOptions are the flags of notebook import.
type importOptions struct {
	execOptions
	keepGoing bool
	from      int // the number of the code cell to begin with
}

func newNotebookImport() *cobra.Command {
	var o importOptions
	cmd := &cobra.Command{
		Use: "import FILE", Short: "Run a Jupyter notebook's code cells in a session",
		Long: `Runs the code cells of a Jupyter notebook (nbformat 4), in order, in a new session or in the one that --session names, and
prints what they print. The kernel runs magics as a notebook does; texts and empty cells are skipped. It stops at the first
cell that ends with an error, unless that cell has the tag raises-exception; --session with --from goes on later. A cell that was stopped when an exported session
ran it gets as long as it had then, unless --timeout says how long. Exit status 1 when a cell has failed.`,
		Example: `  cellblock notebook import analysis.ipynb
  cellblock notebook import --session analysis --keep-going analysis.ipynb
  cellblock notebook import --session analysis --from 39 analysis.ipynb`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			book, err := readNotebook(args[0], cmd.InOrStdin())
			if err != nil {
				return err
			}
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			o.language = cmp.Or(images.Name(cmp.Or(o.language, book.Language())), "python")
			graceful, _, release := stopSignals(cmd.Context())
			defer release()
			return o.run(graceful, cfg, codeOf(book), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.session, "session", "s", "", "session_id; none: a new session, whose id is printed")
	flags.StringVarP(&o.language, "language", "l", "", "the session's language (default: the notebook's)")
	flags.StringVar(&o.images, "images", "", "save images into this folder, in their full size")
	flags.BoolVarP(&o.keepGoing, "keep-going", "k", false, "go on behind cells that end with an error")
	flags.IntVar(&o.from, "from", 1, "the code cell to begin with, by its number as import counts them")
	flags.Var(&durationFlag{value: &o.timeout, unit: time.Second}, "timeout", "how long each cell may run: 90s, 10m, or a number of seconds (default: the server's)")
	o.connection.addFlags(flags)
	return cmd
}

func readNotebook(path string, stdin io.Reader) (*notebook.Notebook, error) {
	var data []byte
	var err error
	if path == "-" {
		path = "standard input"
		data, err = io.ReadAll(stdin)
	} else {
		data, err = os.ReadFile(path)
	}
	if err != nil {
		return nil, fault.New(fault.NotFound, "the notebook cannot be read: %w", err)
	}
	book, err := notebook.Parse(data)
	if err != nil {
		return nil, fault.New(fault.Invalid, "%s: %w", path, err)
	}
	if len(codeOf(book)) == 0 {
		return nil, fault.New(fault.Invalid, "%s: there is no code in it", path).WithHint("Give a notebook that has code cells.")
	}
	return book, nil
}

// codeOf is the cells of a notebook that do something.
func codeOf(book *notebook.Notebook) []*notebook.Cell {
	var code []*notebook.Cell
	for _, c := range book.Cells {
		if c.Type == notebook.Code && strings.TrimSpace(c.Source) != "" {
			code = append(code, c)
		}
	}
	return code
}

// run runs the cells on the server.
func (o importOptions) run(ctx context.Context, cfg *Config, cells []*notebook.Cell, stdout, stderr io.Writer) error {
	if o.from < 1 || o.from > len(cells) {
		return fault.New(fault.Invalid, "--from: the notebook has %s, and none is number %d", words.Count(int64(len(cells)), "code cell"), o.from)
	}
	live := &liveOutput{w: stdout}
	c, err := o.dial(ctx, cfg, live.notification)
	if err != nil {
		return err
	}
	defer c.Close()
	return o.cells(ctx, c, live, cells, stderr)
}

// cells runs the cells in one session, and says in the end which that is.
func (o importOptions) cells(ctx context.Context, c *client.Client, live *liveOutput, cells []*notebook.Cell, stderr io.Writer) (err error) {
	last, failed := o.from-1, false
	for i, cell := range cells[o.from-1:] {
		last = o.from + i
		fmt.Fprintf(stderr, "[%d/%d] %s\n", last, len(cells), firstLine(cell.Source))
		var session string
		session, err = o.within(cell, stderr).cell(ctx, c, live, cell.Source, stderr)
		o.session = cmp.Or(session, o.session)
		if ctx.Err() != nil && (err != nil || last < len(cells)) {
			err = whatOfCell(ctx, o.session, err)
		}
		if err != nil && !errors.Is(err, errCellFailed) {
			break
		}
		failed = failed || err != nil && !cell.MayFail()
		if err = nil; failed && !o.keepGoing {
			break
		}
	}
	if o.session != "" {
		fmt.Fprintf(stderr, "Session %s has run %d of the notebook's %d code cells.\n", o.session, last-o.from+1, len(cells))
	}
	o.tellStop(stderr, last, len(cells), ctx.Err() != nil, failed)
	if err == nil && failed {
		return errCellFailed
	}
	return err
}

// tellStop says why a cell was the last to run though others are behind it, and how to go on with those.
func (o importOptions) tellStop(stderr io.Writer, last, all int, interrupted, failed bool) {
	next := fmt.Sprintf("--session %s --from %d", o.session, last+1)
	switch {
	case last == all || o.session == "":
	case interrupted:
		fmt.Fprintf(stderr, "It was interrupted in cell %d; %s goes on with the next.\n", last, next)
	case failed && !o.keepGoing:
		fmt.Fprintf(stderr, "It stopped at an error in cell %d; %s goes on with the next, --from %d with the same, --keep-going does not stop.\n", last, next, last)
	}
}

// within are the options for a cell. One of which its notebook says that it was stopped gets as long as it had then, where no --timeout was
// given: it might never end, and hold up those behind it.
func (o importOptions) within(cell *notebook.Cell, stderr io.Writer) importOptions {
	if had, stopped := cell.Stopped(); stopped && o.timeout == 0 {
		o.timeout = max(had, time.Second)
		fmt.Fprintf(stderr, "It was stopped after %s when the notebook was made, and gets as long again; --timeout gives each cell more.\n", words.Took(o.timeout))
	}
	return o
}

// firstLine is the beginning of a code, for people who watch.
func firstLine(code string) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(code), "\n")
	if runes := []rune(line); len(runes) > 80 {
		line, rest = string(runes[:79]), "…"
	}
	if rest != "" {
		line += " …"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, line)
}
