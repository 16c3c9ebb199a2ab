package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// connection says how a command reaches a running server; the zero value is the server of the data folder.
type connection struct {
	url, tokenFile string
}

func (o *connection) addFlags(flags *pflag.FlagSet) {
	o.addURL(flags)
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token (default $CELLBLOCK_TOKEN, then the data folder's dev_token.txt)")
}

func (o *connection) addURL(flags *pflag.FlagSet) {
	flags.StringVar(&o.url, "url", os.Getenv("CELLBLOCK_URL"), "the server's MCP endpoint (default $CELLBLOCK_URL, then that of the server that runs on the data folder)")
	flags.Lookup("url").DefValue = "" // the text names the default; help would add the variable's value as another
}

// token is the bearer token to call with.
func (o connection) token(cfg *Config) (string, error) {
	path, hint := o.tokenFile, "Check --token-file."
	if path == "" {
		if token := os.Getenv("CELLBLOCK_TOKEN"); token != "" {
			return oneToken("CELLBLOCK_TOKEN", token)
		}
		path = filepath.Join(cfg.DataDir, "dev_token.txt")
		hint = "Start `cellblock serve` with the same --data-dir, or set CELLBLOCK_TOKEN or --token-file."
	}
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrPermission) {
		return "", fault.New(fault.Unauthenticated, "the token is another user's: %w", err).
			WithHint("Run as that user, or set CELLBLOCK_TOKEN or --token-file.")
	}
	if err != nil {
		return "", fault.New(fault.Unauthenticated, "there is no token: %w", err).WithHint("%s", hint)
	}
	return oneToken(path, string(b))
}

// oneToken is the token that a text holds; where says whose text it is.
func oneToken(where, text string) (string, error) {
	words := strings.Fields(text)
	if len(words) != 1 {
		return "", fault.New(fault.Unauthenticated, "%s holds no token: it has %d words, and a token is one", where, len(words)).
			WithHint("In dev mode `cellblock token`, with the server's --data-dir, mints one.")
	}
	return words[0], nil
}

// address is that of the server's MCP endpoint.
func (o connection) address(cfg *Config) (string, error) {
	if o.url == "" {
		endpoint, err := runningServer(cfg.DataDir)
		if endpoint == "" && err == nil {
			endpoint = "http://" + cfg.Addr + "/mcp" // of a server that left no word here
		}
		return endpoint, err
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

// dial connects to the server as an MCP client. notified hears its notifications; nil where nobody wants to.
func (o connection) dial(ctx context.Context, cfg *Config, notified func(mcp.JSONRPCNotification)) (*client.Client, error) {
	endpoint, err := o.address(cfg)
	if err != nil {
		return nil, err
	}
	token, err := o.token(cfg)
	if err != nil {
		return nil, err
	}
	return dialMCP(ctx, endpoint, token, notified)
}

func dialMCP(ctx context.Context, endpoint, token string, notified func(mcp.JSONRPCNotification)) (*client.Client, error) {
	t, err := transport.NewStreamableHTTP(endpoint,
		transport.WithHTTPLogger(slog.New(slog.DiscardHandler)), // what breaks off is told by the call's error
		transport.WithHTTPBasicClient(&http.Client{Transport: siphons{refusals{http.DefaultTransport}}}),
		transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t)
	if notified != nil {
		c.OnNotification(notified)
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "cellblock", Version: version}
	if _, err := c.Initialize(ctx, hello); err != nil {
		_ = c.Close()
		return nil, callError(ctx, err)
	}
	return c, nil
}

// ask calls a tool and returns the object that it answers with.
func ask[T any](ctx context.Context, c *client.Client, tool string, args map[string]any) (answer T, err error) {
	result, err := callTool(ctx, c, tool, args)
	if err != nil {
		return answer, err
	}
	if result.IsError {
		return answer, faultOf(result)
	}
	raw, err := json.Marshal(result.StructuredContent)
	if err == nil {
		err = json.Unmarshal(raw, &answer)
	}
	return answer, err
}

// tell calls a tool that does something, and returns what it says.
func tell(ctx context.Context, c *client.Client, tool string, args map[string]any) (string, error) {
	result, err := callTool(ctx, c, tool, args)
	switch {
	case err != nil:
		return "", err
	case result.IsError:
		return "", faultOf(result)
	}
	return textOf(result), nil
}

// faultOf is the error that a result is, with its kind where the server says it.
func faultOf(result *mcp.CallToolResult) error {
	message, hint, _ := strings.Cut(strings.TrimPrefix(textOf(result), "Error: "), "\nHint: ")
	err := fault.New(fault.Internal, "%s", ownCalls(message))
	if result.Meta != nil {
		var said struct{ Kind fault.Kind }
		if raw, jsonErr := json.Marshal(result.Meta.AdditionalFields[mcpserver.ErrorMeta]); jsonErr == nil && json.Unmarshal(raw, &said) == nil {
			err.Kind = said.Kind
		}
	}
	return err.WithHint("%s", ownHint(hint))
}

// refused tells whether a result is an error of the server's, and not of the code that it ran.
func refused(result *mcp.CallToolResult) bool {
	return result.IsError && result.Meta != nil && result.Meta.AdditionalFields[mcpserver.ErrorMeta] != nil
}

// textOf is the text of a result.
func textOf(result *mcp.CallToolResult) string {
	var texts []string
	for _, block := range result.Content {
		if text, ok := block.(mcp.TextContent); ok {
			texts = append(texts, text.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// readText reads a resource of a session that is one text.
func readText(ctx context.Context, c *client.Client, session, part string) (string, error) {
	contents, err := readResource(ctx, c, session, part)
	if err != nil {
		return "", err
	}
	if text, ok := contents.(mcp.TextResourceContents); ok {
		return text.Text, nil
	}
	return "", fault.New(fault.Internal, "the server sent no text as %s of %s", part, session)
}

// copyText is readText into a writer, without having all of the text in memory.
func copyText(ctx context.Context, c *client.Client, session, part string, w io.Writer) error {
	siphon, s := withSiphon(ctx, w)
	_, err := readText(siphon, c, session, part)
	switch {
	case s.err != nil:
		return unwritable(s.err)
	case err == nil && !s.took:
		return fault.New(fault.Internal, "the server sent no text as %s of %s", part, session)
	}
	return err
}

// readResource reads a resource of a session that has one form.
func readResource(ctx context.Context, c *client.Client, session, part string) (mcp.ResourceContents, error) {
	var request mcp.ReadResourceRequest
	request.Params.URI = "cellblock://sessions/" + url.PathEscape(session) + "/" + part
	got, err := c.ReadResource(ctx, request)
	for err != nil && waited(ctx, err.Error()) {
		got, err = c.ReadResource(ctx, request)
	}
	for _, notFound := range []error{mcp.ErrResourceNotFound, mcp.ErrInvalidParams} {
		if ctx.Err() == nil && errors.Is(err, notFound) {
			message, hint, _ := strings.Cut(strings.TrimPrefix(err.Error(), notFound.Error()+": "), "\nHint: ")
			return nil, fault.New(fault.NotFound, "%s", message).WithHint("%s", ownHint(hint))
		}
	}
	switch {
	case err != nil:
		return nil, callError(ctx, err)
	case len(got.Contents) != 1:
		return nil, fault.New(fault.Internal, "the server sent %d contents as %s", len(got.Contents), request.Params.URI)
	}
	return got.Contents[0], nil
}

// withClient runs what a command does with the server, until it is done or interrupted.
func (o connection) withClient(cmd *cobra.Command, do func(ctx context.Context, c *client.Client) error) error {
	return o.withClientHearing(cmd, nil, do)
}

// withClientHearing is withClient for a command that hears the server's notifications.
func (o connection) withClientHearing(cmd *cobra.Command, notified func(mcp.JSONRPCNotification), do func(ctx context.Context, c *client.Client) error) error {
	cfg, err := configFor(cmd)
	if err != nil {
		return err
	}
	ctx, _, release := stopSignals(cmd.Context())
	defer release()
	c, err := o.dial(ctx, cfg, notified)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(ctx, c)
}

func callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Cancelled, "interrupted")
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused
	}
	if brokeOff(err) {
		return fault.New(fault.Unavailable, "%w", errServerGone).WithHint("Look into the server's log, and start it again: cellblock serve")
	}
	return fault.New(fault.Internal, "%w", err)
}
