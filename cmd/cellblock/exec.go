package main

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// execOptions are the flags of exec.
type execOptions struct {
	url, tokenFile, session, language, file, images string
	timeout                                         int
}

// errCellFailed makes the program end with status 1 without another word: the traceback has been printed.
var errCellFailed = errors.New("the cell ended with an error")

func newExec() *cobra.Command {
	var o execOptions
	cmd := &cobra.Command{
		Use:   "exec [code | -]",
		Short: "Run code in a session of a running server",
		Long: `Runs code in a session of a running server and prints what it prints, as it comes. The code is the argument, a file
(--file) or standard input (-). It runs in the session's own folder and does not see the files that are here. Ctrl-C stops
the cell. Exit status 1 when the cell ends with an error, is stopped by its timeout, or loses its kernel.`,
		Example: `  cellblock exec 'x = 20 + 1; x'
  cellblock exec --session analysis --images plots --file plot.py
  echo 'print(x * 2)' | cellblock exec --session analysis -`,
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
	flags.StringVar(&o.images, "images", "", "save images into this folder")
	flags.IntVar(&o.timeout, "timeout", 0, "how long the cell may run, in seconds (default: the server's)")
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
	case len(args) == 1:
		b, err := io.ReadAll(stdin)
		return string(b), err
	}
	return "", fault.New(fault.Invalid, "there is no code").WithHint("Give it as argument, with --file, or - to read standard input.")
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
		args["timeout_seconds"] = o.timeout
	}
	result, err := callTool(ctx, c, "execute_"+o.language, args)
	for more := true; more; {
		if err != nil {
			return err
		}
		if err := o.print(result, live, stderr); err != nil {
			return err
		}
		var cell unfinished
		if cell, more = stillRunning(result); more {
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
	if strings.Contains(err.Error(), "connection refused") {
		return fault.New(fault.Unavailable, "no server answers: %w", err).WithHint("Start one: cellblock serve")
	}
	return fault.New(fault.Internal, "%w", err)
}

// liveOutput prints text of progress notifications as it comes, and remembers its lines.
type liveOutput struct {
	mu      sync.Mutex
	w       io.Writer
	printed strings.Builder
}

func (l *liveOutput) notification(n mcp.JSONRPCNotification) {
	if n.Method != "notifications/progress" || n.Params.Meta == nil {
		return
	}
	if text, ok := n.Params.Meta[mcpserver.OutputMeta].(string); ok {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.printed.WriteString(text)
		_, _ = io.WriteString(l.w, text)
	}
}

// rest prints the lines of a result that have not been printed live. Those that have stand in it in the same order, among
// others: results, errors, remarks about what was left out.
func (l *liveOutput) rest(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	live := strings.Split(l.printed.String(), "\n")
	if last := len(live) - 1; live[last] == "" {
		live = live[:last]
	} else {
		fmt.Fprintln(l.w)
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		same := func(printed string) bool { return trimBlanks(printed) == trimBlanks(line) } // a block's end has lost its blanks
		if i := slices.IndexFunc(live, same); i >= 0 {
			live = live[i+1:]
			continue
		}
		fmt.Fprintln(l.w, line)
	}
	l.printed.Reset()
	l.printed.WriteString(strings.Join(live, "\n"))
	if len(live) > 0 {
		l.printed.WriteString("\n")
	}
}

func trimBlanks(s string) string { return strings.TrimRight(s, " \t") }

// print writes the result's blocks: text to stdout, images to files, the closing status line to stderr.
func (o execOptions) print(result *mcp.CallToolResult, live *liveOutput, stderr io.Writer) error {
	images := 0
	for i, block := range result.Content {
		switch b := block.(type) {
		case mcp.TextContent:
			text := strings.TrimRight(b.Text, "\n")
			if i == len(result.Content)-1 {
				fmt.Fprintln(stderr, text)
				continue
			}
			live.rest(text)
		case mcp.ImageContent:
			images++
			path, err := o.saveImage(b, images)
			if err != nil {
				return err
			}
			fmt.Fprintln(stderr, path)
		}
	}
	return nil
}

func (o execOptions) saveImage(b mcp.ImageContent, n int) (string, error) {
	if o.images == "" {
		return "[image " + b.MIMEType + "; save images with --images DIR]", nil
	}
	raw, err := base64.StdEncoding.DecodeString(b.Data)
	if err != nil {
		return "", fault.New(fault.Internal, "the server sent a broken image: %w", err)
	}
	if err := os.MkdirAll(o.images, 0o755); err != nil {
		return "", fault.New(fault.Unavailable, "the image cannot be saved: %w", err)
	}
	extension := ".png"
	if known, err := mime.ExtensionsByType(b.MIMEType); err == nil && len(known) > 0 && b.MIMEType != "image/png" {
		extension = known[0]
	}
	for {
		path := filepath.Join(o.images, fmt.Sprintf("image-%d%s", n, extension))
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
		if errors.Is(err, os.ErrExist) {
			n++
			continue
		}
		if err != nil {
			return "", fault.New(fault.Unavailable, "the image cannot be saved: %w", err)
		}
		_, err = f.Write(raw)
		return path, errors.Join(err, f.Close())
	}
}
