package main

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"

	"cellblock/internal/fault"
	"cellblock/mcpserver"
)

// Who asks for a language that the server does not run reads which it runs, and not what MCP calls them.
func TestUnknownLanguageIsAnsweredWithThoseThatRun(t *testing.T) {
	c := clientOf(t, func(method string, _ object) (object, error) {
		if method != "tools/list" {
			return nil, errors.New("unknown tool")
		}
		tools := []any{}
		for _, name := range []string{"execute_python", "execute_r", mcpserver.ExecuteFile, "list_sessions"} {
			tools = append(tools, object{"name": name, "inputSchema": object{"type": "object"}})
		}
		return object{"tools": tools}, nil
	})
	for asked, want := range map[string]string{
		"pyhton": "the server does not run \"pyhton\"\nHint: Use one of: python, r.",
		"file":   "the server does not run \"file\"\nHint: Use one of: python, r.",
	} {
		_, err := execOptions{language: asked}.cell(t.Context(), c, &liveOutput{w: io.Discard}, "1", io.Discard)
		if err == nil || fault.Text(err) != want {
			t.Errorf("%s: %v\n%s", asked, err, fault.Hint(err))
		}
	}
	_, err := execOptions{language: "Python"}.cell(t.Context(), c, &liveOutput{w: io.Discard}, "1", io.Discard)
	if err == nil || !strings.Contains(err.Error(), "unknown tool") {
		t.Errorf("another error of a language that runs: %v", err)
	}
}

// Images are saved beside those that are there, in their full size where the server still has it.
func TestImagesAreSavedBesideOthers(t *testing.T) {
	t.Chdir(t.TempDir())
	gone := errors.New("it is gone")
	c := clientOf(t, func(_ string, params object) (object, error) {
		if params["uri"] != "cellblock://whole" {
			return nil, gone
		}
		return object{"contents": []any{object{"uri": "a", "mimeType": "text/html", "text": "<b>"}, object{"uri": "a", "mimeType": "image/png", "blob": "d2hvbGU="}}}, nil
	})
	shown := func(original string) mcp.ImageContent {
		image := mcp.NewImageContent("c21hbGw=", "image/png")
		image.Meta = &mcp.Meta{AdditionalFields: map[string]any{mcpserver.OriginalMeta: original}}
		return image
	}
	if err := os.WriteFile("image-1.png", []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	result := &mcp.CallToolResult{Content: []mcp.Content{shown("cellblock://whole"), shown("cellblock://gone"), mcp.NewTextContent("ok")}}
	var stderr strings.Builder
	if err := (execOptions{images: "."}).print(t.Context(), c, result, &liveOutput{w: io.Discard}, &stderr); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"image-1.png": "mine", "image-2.png": "whole", "image-3.png": "small"} {
		if text, err := os.ReadFile(name); string(text) != want {
			t.Errorf("%s is %q, %v", name, text, err)
		}
	}
	if want := "image-2.png\nimage-3.png\nok\n"; stderr.String() != want {
		t.Errorf("printed %q", stderr.String())
	}
	if _, err := (execOptions{images: "."}).saveImage(mcp.NewImageContent("no base64!", "image/png"), 9); err == nil || fault.KindOf(err) != fault.Internal {
		t.Errorf("a broken one: %v", err)
	}
	if _, err := os.Stat("image-9.png"); err == nil {
		t.Error("there is a file of a broken image")
	}
}

// Each kernel gets network.ca_file in a variable: what is no certificate, or too long for that, is refused at the start.
func TestAuthoritiesThatAreNone(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"text.pem": "none", "long.pem": strings.Repeat("x", maxCAFile+1)} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"nothing.pem": "network.ca_file: open nothing.pem", ".": "network.ca_file: read .",
		"text.pem": "Name a file with the certificates of your own authorities", "long.pem": "or more than 64 KiB",
	} {
		_, err := NetworkConfig{CAFile: name}.authorities()
		if err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), want) {
			t.Errorf("%s: %v, %s", name, err, fault.Hint(err))
		}
	}
	if text, err := (NetworkConfig{}).authorities(); text != "" || err != nil {
		t.Errorf("none: %q, %v", text, err)
	}
}
