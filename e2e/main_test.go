// Package e2e drives the real binary with real kernels, as its users would: over HTTP with an MCP client that we did not
// write, over stdio, and from the command line.
package e2e

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// runtimes are the ways to run kernels that the tests try: those that are here.
func runtimes(t *testing.T) []string {
	t.Helper()
	var names []string
	if _, err := exec.LookPath("bwrap"); need(t, err == nil, "bubblewrap") {
		names = append(names, "local")
	}
	if need(t, os.Getenv("CELLBLOCK_TEST_DOCKER_HOST") != "", "a Docker engine with the kernels' image (CELLBLOCK_TEST_DOCKER_HOST)") {
		names = append(names, "docker")
	}
	if need(t, os.Getenv("CELLBLOCK_TEST_PODMAN_HOST") != "", "a Podman engine with the kernels' image (CELLBLOCK_TEST_PODMAN_HOST)") {
		names = append(names, "podman")
	}
	return names
}

// need reports whether something is here. What is missing is said, and is a failure where nothing may be skipped.
func need(t *testing.T, here bool, what string) bool {
	t.Helper()
	if !here {
		if os.Getenv("CELLBLOCK_TEST_NO_SKIP") == "1" {
			t.Errorf("needs %s, and nothing may be skipped here", what)
		}
		t.Logf("SKIPPED in part: needs %s", what)
	}
	return here
}

// eachRuntime runs a test on every way to run kernels.
func eachRuntime(t *testing.T, test func(t *testing.T, runtime string)) {
	names := runtimes(t)
	if len(names) == 0 {
		t.Skip("SKIPPED: there is nothing here to run kernels with")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) { test(t, name) })
	}
}

// server is a running `cellblock serve`.
type server struct {
	url, dataDir, ready string
	cmd                 *exec.Cmd
	exited              chan struct{}
	mu                  sync.Mutex
	log                 bytes.Buffer
}

var endpoint = regexp.MustCompile(`http://[^ ]+/mcp`)

// start starts a server with folders of its own and waits until it says that it is ready. Its kernels end with it, unless the
// arguments say otherwise.
func start(t *testing.T, runtime string, args ...string) *server {
	t.Helper()
	return startIn(t, t.TempDir(), runtime, args...)
}

func startIn(t *testing.T, dataDir, runtime string, args ...string) *server {
	t.Helper()
	s := &server{dataDir: dataDir, exited: make(chan struct{})}
	all := append([]string{"serve", "--addr", "127.0.0.1:0", "--data-dir", dataDir, "--run-dir", runDirOf(t, dataDir), "--on-shutdown", "stop"},
		runtimeFlags(runtime)...)
	s.cmd = exec.Command(rig.Cellblock(), append(all, args...)...)
	s.cmd.Env = rig.Environment()
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go s.follow(bufio.NewScanner(stderr), ready)
	t.Cleanup(func() {
		s.stop(t)
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.logged())
		}
	})
	select {
	case s.ready = <-ready:
	case <-s.exited:
		t.Fatalf("the server ended before it was ready:\n%s", s.logged())
	case <-time.After(60 * time.Second):
		t.Fatalf("the server is not ready after 60 s:\n%s", s.logged())
	}
	s.url = endpoint.FindString(s.ready)
	return s
}

// runDirOf is the run folder of whoever uses a data folder: a short path, because sockets lie there.
func runDirOf(t *testing.T, dataDir string) string {
	t.Helper()
	dir := fmt.Sprintf("/tmp/cb%x", crc32.ChecksumIEEE([]byte(dataDir)))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func runtimeFlags(runtime string) []string {
	switch runtime {
	case "docker":
		return []string{"--provisioner", "docker", "--docker-host", os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")}
	case "podman":
		return []string{"--provisioner", "docker", "--docker-host", os.Getenv("CELLBLOCK_TEST_PODMAN_HOST")}
	}
	return []string{"--provisioner", runtime}
}

func (s *server) follow(lines *bufio.Scanner, ready chan<- string) {
	defer close(s.exited)
	for lines.Scan() {
		s.mu.Lock()
		s.log.WriteString(lines.Text() + "\n")
		s.mu.Unlock()
		if strings.Contains(lines.Text(), "is ready at") {
			ready <- lines.Text()
		}
	}
	_ = s.cmd.Wait()
}

func (s *server) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// stop ends the server as an operator would, and checks that it ended well.
func (s *server) stop(t *testing.T) {
	t.Helper()
	select {
	case <-s.exited:
		return
	default:
	}
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit status %d after SIGTERM:\n%s", code, s.logged())
		}
	case <-time.After(60 * time.Second):
		t.Errorf("still there 60 s after SIGTERM:\n%s", s.logged())
		_ = s.cmd.Process.Kill()
		<-s.exited
	}
}

// token mints a token by the command line.
func (s *server) token(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(rig.Cellblock(), append([]string{"token", "--data-dir", s.dataDir}, args...)...)
	cmd.Env = rig.Environment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// connect opens an MCP client with a token.
func (s *server) connect(t *testing.T, token string) *client.Client {
	t.Helper()
	return s.connectAs(t, token, mcp.LATEST_PROTOCOL_VERSION)
}

// connectAs is connect for a client of one revision that can do something.
func (s *server) connectAs(t *testing.T, token, version string, can ...client.ClientOption) *client.Client {
	t.Helper()
	tr, err := transport.NewStreamableHTTP(s.url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		t.Fatal(err)
	}
	c := client.NewClient(tr, can...)
	t.Cleanup(func() { c.Close() })
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = version
	hello.Params.ClientInfo = mcp.Implementation{Name: "e2e", Version: "1"}
	if _, err := c.Initialize(t.Context(), hello); err != nil {
		t.Fatalf("initialize: %v\n%s", err, s.logged())
	}
	return c
}

// result is what a tool gave, taken apart.
type result struct {
	text    string
	images  []mcp.ImageContent
	isError bool
}

// call calls a tool and fails the test on a protocol error.
func call(t *testing.T, c *client.Client, tool string, args map[string]any) result {
	t.Helper()
	r, err := tryCall(t.Context(), c, tool, args)
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	return r
}

func tryCall(ctx context.Context, c *client.Client, tool string, args map[string]any) (result, error) {
	var req mcp.CallToolRequest
	req.Params.Name, req.Params.Arguments = tool, args
	got, err := c.CallTool(ctx, req)
	if err != nil {
		return result{}, err
	}
	r := result{isError: got.IsError}
	var text []string
	for _, block := range got.Content {
		switch b := block.(type) {
		case mcp.TextContent:
			text = append(text, b.Text)
		case mcp.ImageContent:
			r.images = append(r.images, b)
		}
	}
	r.text = strings.Join(text, "\n")
	return r, nil
}

// python runs code in a session.
func python(t *testing.T, c *client.Client, session, code string) result {
	t.Helper()
	return call(t, c, "execute_python", map[string]any{"code": code, "session_id": session})
}

// wantText fails unless the text holds every part.
func wantText(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in:\n%s", part, text)
		}
	}
}
