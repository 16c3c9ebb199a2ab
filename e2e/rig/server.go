package rig

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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

	env    []string
	cmd    *exec.Cmd
	exited chan struct{}
	quit   bool // it was ended on purpose, and need not end well
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
	return Install(t, args...).Serve(t)
}

// serve starts a server and waits until it is ready.
func serve(t testing.TB, i *Installation, args []string) *Server {
	t.Helper()
	s := &Server{DataDir: i.DataDir, env: Environment(i.Env...), exited: make(chan struct{})}
	s.cmd = exec.Command(Cellblock(), args...)
	s.cmd.Env = append(s.env, "GOTRACEBACK=all") // for Stacks
	stderr, err := s.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go s.follow(bufio.NewScanner(stderr), ready)
	t.Cleanup(func() { s.Stop(t) })
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
	cmd.Env = s.env
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// Kill ends the server by SIGKILL: it can do nothing about it.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	s.quit = true
	if err := s.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-s.exited
}

// Stop ends the server and checks that it ended well, and not before. It may be called again.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if s.quit {
		return
	}
	s.quit = true
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

// Descriptors returns what the server has open, by /proc, in order.
func (s *Server) Descriptors(t testing.TB) (targets []string) {
	t.Helper()
	open, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.PID()))
	if err != nil || len(open) == 0 {
		t.Fatalf("no list of descriptors: %v", err)
	}
	for _, link := range open {
		if target, err := os.Readlink(link); err == nil {
			targets = append(targets, target)
		}
	}
	slices.Sort(targets)
	return targets
}

// Children counts the processes that the server has started and that are still there.
func (s *Server) Children(t testing.TB) (n int) {
	t.Helper()
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.PID()))
	if err != nil || len(lists) == 0 {
		t.Fatalf("no list of children: %v", err)
	}
	for _, list := range lists {
		text, _ := os.ReadFile(list) // a thread that has ended has none
		n += len(strings.Fields(string(text)))
	}
	return n
}

// Memory returns the server's resident memory in bytes.
func (s *Server) Memory(t testing.TB) int64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	var size, resident int64
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		t.Fatal(err)
	}
	return resident * int64(os.Getpagesize())
}

// Stacks ends the server by SIGQUIT, on which Go's runtime writes the stack of every goroutine, and returns what it wrote.
// The program needs no door for it.
func (s *Server) Stacks(t testing.TB) string {
	t.Helper()
	before := len(s.Log())
	s.quit = true
	if err := s.cmd.Process.Signal(syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.exited:
	case <-time.After(patience):
		t.Fatalf("still there %s after SIGQUIT", patience)
	}
	return s.Log()[before:]
}

// Goroutines ends the server as Stacks does, and counts its goroutines by what started them.
func (s *Server) Goroutines(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for stack := range strings.SplitSeq(s.Stacks(t), "\n\n") {
		if strings.HasPrefix(stack, "goroutine ") && !strings.HasPrefix(stack, "goroutine 0 ") {
			counts[starter(stack)]++
		}
	}
	return counts
}

// starter names the function that started a goroutine, by its stack.
func starter(stack string) string {
	_, after, ok := strings.Cut(stack, "\ncreated by ")
	if !ok {
		return "main"
	}
	name, _, _ := strings.Cut(after, " in goroutine ")
	name, _, _ = strings.Cut(name, "\n")
	return name
}
