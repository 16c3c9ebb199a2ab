package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/dial"
)

// server is a running `cellblock serve` and an MCP client that is connected to it.
type server struct {
	cmd    *exec.Cmd
	client *client.Client
	url    string // of MCP
	token  string
	log    chan string // what it says after it is ready, once it has ended
}

var endpoint = regexp.MustCompile(`http://[^ ]+/mcp`)

// startServer starts one, without a pool unless args say otherwise. On the folder of one that was killed it goes on with
// its sessions.
func startServer(ctx context.Context, o options, dir string, args ...string) (*server, error) {
	if err := os.MkdirAll(dir, 0o711); err != nil {
		return nil, err
	}
	s := &server{cmd: exec.CommandContext(ctx, filepath.Join(o.bin, "cellblock"), append([]string{
		"serve", "--addr", "127.0.0.1:0", "--data-dir", dir, "--run-dir", filepath.Join(dir, "r"), "--on-shutdown", "stop", "--pool-size", "0",
	}, args...)...), log: make(chan string, 1)}
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(syscall.SIGTERM) }
	s.cmd.Env = append(environment(), o.env...)
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := startOurs(s.cmd); err != nil {
		return nil, err
	}
	var log string
	if s.url, log = s.readyURL(bufio.NewScanner(stderr)); s.url == "" {
		s.stop()
		return nil, fmt.Errorf("the server did not come up:\n%s", log)
	}
	token, err := os.ReadFile(filepath.Join(dir, "dev_token.txt"))
	if err == nil {
		s.token = strings.TrimSpace(string(token))
		s.client, err = dial.MCP(ctx, "cellblock-bench", s.url, s.token)
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// environment is this process's without what configures cellblock. What a run that is broken off leaves behind does not
// stay for long.
func environment() []string {
	env := []string{"CELLBLOCK_SESSIONS_PER_OWNER=0", "CELLBLOCK_SESSIONS_MAX=0", "CELLBLOCK_SESSIONS_UNATTENDED=" + orphanTime.String(), "GOTRACEBACK=all"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "CELLBLOCK_") && !strings.HasPrefix(kv, "MCP_") {
			env = append(env, kv)
		}
	}
	return env
}

// readyURL reads the log until the server says that it is ready, and leaves the rest to a goroutine that ends with it.
func (s *server) readyURL(lines *bufio.Scanner) (url, log string) {
	for lines.Scan() {
		if strings.Contains(lines.Text(), "is ready at") {
			go func() {
				var rest strings.Builder
				for lines.Scan() {
					rest.WriteString(lines.Text() + "\n")
				}
				s.log <- rest.String()
			}()
			return endpoint.FindString(lines.Text()), log
		}
		log += lines.Text() + "\n"
	}
	return "", log
}

// call calls a tool.
func (s *server) call(ctx context.Context, tool string, args map[string]any) (*mcp.CallToolResult, error) {
	var r mcp.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, args
	result, err := s.client.CallTool(ctx, r)
	if err == nil && result.IsError {
		err = fmt.Errorf("%s failed: %v", tool, result.Content)
	}
	return result, err
}

// execute runs one Python cell.
func (s *server) execute(ctx context.Context, session, code string) error {
	_, err := s.call(ctx, "execute_python", map[string]any{"code": code, "session_id": session})
	return err
}

// awaitPool waits until a kernel is ready.
func (s *server) awaitPool(ctx context.Context) error {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		got, err := s.call(ctx, "health", nil)
		if err != nil {
			return err
		}
		var health struct {
			Pool struct{ Ready map[string]int }
		}
		text, err := json.Marshal(got.StructuredContent)
		if err == nil {
			err = json.Unmarshal(text, &health)
		}
		if err != nil || health.Pool.Ready["python"] > 0 {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// stop ends the server as its operator would.
func (s *server) stop() { s.end(syscall.SIGTERM) }

// end ends the server by a signal, and returns what it said last.
func (s *server) end(signal os.Signal) (log string) {
	if s.client == nil { // it never came up, and nobody reads its log
		_ = s.cmd.Process.Signal(signal)
		_ = s.cmd.Wait()
		return ""
	}
	_ = s.client.Close()
	_ = s.cmd.Process.Signal(signal)
	log = <-s.log
	_ = s.cmd.Wait()
	s.log <- ""
	return log
}
