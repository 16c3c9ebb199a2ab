package rig

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is a running `cellblock serve`.
type Server struct {
	// URL is the MCP endpoint, DataDir the server's data folder.
	URL, DataDir string

	cmd    *exec.Cmd
	exited chan struct{}
	mu     sync.Mutex
	log    bytes.Buffer
}

// patience is how long a server may take to start or to stop.
const patience = 60 * time.Second

var endpoint = regexp.MustCompile(`http://[^ ]+/mcp`)

// Serve starts a server on a free port, with folders of its own, and waits until it says that it is ready. It is stopped
// after the test, as an operator would, and fails the test if it does not end well.
func Serve(t testing.TB, args ...string) *Server {
	t.Helper()
	runDir, err := os.MkdirTemp("/tmp", "cb") // short: a Unix socket's path has at most 107 bytes
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(runDir) })
	s := &Server{DataDir: t.TempDir(), exited: make(chan struct{})}
	s.cmd = exec.Command(Cellblock(), append([]string{"serve", "--addr", "127.0.0.1:0", "--data-dir", s.DataDir, "--run-dir", runDir}, args...)...)
	s.cmd.Env = Environment()
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go s.follow(bufio.NewScanner(stderr), ready)
	t.Cleanup(func() { s.stop(t) })
	select {
	case line := <-ready:
		s.URL = endpoint.FindString(line)
	case <-s.exited:
		t.Fatalf("the server ended before it was ready:\n%s", s.Log())
	case <-time.After(patience):
		t.Fatalf("the server is not ready after %s:\n%s", patience, s.Log())
	}
	return s
}

func (s *Server) follow(lines *bufio.Scanner, ready chan<- string) {
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

// Log returns what the server has said so far.
func (s *Server) Log() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// PID is the server's process.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// Token mints a token by the command line; args are those of `cellblock token`.
func (s *Server) Token(t testing.TB, args ...string) string {
	t.Helper()
	cmd := exec.Command(Cellblock(), append([]string{"token", "--data-dir", s.DataDir}, args...)...)
	cmd.Env = Environment()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	return strings.TrimSpace(string(out))
}

func (s *Server) stop(t testing.TB) {
	_ = s.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-s.exited:
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit status %d after SIGTERM:\n%s", code, s.Log())
		}
	case <-time.After(patience):
		_ = s.cmd.Process.Kill()
		<-s.exited
		t.Errorf("still there %s after SIGTERM:\n%s", patience, s.Log())
	}
}
