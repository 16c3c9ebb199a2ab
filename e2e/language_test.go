package e2e

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/api/types/image"
	"github.com/docker/docker/client"

	"cellblock/e2e/rig"
)

// walkThrough returns the files of the example in docs/adding-a-language.md: what is there must work.
func walkThrough(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(rig.Root(t), "docs", "adding-a-language.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for name, kind := range map[string]string{"kernel.py": "python", "kernel.json": "json", "Dockerfile": "dockerfile"} {
		found := regexp.MustCompile("(?s)```"+kind+"\n(.*?)```").FindAllSubmatch(text, -1)
		if len(found) != 1 {
			t.Fatalf("%d blocks of %s", len(found), kind)
		}
		files[name] = string(found[0][1])
	}
	return files
}

// buildImage builds an image of some files and removes it after the test.
func buildImage(t *testing.T, host, name string, files map[string]string) {
	t.Helper()
	api, err := client.NewClientWithOpts(client.WithHost(host), client.WithAPIVersionNegotiation())
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, text) // into memory
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	answer, err := api.ImageBuild(t.Context(), &archive, build.ImageBuildOptions{Tags: []string{name}, Remove: true, ForceRemove: true, NetworkMode: "none"})
	if err != nil {
		t.Fatal(err)
	}
	log, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if _, inspectErr := api.ImageInspect(t.Context(), name); err != nil || inspectErr != nil {
		t.Fatalf("%v, %v: %s", err, inspectErr, log)
	}
	t.Cleanup(func() {
		if _, err := api.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true}); err != nil {
			t.Errorf("removing %s: %v", name, err)
		}
		_ = api.Close()
	})
}

// A language is added by a Dockerfile alone: the one of the documentation.
func TestLanguageFromADockerfile(t *testing.T) {
	files := walkThrough(t)
	eachRuntime(t, func(t *testing.T, runtime string) {
		env := map[string]string{"docker": "CELLBLOCK_TEST_DOCKER_HOST", "podman": "CELLBLOCK_TEST_PODMAN_HOST"}[runtime]
		dataDir := t.TempDir()
		i := rig.Installation{DataDir: dataDir, RunDir: runDirOf(t, dataDir), Flags: rig.RuntimeFlags(runtime)}
		if env != "" {
			buildImage(t, os.Getenv(env), "cellblock-calc:latest", files)
		} else {
			i.Env = []string{"JUPYTER_DATA_DIR=" + installKernel(t, files)}
		}
		s := i.Serve(t, noPool)
		c := s.Connect(t, s.Token(t), false)
		tools := strings.Join(c.ToolNames(t), " ")
		wantText(t, tools, "execute_calc", "execute_python")

		run := func(code string) rig.Result {
			return call(t, c, "execute_calc", map[string]any{"code": code, "session_id": "sums"})
		}
		wantText(t, run("1+2").Text, "3", "session sums")
		wantText(t, run("4").Text, "7")
		if r := run("five"); !r.IsError || !strings.Contains(r.Text, "Malformed: invalid literal") {
			t.Errorf("an error: %+v", r)
		}
		wantText(t, call(t, c, "list_sessions", map[string]any{}).Text, "sums · calc")
		if r := python(t, c, "sums", "1"); !r.IsError || !strings.Contains(r.Text, "calc session") || !strings.Contains(r.Text, "execute_calc") {
			t.Errorf("another language: %+v", r)
		}
		book, _, err := c.Read(t.Context(), "cellblock://sessions/sums/notebook.ipynb")
		if err != nil {
			t.Fatal(err)
		}
		wantText(t, book, `"file_extension": ".calc"`, `"display_name": "Calc"`)

		only := s.Connect(t, s.Token(t, "--scopes", "python:execute"), false)
		if strings.Contains(strings.Join(only.ToolNames(t), " "), "execute_calc") {
			t.Error("a token without the scope sees the tool")
		}
		if _, err := only.Call(t.Context(), "execute_calc", map[string]any{"code": "1"}, nil); err == nil || !strings.Contains(err.Error(), "insufficient_scope") {
			t.Errorf("a token without the scope: %v", err)
		}
	})
}

// installKernel puts a kernel where a user's Jupyter has its own, and returns that folder.
func installKernel(t *testing.T, files map[string]string) string {
	t.Helper()
	data := t.TempDir()
	folder := filepath.Join(data, "kernels", "calc")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		text = strings.Replace(text, `"python3"`, `"/usr/bin/python3"`, 1) // what comes first on the path may be another one
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return data
}
