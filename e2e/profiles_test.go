package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/e2e/rig"
)

// profilesFile writes a configuration with a profile that sees a folder of this host.
func profilesFile(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	text := fmt.Sprintf("mount_roots: [%s]\npool_size: 0\nprofiles:\n  lab: {memory: 768MB, mounts: [{source: %s, target: /data}]}\n", root, root)
	path := filepath.Join(t.TempDir(), "cellblock.yaml")
	for file, content := range map[string]string{filepath.Join(root, "file"): "from the host", path: text} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// mustRun is a cell that must end well, and say something.
func mustRun(t *testing.T, c *rig.Client, args map[string]any, says ...string) rig.Result {
	t.Helper()
	r := call(t, c, "execute_python", args)
	if r.IsError {
		t.Fatalf("%v: %+v", args, r)
	}
	wantText(t, r.Text, says...)
	return r
}

// A profile is chosen once, needs its scope in every call, and outlives the server. Two tokens of one subject share a session
// only as far as both may use its profile.
func TestProfiles(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		dir, config := t.TempDir(), profilesFile(t)
		s := startIn(t, dir, runtime, noPool, "--config", config)
		all := s.Connect(t, s.Token(t), false)
		few := s.Token(t, "--scopes", "python:execute,sessions:read")
		some := s.Connect(t, few, false)

		const read = "print(open('/data/file').read())"
		mustRun(t, all, map[string]any{"code": read, "session_id": "d", "profile": "lab"}, "from the host")
		mustRun(t, all, map[string]any{"code": "try: open('/data/new', 'w')\nexcept OSError as e: print(e.strerror)", "session_id": "d"}, "Read-only file system")
		mustRun(t, some, map[string]any{"code": "import os\nos.path.exists('/data/file')", "session_id": "plain"}, "False")

		for session, profile := range map[string]string{"new": "lab", "d": "development"} {
			body := fmt.Sprintf(strings.Replace(callPython, `{"code":"1"}`, `{"code":"1","session_id":%q,"profile":%q}`, 1), session, profile)
			resp, text := post(t, s.URL, few, body, modernHeaders)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("profile %s: status %d: %s", profile, resp.StatusCode, text)
			}
			wantText(t, resp.Header.Get("WWW-Authenticate"), "insufficient_scope", "profile:"+profile)
		}
		if r, err := some.Call(t.Context(), "execute_python", map[string]any{"code": read, "session_id": "d"}, nil); err != nil || !r.IsError || !strings.Contains(r.Text, "profile:lab") {
			t.Errorf("in a session whose profile it may not use: %+v, %v", r, err)
		}
		for c, want := range map[*rig.Client][]string{all: {"development", "isolated", "lab", "session"}, some: {"isolated", "session"}} {
			if got := offeredProfiles(t, c); !slices.Equal(got, want) {
				t.Errorf("the schema offers %v, want %v", got, want)
			}
		}

		s.Stop(t)
		s = startIn(t, dir, runtime, noPool, "--config", config)
		all = s.Connect(t, s.Token(t), false)
		mustRun(t, all, map[string]any{"code": read, "session_id": "d"}, "from the host", "generation 2")
		if r, err := all.Call(t.Context(), "list_sessions", map[string]any{}, nil); err != nil || !strings.Contains(r.Text, "profile lab") {
			t.Errorf("the list: %+v, %v", r, err)
		}
		if r, err := all.Call(t.Context(), "execute_python", map[string]any{"code": "1", "session_id": "d", "profile": "session"}, nil); err != nil || !r.IsError || !strings.Contains(r.Text, "has the profile lab") {
			t.Errorf("another profile: %+v, %v", r, err)
		}
	})
}

// offeredProfiles are those that the schema of execute_python names.
func offeredProfiles(t *testing.T, c *rig.Client) (names []string) {
	t.Helper()
	list, err := c.ListTools(t.Context(), mcp.ListToolsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.Tools, func(tool mcp.Tool) bool { return tool.Name == "execute_python" })
	b, _ := json.Marshal(list.Tools[i].InputSchema.Properties["profile"])
	var argument struct {
		Enum []string `json:"enum"`
	}
	if err := json.Unmarshal(b, &argument); err != nil {
		t.Fatal(err)
	}
	return argument.Enum
}

// A kernel for one call is nobody's else, and nothing is left of it but what it said.
func TestIsolated(t *testing.T) {
	eachRuntime(t, func(t *testing.T, runtime string) {
		s := start(t, runtime)
		c := s.Connect(t, s.Token(t, "--scopes", "python:execute,sessions:read"), false)
		isolated := func(code string) map[string]any { return map[string]any{"code": code, "profile": "isolated"} }
		for range 2 {
			r := mustRun(t, c, isolated("import os\nprint('x' in globals(), os.listdir())\nx = 1\nopen('left.txt', 'w').write('x')"), "False []", "for this call only")
			if strings.Contains(r.Text, "left.txt") {
				t.Errorf("it names files that are gone: %s", r.Text)
			}
		}
		r, err := c.Call(t.Context(), "execute_python", map[string]any{"code": "1", "profile": "isolated", "session_id": "mine"}, nil)
		if err != nil || !r.IsError || !strings.Contains(r.Text, "leave session_id out") {
			t.Errorf("with a name: %+v, %v", r, err)
		}
		out, status := cellblock(t, []string{"CELLBLOCK_URL=" + s.URL}, "", "--data-dir", s.DataDir, "exec", "--profile", "isolated", "print(6 * 7)")
		if status != 0 || !strings.Contains(out, "42") {
			t.Errorf("exec: status %d: %s", status, out)
		}
		wantGone(t, s, "left.txt")
		if r, err := c.Call(t.Context(), "list_sessions", map[string]any{}, nil); err != nil || !strings.Contains(r.Text, "No sessions") || strings.Contains(r.Text, "more ended") {
			t.Errorf("the list: %+v, %v", r, err)
		}
	})
}

// wantGone waits until no workspace has a file of that name.
func wantGone(t *testing.T, s *rig.Server, name string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) { // nothing tells when a session is gone
		left, _ := filepath.Glob(filepath.Join(s.DataDir, "workspaces", "*", name))
		if len(left) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("left are %v", left)
		}
	}
}

// The doctor says what each profile gives, and which cannot be had where kernels run.
func TestDoctorTellsOfProfiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cellblock.yaml")
	if err := os.WriteFile(path, []byte("profiles: {vm: {runtime: no-such-runtime}, net: {network: {mode: hosts, hosts: [pypi.org]}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, runtime := range rig.Runtimes(t) {
		args := append([]string{"doctor", "--config", path, "--data-dir", t.TempDir()}, rig.RuntimeFlags(runtime)...)
		out, code := cellblock(t, nil, "", args...)
		if _, alone := cellblock(t, nil, "", append(args, "--check", "profiles")...); code == 0 || alone == 0 {
			t.Errorf("exit status %d, and %d of the check alone", code, alone)
		}
		wantText(t, out, "net (network hosts)", "isolated (one call)", "development (network internet)", "NOT HERE: vm: the ", "no-such-runtime")
	}
}
