package main

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
)

// execOptions are the flags of exec.
type execOptions struct {
	url, tokenFile, session, language, file, images string
	timeout                                         time.Duration
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
			token, err := o.token(cfg)
			if err != nil {
				return err
			}
			graceful, _, release := stopSignals(cmd.Context())
			defer release()
			return o.run(graceful, cfg, token, code, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.session, "session", "s", "", "session_id; none: a new session, whose id is printed")
	flags.StringVarP(&o.language, "language", "l", "python", "the session's language")
	flags.StringVarP(&o.file, "file", "f", "", "read the code from this file")
	flags.StringVar(&o.images, "images", "", "save images into this folder, in their full size")
	flags.Var(&durationFlag{value: &o.timeout, unit: time.Second}, "timeout", "how long the cell may run: 90s, 10m, or a number of seconds (default: the server's)")
	flags.StringVar(&o.url, "url", os.Getenv("CELLBLOCK_URL"), "the server's MCP endpoint (default http://ADDR/mcp, $CELLBLOCK_URL)")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token (default $CELLBLOCK_TOKEN, then the data folder's dev_token.txt)")
	return cmd
}

func (o execOptions) code(args []string, stdin io.Reader) (string, error) {
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

func (o execOptions) token(cfg *Config) (string, error) {
	path := o.tokenFile
	if path == "" {
		if token := os.Getenv("CELLBLOCK_TOKEN"); token != "" {
			return token, nil
		}
		path = filepath.Join(cfg.DataDir, "dev_token.txt")
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrPermission) {
		return "", fault.New(fault.Unauthenticated, "the token is another user's: %w", err).
			WithHint("Run as that user, or set CELLBLOCK_TOKEN or --token-file.")
	}
	if err != nil {
		return "", fault.New(fault.Unauthenticated, "there is no token: %w", err).
			WithHint("Start `cellblock serve` with the same --data-dir, or set CELLBLOCK_TOKEN or --token-file.")
	}
	return strings.TrimSpace(string(b)), nil
}

func (o execOptions) endpoint(cfg *Config) (string, error) {
	if o.url == "" {
		return "http://" + cfg.Addr + "/mcp", nil
	}
	u, err := url.Parse(o.url)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fault.New(fault.Invalid, "%q is no address of a server", o.url).WithHint("Write it as http://127.0.0.1:8787/mcp")
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/mcp"
	}
	return u.String(), nil
}

func (o execOptions) run(ctx context.Context, cfg *Config, token, code string, stdout, stderr io.Writer) error {
	endpoint, err := o.endpoint(cfg)
	if err != nil {
		return err
	}
	live := &liveOutput{w: stdout}
	c, err := dialMCP(ctx, endpoint, token, live.notification)
	if err != nil {
		return err
	}
	defer c.Close()
	args := map[string]any{"code": code, "wait_seconds": execWait.Seconds()}
	if o.session != "" {
		args["session_id"] = o.session
	}
	if o.timeout != 0 {
		args["timeout_seconds"] = int(math.Ceil(o.timeout.Seconds()))
	}
	result, err := callTool(ctx, c, executePrefix+o.language, args)
	if errors.Is(err, mcp.ErrInvalidParams) {
		err = unknownLanguage(ctx, c, o.language, err)
	}
	for more := true; more; {
		if err != nil {
			return err
		}
		if err := o.print(ctx, c, result, live, stderr); err != nil {
			return err
		}
		var cell unfinished
		cell, more = stillRunning(result)
		if more = more && !result.IsError; more { // an error: the server stops
			result, err = cell.readOn(ctx, c)
		}
	}
	if result.IsError {
		return errCellFailed
	}
	return nil
}

// dialMCP connects to a server as an MCP client.
func dialMCP(ctx context.Context, endpoint, token string, notified func(mcp.JSONRPCNotification)) (*client.Client, error) {
	t, err := transport.NewStreamableHTTP(endpoint,
		transport.WithHTTPBasicClient(&http.Client{Transport: refusals{http.DefaultTransport}}),
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t)
	c.OnNotification(notified)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "cellblock-exec", Version: version}
	if _, err := c.Initialize(ctx, hello); err != nil {
		_ = c.Close()
		return nil, callError(ctx, err)
	}
	return c, nil
}

func callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Cancelled, "interrupted; the cell was told to stop")
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused
	}
	return fault.New(fault.Internal, "%w", err)
}
