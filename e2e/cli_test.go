package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	_ "image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"cellblock/e2e/rig"
)

// cellblock runs the program and returns all that it printed and its exit status.
func cellblock(t *testing.T, env []string, stdin string, args ...string) (string, int) {
	t.Helper()
	stdout, stderr, code := cellblockSplit(t, env, stdin, args...)
	return stdout + stderr, code
}

func cellblockSplit(t *testing.T, env []string, stdin string, args ...string) (string, string, int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), rig.Cellblock(), args...)
	cmd.Env = rig.Environment(env...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()
}

// exec streams what a cell prints to stdout, saves its images, and tells failure by its exit status.
func TestExecCommand(t *testing.T) {
	s := start(t, "auto")
	env := []string{"CELLBLOCK_URL=" + s.URL}
	data := []string{"--data-dir", s.DataDir}
	images := t.TempDir()

	stdout, stderr, code := cellblockSplit(t, env, "", append(data, "exec", "--session", "cli", "x = 20\nprint('printed')\nx + 1")...)
	if code != 0 || !strings.HasPrefix(stdout, "printed\n") || !strings.Contains(stdout, "21") || strings.Count(stdout, "printed") != 1 {
		t.Errorf("exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	stdout, _, code = cellblockSplit(t, env, "print(x * 2)", append(data, "exec", "--session", "cli", "-")...)
	if code != 0 || strings.TrimSpace(stdout) != "40" {
		t.Errorf("standard input: exit status %d, stdout %q", code, stdout)
	}
	// Standard error that says what standard output says is neither taken for it nor printed twice.
	stdout, stderr, code = cellblockSplit(t, env, "", append(data, "exec", "--session", "cli",
		"import sys\nfor i in range(3):\n    print('out', i, flush=True)\n    print('out', i + 1, file=sys.stderr); print('err', i, file=sys.stderr, flush=True)\n'end'")...)
	said := map[string]int{}
	for line := range strings.Lines(stdout) {
		said[strings.TrimSpace(line)]++
	}
	if code != 0 || said["out 0"] != 1 || said["out 1"] != 2 || said["out 2"] != 2 || said["out 3"] != 1 || said["err 1"] != 1 || said["'end'"] != 1 {
		t.Errorf("interleaved: exit status %d, stdout %q, stderr %q", code, stdout, stderr)
	}
	if out, code := cellblock(t, env, "print(x * 3)", append(data, "exec", "--session", "cli")...); code != 0 || !strings.HasPrefix(out, "60\n") {
		t.Errorf("a pipe: exit status %d\n%s", code, out)
	}
	// The result shows the image smaller; what is saved is the original.
	out, code := cellblock(t, env, "", append(data, "exec", "--session", "cli", "--timeout", "2m", "--images", images,
		"import matplotlib.pyplot as plt; plt.figure(figsize=(30, 4), dpi=100); plt.plot([1, 2]); plt.show()")...)
	wide := 0
	if raw, err := os.ReadFile(filepath.Join(images, "image-1.png")); err == nil {
		config, _, _ := image.DecodeConfig(bytes.NewReader(raw))
		wide = config.Width
	}
	if files, _ := filepath.Glob(filepath.Join(images, "*.png")); code != 0 || len(files) != 1 || wide < 2000 {
		t.Errorf("images: exit status %d, files %v, %d pixels wide\n%s", code, files, wide, out)
	}
	if out, code := cellblock(t, env, "", append(data, "exec", "--language", "cobol", "1")...); code != 2 || !strings.Contains(out, "Use one of: python") {
		t.Errorf("an unknown language: exit status %d\n%s", code, out)
	}
	if out, code := cellblock(t, env, "", append(data, "exec", "--session", "cli", "1/0")...); code != 1 || !strings.Contains(out, "ZeroDivisionError") {
		t.Errorf("an error: exit status %d\n%s", code, out)
	}
	if out, code := cellblock(t, env, "", "--data-dir", t.TempDir(), "exec", "1"); code == 0 || !strings.Contains(out, "Hint") {
		t.Errorf("no token: exit status %d\n%s", code, out)
	}
	if out, code := cellblock(t, []string{"CELLBLOCK_URL=http://127.0.0.1:1/mcp"}, "", append(data, "exec", "1")...); code == 0 || !strings.Contains(out, "cellblock serve") {
		t.Errorf("no server: exit status %d\n%s", code, out)
	}
}

// What a cell prints appears while it runs, and Ctrl-C stops the cell.
func TestExecIsLive(t *testing.T) {
	s := start(t, "auto")
	cmd := exec.CommandContext(t.Context(), rig.Cellblock(), "--data-dir", s.DataDir, "exec", "--session", "live",
		"print('it runs')\nimport time\ntime.sleep(600)")
	cmd.Env = rig.Environment("CELLBLOCK_URL=" + s.URL)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if line != "it runs\n" {
		t.Fatalf("the first line: %q, %v", line, err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("an interrupted exec ended with status 0")
	}
	c := s.Connect(t, s.Token(t), false)
	waitFor(t, func() bool { return strings.Contains(call(t, c, "list_sessions", nil).Text, "idle") })
}

// A one-line request on a pipe that closes at once is answered before the process ends.
func TestStdio(t *testing.T) {
	sandboxAndContainers(t, func(t *testing.T, runtime string) {
		runDir, err := os.MkdirTemp("/tmp", "cb")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(runDir)
		requests := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_python","arguments":{"code":"print(6 * 7)"}}}
`
		args := append([]string{"stdio", "--data-dir", t.TempDir(), "--run-dir", runDir}, rig.RuntimeFlags(runtime)...)
		stdout, stderr, code := cellblockSplit(t, nil, requests, args...)
		if code != 0 {
			t.Fatalf("exit status %d\n%s", code, stderr)
		}
		answers := map[float64]string{}
		for _, line := range strings.Split(strings.TrimSpace(stdout), "\n") {
			var answer struct {
				ID     float64         `json:"id"`
				Result json.RawMessage `json:"result"`
			}
			if err := json.Unmarshal([]byte(line), &answer); err != nil {
				t.Fatalf("stdout holds something that is no answer: %q", line)
			}
			answers[answer.ID] = string(answer.Result)
		}
		wantText(t, answers[1], "serverInfo")
		wantText(t, answers[2], "42")
	})
}

// A client that goes away while its cell runs ends the process, not by SIGPIPE, and leaves nothing behind.
func TestStdioWhoseClientHasGone(t *testing.T) {
	runDir, err := os.MkdirTemp("/tmp", "cb")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(runDir)
	// Whoever runs the tests may ignore the signal, and then so would the process.
	cmd := exec.Command("env", "--default-signal=PIPE", rig.Cellblock(),
		"stdio", "--data-dir", t.TempDir(), "--run-dir", runDir, "--provisioner", "local")
	cmd.Env = rig.Environment()
	var log bytes.Buffer
	cmd.Stderr = &log
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("it said:\n%s", log.String())
		}
	})
	marker := newMarker()
	fmt.Fprintf(stdin, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_python","arguments":{"code":"import subprocess, time; subprocess.Popen(['sleep', '%s']); time.sleep(3)"}}}`+"\n", marker)
	waitFor(t, func() bool { return processRuns(marker) })
	_ = stdout.Close()
	_ = stdin.Close()
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ended with %v", err)
	}
	if processRuns(marker) {
		t.Error("the cell's child outlived its server")
	}
}

// After SIGTERM nothing of a server's kernels is left.
func TestGracefulStopLeavesNothing(t *testing.T) {
	s := startIn(t, t.TempDir(), "local")
	c := s.Connect(t, s.Token(t), false)
	marker := newMarker()
	python(t, c, "busy", "import subprocess; p = subprocess.Popen(['sleep', '"+marker+"'])")
	if !processRuns(marker) {
		t.Fatal("the cell's child does not run")
	}
	s.Stop(t)
	if processRuns(marker) {
		t.Error("the cell's child outlived its server")
	}
}

// containers lists those of a data folder's installation that an engine has, ended ones too.
func containers(t *testing.T, runtime, dataDir string) (string, error) {
	t.Helper()
	id, err := os.ReadFile(filepath.Join(dataDir, "installation"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("docker", "ps", "--all", "--no-trunc", "--format", "{{.Label \"cellblock.installation\"}}")
	cmd.Env = append(os.Environ(), "DOCKER_HOST="+map[string]string{
		"docker": os.Getenv("CELLBLOCK_TEST_DOCKER_HOST"), "podman": os.Getenv("CELLBLOCK_TEST_PODMAN_HOST"),
	}[runtime])
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("docker ps: %w", err)
	}
	var ours []string
	for label := range strings.Lines(string(out)) {
		if strings.HasPrefix(label, strings.TrimSpace(string(id))) {
			ours = append(ours, label)
		}
	}
	return strings.Join(ours, ""), nil
}

var markers atomic.Int64

// newMarker returns a number of seconds for which nothing else on this host sleeps, another run of these tests neither.
func newMarker() string { return fmt.Sprintf("4%07d%02d", os.Getpid(), markers.Add(1)) }

// processRuns tells whether a process `sleep ARG` runs on this host.
func processRuns(arg string) bool {
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range lines {
		if raw, err := os.ReadFile(path); err == nil && string(raw) == "sleep\x00"+arg+"\x00" {
			return true
		}
	}
	return false
}

// What cannot be understood is answered with what to do.
func TestBadCommandLines(t *testing.T) {
	tests := map[string]struct {
		env  []string
		args []string
		want string
	}{
		"unknown flag":        {nil, []string{"serve", "--adr", "x"}, "Did you mean --addr?"},
		"unknown command":     {nil, []string{"sevre"}, "serve"},
		"unknown provisioner": {nil, []string{"serve", "--provisioner", "dokcer"}, "auto, docker, local"},
		"unknown variable":    {[]string{"CELLBLOCK_ADR=x"}, []string{"serve"}, "CELLBLOCK_ADDR"},
		"unknown MCP name":    {[]string{"MCP_JWKS_URL=x"}, []string{"serve"}, "MCP_JWKS_URI"},
		"a bad port":          {nil, []string{"serve", "--addr", "127.0.0.1:x"}, "127.0.0.1:8787"},
		"an unknown scope":    {nil, []string{"token", "--scopes", "bogus"}, "<language>:execute"},
		"no duration":         {nil, []string{"token", "--lifetime", "5"}, "write it as 90s"},
		"missing file":        {nil, []string{"serve", "--config", "/nonexistent.yaml"}, "/nonexistent.yaml"},
		"no such engine":      {nil, []string{"serve", "--provisioner", "docker", "--docker-host", "unix:///nonexistent.sock"}, "/nonexistent.sock"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			out, code := cellblock(t, tt.env, "", append(tt.args, "--data-dir", t.TempDir())...)
			if code == 0 {
				t.Error("exit status 0")
			}
			wantText(t, out, tt.want)
		})
	}
}

// Kernels that a killed server leaves behind belong to the next one on the same data folder, and to no other; those
// that no session knows any more are stopped.
func TestOrphansAreSwept(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir := t.TempDir()
		killed := startIn(t, dir, runtime)
		marker := newMarker()
		python(t, killed.Connect(t, killed.Token(t), false), "orphan", "import subprocess; p = subprocess.Popen(['sleep', '"+marker+"'])")

		start(t, runtime).Stop(t) // another installation
		neighbour := startIn(t, dir, runtime, noPool)
		if !processRuns(marker) {
			t.Fatal("a second process on the data folder, or another installation, stopped the first one's kernels")
		}
		neighbour.Stop(t)
		killed.Kill(t)
		if !processRuns(marker) {
			t.Fatal("the kernel ended with its server; there is nothing to sweep")
		}
		start(t, runtime).Stop(t)
		for _, path := range []string{"cellblock.db", "cellblock.db-wal", "cellblock.db-shm"} {
			if err := os.Remove(filepath.Join(dir, path)); err != nil && !os.IsNotExist(err) {
				t.Fatal(err)
			}
		}
		if !processRuns(marker) {
			t.Fatal("another installation stopped the kernel")
		}
		// What runs is stopped, what ended meanwhile is taken away.
		startIn(t, dir, runtime, noPool)
		waitFor(t, func() bool { return !processRuns(marker) })
		if runtime != "local" {
			waitFor(t, func() bool {
				left, err := containers(t, runtime, dir)
				if err != nil {
					t.Log(err) // Podman 4 cannot list containers while one is being removed
				}
				return err == nil && left == ""
			})
		}
	})
}

// The server's program executes itself once more as it starts (internal/timerslack). That must come before packages are
// initialised that take their time, or each start takes it twice.
func TestServeInitialisesOnce(t *testing.T) {
	_, trace, code := cellblockSplit(t, []string{"GODEBUG=inittrace=1"}, "", "serve", "--help")
	if code != 0 {
		t.Fatalf("it ended with %d:\n%s", code, trace)
	}
	times := map[string]int{}
	for line := range strings.Lines(trace) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "init" && strings.Contains(fields[1], ".") {
			times[fields[1]]++
		}
	}
	if len(times) == 0 {
		t.Fatalf("no package of others is named:\n%s", trace)
	}
	for name, n := range times {
		if n > 1 {
			t.Errorf("%s is initialised %d times", name, n)
		}
	}
}
