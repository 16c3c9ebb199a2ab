package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"cellblock/images"
	"cellblock/internal/fault"
)

// execOptions are the flags of exec.
type execOptions struct {
	connection
	session, language, file, images string
	profile, image                  string
	timeout                         time.Duration
}

// errCellFailed makes the program end with status 1 without another word: the traceback has been printed.
var errCellFailed = errors.New("the cell ended with an error")

func newExec() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [code | -]",
		Short: "Run code in a session of a running server",
		Long: `Runs code in a session of a running server and prints what it prints, as it comes. The code is the argument, a file
(--file) or standard input (with - or from a pipe). It runs in the session's own folder and does not see the files that
are here. Ctrl-C stops the cell. Exit status 1 when the cell ends with an error, is stopped by its timeout, or loses its
kernel.`,
		Example: `  cellblock exec 'x = 20 + 1; x'
  cellblock exec --session analysis --images plots --file plot.py
  echo 'print(x * 2)' | cellblock exec --session analysis`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			code, err := o.code(args, cmd.InOrStdin())
			if err != nil {
				return err
			}
			cfg, err := configFor(cmd)
			if err != nil {
				return err
			}
			graceful, _, release := stopSignals(cmd.Context())
			defer release()
			return o.run(graceful, cfg, code, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.session, "session", "s", "", "session_id; none: a new session, whose id is printed")
	flags.StringVarP(&o.language, "language", "l", "python", "the session's language")
	flags.StringVar(&o.profile, "profile", "", "what a new session may use; none: as the server has it by default")
	flags.StringVar(&o.image, "image", "", "the image of a new session; none: the language's own")
	flags.StringVarP(&o.file, "file", "f", "", "read the code from this file")
	flags.StringVar(&o.images, "images", "", "save images into this folder, in their full size")
	flags.Var(&durationFlag{value: &o.timeout, unit: time.Second}, "timeout", "how long the cell may run: 90s, 10m, or a number of seconds (default: the server's)")
	o.connection.addFlags(flags)
	return cmd
}

// code is what is to run, as text: a byte that is none would reach the kernel as another character, and a byte order mark, with
// which editors on Windows begin files, is no code.
func (o execOptions) code(args []string, stdin io.Reader) (string, error) {
	code, err := o.source(args, stdin)
	if err == nil && !utf8.ValidString(code) {
		return "", fault.New(fault.Invalid, "the code is not UTF-8").WithHint("Convert it: iconv -f latin1 -t utf-8 FILE, with the encoding that it has.")
	}
	return strings.TrimPrefix(code, "\ufeff"), err
}

func (o execOptions) source(args []string, stdin io.Reader) (string, error) {
	switch {
	case o.file != "" && len(args) > 0:
		return "", fault.New(fault.Invalid, "there is code in the argument and in --file").WithHint("Give one of them.")
	case o.file != "":
		b, err := os.ReadFile(o.file)
		if err != nil {
			return "", fault.New(fault.NotFound, "the code cannot be read: %w", err)
		}
		return string(b), nil
	case len(args) == 1 && args[0] != "-":
		return args[0], nil
	case len(args) == 1 || !isTerminal(stdin):
		b, err := io.ReadAll(stdin)
		if err != nil || len(args) == 1 || len(b) > 0 {
			return string(b), err
		}
	}
	return "", fault.New(fault.Invalid, "there is no code").WithHint("Give it as argument, with --file, or on standard input.")
}

// isTerminal tells whether nobody but a person at a terminal could give what is read; of /dev/null, nobody can.
func isTerminal(r io.Reader) bool {
	f, ok := r.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice != 0
}

func (o execOptions) run(ctx context.Context, cfg *Config, code string, stdout, stderr io.Writer) error {
	live := &liveOutput{w: stdout}
	c, err := o.dial(ctx, cfg, live.notification)
	if err != nil {
		return err
	}
	defer c.Close()
	_, err = o.cell(ctx, c, live, code, stderr)
	return err
}

// cell runs one cell, prints what it gives, and returns the session that it ran in, as far as that is known.
func (o execOptions) cell(ctx context.Context, c *client.Client, live *liveOutput, code string, stderr io.Writer) (session string, err error) {
	args := map[string]any{"code": code, "wait_seconds": execWait.Seconds()}
	if o.session != "" {
		args["session_id"] = o.session
	}
	if o.profile != "" {
		args["profile"] = o.profile
	}
	if o.image != "" {
		args["image"] = o.image
	}
	if o.timeout != 0 {
		args["timeout_seconds"] = int(math.Ceil(o.timeout.Seconds()))
	}
	language := images.Name(o.language)
	result, err := callTool(ctx, c, executePrefix+language, args)
	if errors.Is(err, mcp.ErrInvalidParams) {
		err = unknownLanguage(ctx, c, language, err)
	}
	for more := true; more; {
		if err != nil {
			return session, whatOfCell(ctx, cmp.Or(session, o.session), err)
		}
		if refused(result) {
			return session, faultOf(result)
		}
		if err := o.print(ctx, c, result, live, stderr); err != nil {
			return session, err
		}
		cell := aboutCell(result)
		session = cell.SessionID
		if more = cell.goesOn() && !result.IsError; more { // an error: the server stops
			result, err = cell.readOn(ctx, c)
		}
	}
	if result.IsError {
		return session, errCellFailed
	}
	return session, nil
}
