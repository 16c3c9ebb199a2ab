package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

// server is a running `cellblock serve` and an MCP client that is connected to it.
type server struct {
	cmd    *exec.Cmd
	client *client.Client
}

var endpoint = regexp.MustCompile(`http://[^ ]+/mcp`)

func startServer(ctx context.Context, o options, dir string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, filepath.Join(o.bin, "cellblock"), append([]string{
		"serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--run-dir", filepath.Join(dir, "r"), "--on-shutdown", "stop",
	}, args...)...)}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	url, log := readyURL(bufio.NewScanner(stderr))
	if url == "" {
		s.stop()
		return nil, fmt.Errorf("the server did not come up:\n%s", log)
	}
	token, err := os.ReadFile(filepath.Join(dir, "dev_token.txt"))
	if err == nil {
		s.client, err = connect(ctx, url, strings.TrimSpace(string(token)))
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// readyURL reads the log until the server says that it is ready, and leaves the rest to a goroutine that ends with it.
func readyURL(lines *bufio.Scanner) (url, log string) {
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is ready at") {
			go func() {
				for lines.Scan() {
				}
			}()
			return endpoint.FindString(lines.Text()), log
		}
		log += lines.Text() + "\n"
	}
	return "", log
}

func connect(ctx context.Context, url, token string) (*client.Client, error) {
	t, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	c := client.NewClient(t)
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = mcp.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcp.Implementation{Name: "cellblock-bench", Version: "1"}
	_, err = c.Initialize(ctx, hello)
	return c, err
}

func (s *server) stop() {
	if s.client != nil {
		_ = s.client.Close()
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	_ = s.cmd.Wait()
}
