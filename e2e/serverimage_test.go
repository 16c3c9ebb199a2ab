//go:build linux

package e2e

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"fmt"
	random "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"cellblock/e2e/rig"
	"cellblock/kernels/kernelstest"
)

// composed is a service of a compose.yaml. A key that is not here is a failure: what cannot be tried is not proved.
type composed struct {
	Image   string
	Command []string
	Restart string
	Grace   string `yaml:"stop_grace_period"`
	Health  struct {
		Test     []string
		Interval string
		Timeout  string
		Start    string `yaml:"start_period"`
	} `yaml:"healthcheck"`
	Groups      []string          `yaml:"group_add"`
	ReadOnly    bool              `yaml:"read_only"`
	CapDrop     []string          `yaml:"cap_drop"`
	Security    []string          `yaml:"security_opt"`
	Memory      string            `yaml:"mem_limit"`
	Swap        string            `yaml:"memswap_limit"`
	CPUs        string            `yaml:"cpus"`
	PIDs        string            `yaml:"pids_limit"`
	Tmpfs       []string          `yaml:"tmpfs"`
	Volumes     []string          `yaml:"volumes"`
	Ports       []string          `yaml:"ports"`
	Environment map[string]string `yaml:"environment"`
}

// readCompose reads the one service of compose.yaml.
func readCompose(t *testing.T, variables func(string) string) composed {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rig.Root(t), "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Name     string
		Services map[string]composed
		Volumes  map[string]any
	}
	decoder := yaml.NewDecoder(strings.NewReader(os.Expand(string(text), variables)))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil || len(file.Services) != 1 {
		t.Fatalf("%d services: %v", len(file.Services), err)
	}
	return file.Services["cellblock"]
}

// flags are those of docker run that do the same. The port on this machine is any that is free.
func (c composed) flags() (flags []string) {
	add := func(flag string, values ...string) {
		for _, v := range values {
			flags = append(flags, flag+"="+v)
		}
	}
	add("--group-add", c.Groups...)
	add("--read-only", strconv.FormatBool(c.ReadOnly))
	add("--cap-drop", c.CapDrop...)
	add("--security-opt", c.Security...)
	add("--memory", c.Memory)
	add("--memory-swap", c.Swap)
	add("--cpus", c.CPUs)
	add("--pids-limit", c.PIDs)
	add("--tmpfs", c.Tmpfs...)
	add("--volume", c.Volumes...)
	for _, port := range c.Ports {
		parts := strings.Split(port, ":")
		add("--publish", parts[0]+"::"+parts[2])
	}
	for name, value := range c.Environment {
		add("--env", name+"="+value)
	}
	return flags
}

// engineCLI is docker's command line, for one engine.
type engineCLI struct{ host string }

func (e engineCLI) command(args ...string) *exec.Cmd {
	cmd := exec.Command("docker", args...)
	cmd.Env = rig.Environment("DOCKER_HOST=" + e.host)
	return cmd
}

func (e engineCLI) run(t *testing.T, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := e.command(args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// buildServer builds the server's image.
func buildServer(t *testing.T, e engineCLI, name string) {
	t.Helper()
	build := exec.Command(filepath.Join(rig.Root(t), "scripts", "server-image.sh"))
	build.Env = rig.Environment("DOCKER_HOST="+e.host, "ENGINE=docker", "TAG="+name)
	t.Cleanup(func() { _ = e.command("rmi", "--force", name).Run() }) // also of one that is interrupted
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("server-image.sh: %v\n%s", err, out)
	}
}

// inContainer runs an image of the server as compose.yaml says, under a name that its container and volume have, and returns where it is
// reached. An engine that cannot give containers a bridge (scripts/engine.sh) gives it the host's network.
func inContainer(t *testing.T, e engineCLI, image, name string, env ...string) (address string) {
	t.Helper()
	socket := strings.TrimPrefix(e.host, "unix://")
	info, err := os.Stat(socket)
	if err != nil {
		t.Fatal(err)
	}
	service := readCompose(t, func(variable string) string {
		return map[string]string{
			"DOCKER_GID:-0": fmt.Sprint(info.Sys().(*syscall.Stat_t).Gid), "DOCKER_SOCKET:-/var/run/docker.sock": socket,
		}[variable]
	})
	for i, v := range service.Volumes {
		if rest, ok := strings.CutPrefix(v, "data:"); ok {
			service.Volumes[i] = name + ":" + rest
		}
	}
	bridged := e.run(t, "network", "ls", "--quiet", "--filter=driver=bridge") != ""
	if !bridged {
		address = freeAddress(t)
		service.Ports, service.Environment["CELLBLOCK_ADDR"] = nil, address
	}
	// What it starts goes with it here, and no kernel waits for nobody.
	args := append([]string{"run", "--detach", "--name", name, "--env=CELLBLOCK_ON_SHUTDOWN=stop", "--env=CELLBLOCK_POOL_SIZE=0"}, service.flags()...)
	for _, variable := range env {
		args = append(args, "--env="+variable)
	}
	if !bridged {
		args = append(args, "--network=host")
	}
	t.Cleanup(func() { e.remove(t, name) })
	e.run(t, append(append(args, image), service.Command...)...)
	e.awaitReady(t, name)
	if bridged {
		address = e.run(t, "port", name, "8787/tcp")
	}
	return address
}

// freeAddress is one of this machine where nobody listens. Its port is below those that Linux gives to whoever asks for any, so that
// nobody gets it before the container does.
func freeAddress(t *testing.T) string {
	t.Helper()
	var err error
	for range 100 {
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20_000+random.IntN(10_000))); err == nil {
			defer l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal(err)
	return ""
}

// awaitReady follows what a server says until it is ready.
func (e engineCLI) awaitReady(t *testing.T, name string) {
	t.Helper()
	logs := e.command("logs", "--follow", name)
	out, err := logs.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := logs.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = logs.Process.Kill(); _ = logs.Wait() }()
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if strings.Contains(lines.Text(), "is ready at") {
			return
		}
		said.WriteString(lines.Text() + "\n")
	}
	t.Fatalf("the server ended before it was ready:\n%s", said.String())
}

// remove stops a server's container as an operator does, and removes it with its volume.
func (e engineCLI) remove(t *testing.T, name string) {
	_ = e.command("stop", "--time=60", name).Run()
	logs, _ := e.command("logs", name).CombinedOutput()
	if state, _ := e.command("inspect", "--format={{.State.ExitCode}}", name).Output(); strings.TrimSpace(string(state)) != "0" {
		t.Errorf("the server's exit status is %s", state)
	}
	if t.Failed() {
		t.Logf("the server said:\n%s", logs)
	}
	_ = e.command("rm", "--force", name).Run()
	_ = e.command("volume", "rm", "--force", name).Run()
}

// read returns what a container's file holds; there is no program in there that could print it.
func (e engineCLI) read(t *testing.T, name, path string) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "copied")
	e.run(t, "cp", name+":"+path, copied)
	text, err := os.ReadFile(copied)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(text))
}

// wantNothingOf fails if something of an installation is left, but for its shim's volume, which all share that have the same shim.
func (e engineCLI) wantNothingOf(t *testing.T, installation string) {
	t.Helper()
	filter := "--filter=label=cellblock.installation=" + installation
	names := strings.Fields(e.run(t, "ps", "--all", filter, "--format={{.Names}}") + "\n" + e.run(t, "volume", "ls", "--quiet", filter))
	names = slices.DeleteFunc(names, func(name string) bool { return strings.HasPrefix(name, "cellblock-shim-") })
	if len(names) > 0 {
		t.Errorf("left on the engine: %s", names)
	}
}

// composedServer builds the server's image and runs it as compose.yaml says, with more variables. Nothing of it must be left on the engine.
func composedServer(t *testing.T, env ...string) (e engineCLI, name, address string) {
	t.Helper()
	host := os.Getenv("CELLBLOCK_TEST_DOCKER_HOST")
	_, err := exec.LookPath("docker")
	kernelstest.Need(t, err == nil && strings.HasPrefix(host, "unix://"), "docker's command line and an engine (CELLBLOCK_TEST_DOCKER_HOST)")
	e, name = engineCLI{host}, "cellblock-test-"+strings.ToLower(rand.Text()[:8])
	var installation string
	t.Cleanup(func() { e.wantNothingOf(t, installation) }) // when the server has ended
	buildServer(t, e, name)
	address = inContainer(t, e, name, name, env...)
	installation = e.read(t, name, "/data/installation")
	return e, name, address
}

// TestServerImage: the server's image works as compose.yaml locks it down, over HTTP and over stdio in the container that runs, and
// leaves nothing on the engine.
func TestServerImage(t *testing.T) {
	e, name, address := composedServer(t)
	if health := readCompose(t, func(string) string { return "" }).Health.Test; len(health) < 2 || health[0] != "CMD" || e.run(t, append([]string{"exec", name}, health[1:]...)...) != "ready" {
		t.Errorf("the health check is %q, and fails", health)
	}
	token := e.run(t, "exec", name, "/cellblock", "token")
	s := &rig.Server{URL: "http://" + address + "/mcp"}
	c := s.Connect(t, token, false)
	wantText(t, python(t, c, "http", "import os; x = 42; print('uid', os.getuid() > 0)").Text, "uid True")
	wantText(t, python(t, c, "http", "print(x); open('kept.txt', 'w').write('by code')").Text, "42", "Files: kept.txt (new, 7 bytes)")
	wantText(t, call(t, c, "read_file", map[string]any{"session_id": "http", "path": "kept.txt"}).Text, "by code")
	wantText(t, call(t, c, "write_file", map[string]any{"session_id": "http", "path": "in/own.py", "content": "print('by a tool')"}).Text, "Wrote in/own.py")
	wantText(t, call(t, c, "execute_file", map[string]any{"session_id": "http", "path": "in/own.py"}).Text, "by a tool")
	wantText(t, python(t, c, "http", "open('in/own.py', 'a').close(); print(sorted(os.listdir()), os.listdir('..') == os.listdir('/'))").Text, "['in', 'kept.txt'] True")
	if r := call(t, c, "close_session", map[string]any{"session_id": "http", "delete_files": true}); r.IsError {
		t.Error(r.Text)
	}

	stdio := e.command("exec", "--interactive", name, "/cellblock", "stdio")
	stdio.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"e2e","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_python","arguments":{"code":"print(6 * 7)","session_id":"desktop","wait_seconds":120}}}
`)
	var stderr bytes.Buffer
	stdio.Stderr = &stderr
	answers, err := stdio.Output()
	if err != nil {
		t.Fatalf("stdio: %v\n%s", err, stderr.String())
	}
	wantText(t, string(answers), `"serverInfo"`, `"text":"42"`, `session desktop`)
}

// TestServerImageWithVolumes: where no folder of the server's can be a kernel's, workspaces are volumes, and are in backups.
func TestServerImageWithVolumes(t *testing.T) {
	e, name, address := composedServer(t, "CELLBLOCK_DOCKER_FILES=volume")
	s := &rig.Server{URL: "http://" + address + "/mcp"}
	c := s.Connect(t, e.run(t, "exec", name, "/cellblock", "token"), false)
	wantText(t, python(t, c, "http", "import os; print('uid', os.getuid() > 0)").Text, "uid True")
	wantText(t, python(t, c, "http", "open('kept.txt', 'w').write('in a volume')").Text, "11")
	wantText(t, call(t, c, "list_files", map[string]any{"session_id": "http"}).Text, "workspaces are volumes of a container engine")
	wantRestored(t, e, name)
	if r := call(t, c, "close_session", map[string]any{"session_id": "http", "delete_files": true}); r.IsError {
		t.Error(r.Text)
	}
}

// wantRestored makes a backup of the server in a container, restores it into another volume, and looks there for what its session "http"
// has written, which is in a volume of the engine.
func wantRestored(t *testing.T, e engineCLI, name string) {
	t.Helper()
	backup := e.command("exec", name, "/cellblock", "backup", "-")
	var said bytes.Buffer
	backup.Stderr = &said
	archive, err := backup.Output()
	if err != nil {
		t.Fatalf("backup: %v\n%s", err, &said)
	}
	wantText(t, said.String(), "workspaces in volumes of the container engine: 1, with 1 file (11 bytes)")
	other := name + "-restored"
	restore := e.command("run", "--rm", "--interactive", "--read-only", "--network=none", "--volume", other+":/data", name, "restore", "-")
	restore.Stdin = bytes.NewReader(archive)
	if out, err := restore.CombinedOutput(); err != nil {
		t.Fatalf("restore: %v\n%s", err, out)
	}
	var installation string
	t.Cleanup(func() { e.wantNothingOf(t, installation) })
	s := &rig.Server{URL: "http://" + inContainer(t, e, name, other, "CELLBLOCK_DOCKER_FILES=volume") + "/mcp"}
	installation = e.read(t, other, "/data/installation")
	c := s.Connect(t, e.run(t, "exec", other, "/cellblock", "token"), false)
	wantText(t, call(t, c, "get_execution", map[string]any{"session_id": "http", "execution_id": 1}).Text, "uid True")
	for range 2 { // by then the kernel has the files
		wantText(t, python(t, c, "http", "import os; print(open('kept.txt').read(), os.access('kept.txt', os.W_OK))").Text, "in a volume True")
	}
	if r := call(t, c, "close_session", map[string]any{"session_id": "http", "delete_files": true}); r.IsError {
		t.Error(r.Text)
	}
}
