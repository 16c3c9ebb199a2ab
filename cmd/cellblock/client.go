package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
	"github.com/spf13/pflag"

	"cellblock/internal/fault"
)

// connection says how a command reaches a running server; the zero value is the server of the data folder.
type connection struct {
	url, tokenFile string
}

func (o *connection) addFlags(flags *pflag.FlagSet) {
	flags.StringVar(&o.url, "url", os.Getenv("CELLBLOCK_URL"), "the server's MCP endpoint (default http://ADDR/mcp, $CELLBLOCK_URL)")
	flags.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token (default $CELLBLOCK_TOKEN, then the data folder's dev_token.txt)")
}

// token is the bearer token to call with.
func (o connection) token(cfg *Config) (string, error) {
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

// address is that of the server's MCP endpoint.
func (o connection) address(cfg *Config) (string, error) {
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

// dial connects to the server as an MCP client. notified hears its notifications; nil where nobody wants to.
func (o connection) dial(ctx context.Context, cfg *Config, notified func(mcp.JSONRPCNotification)) (*client.Client, error) {
	token, err := o.token(cfg)
	if err != nil {
		return nil, err
	}
	endpoint, err := o.address(cfg)
	if err != nil {
		return nil, err
	}
	return dialMCP(ctx, endpoint, token, notified)
}

func dialMCP(ctx context.Context, endpoint, token string, notified func(mcp.JSONRPCNotification)) (*client.Client, error) {
	t, err := transport.NewStreamableHTTP(endpoint,
		transport.WithHTTPBasicClient(&http.Client{Transport: refusals{http.DefaultTransport}}),
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

func callError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fault.New(fault.Cancelled, "interrupted; the cell was told to stop")
	}
	if refused, ok := errors.AsType[*fault.Error](err); ok {
		return refused
	}
	return fault.New(fault.Internal, "%w", err)
}
