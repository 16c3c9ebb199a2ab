package main

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/mcpserver"
	"cellblock/mcpserver/transport"
)

const hintURL = "Check --url and CELLBLOCK_URL."

// unreachable says in our words why a server could not be asked.
func unreachable(asked *url.URL, err error) error {
	var lookup *net.DNSError
	var untrusted *tls.CertificateVerificationError
	var noTLS tls.RecordHeaderError
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, syscall.ECONNREFUSED):
		return fault.New(fault.Unavailable, "no server listens at %s", asked).
			WithHint("Start one: cellblock serve; or name another with --url or CELLBLOCK_URL.")
	case errors.As(err, &lookup):
		return fault.New(fault.Unavailable, "there is no host %s: %w", asked.Hostname(), err).WithHint(hintURL)
	case errors.As(err, &untrusted):
		return fault.New(fault.Unavailable, "the certificate of %s does not hold: %w", asked.Host, err).
			WithHint("If it is your own authority's, name its certificate in SSL_CERT_FILE.")
	case errors.As(err, &noTLS), strings.Contains(err.Error(), "server gave HTTP response to HTTPS client"):
		return fault.New(fault.Invalid, "%s does not speak https", asked.Host).WithHint("Write it as %s", withScheme(asked, "http"))
	}
	return fault.New(fault.Unavailable, "no server can be reached at %s: %w", asked, err).WithHint(hintURL)
}

// errServerGone says that a server that had been reached ended, or was cut off, before it answered.
var errServerGone = errors.New("the server went away")

// brokeOff tells whether an answer ended before it was whole. The MCP client has no error of its own for a stream that
// does: it says that the response is nil.
func brokeOff(err error) bool {
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || strings.Contains(err.Error(), "unexpected nil response")
}

// foreign says that what answers is no server of ours, but perhaps a proxy before it.
func foreign(asked *url.URL, status int, body string) error {
	switch {
	case asked.Scheme == "http" && status == http.StatusBadRequest && strings.Contains(body, "HTTPS"):
		return fault.New(fault.Invalid, "%s speaks https, not http", asked.Host).WithHint("Write it as %s", withScheme(asked, "https"))
	case status == http.StatusRequestEntityTooLarge:
		return fault.New(fault.Unavailable, "a proxy at %s takes no request as large as this: status %d", asked, status).
			WithHint("The server takes %s: let its proxy do so, too (of nginx: client_max_body_size).", words.Bytes(transport.DefaultMaxBody))
	case status == http.StatusBadGateway, status == http.StatusGatewayTimeout:
		return fault.New(fault.Unavailable, "a proxy at %s has no answer of the server: status %d", asked, status).
			WithHint("Is the server started, and does its proxy have the address on which it listens?")
	}
	return fault.New(fault.Unavailable, "what answers at %s is no cellblock server: status %d", asked, status).
		WithHint("Is another program on that port? %s", hintURL)
}

func withScheme(asked *url.URL, scheme string) *url.URL {
	other := *asked
	other.Scheme = scheme
	return &other
}

const executePrefix = "execute_"

// unknownLanguage explains an error by what languages the server has, if the one that was asked for is not among them.
func unknownLanguage(ctx context.Context, c *client.Client, asked string, err error) error {
	list, listErr := c.ListTools(ctx, mcp.ListToolsRequest{})
	if listErr != nil {
		return err
	}
	var known []string
	for _, tool := range list.Tools {
		if language, ok := strings.CutPrefix(tool.Name, executePrefix); ok && tool.Name != mcpserver.ExecuteFile {
			known = append(known, language)
		}
	}
	if slices.Contains(known, asked) {
		return err
	}
	return fault.New(fault.Invalid, "the server does not run %q", asked).WithHint("Use one of: %s.", strings.Join(known, ", "))
}
