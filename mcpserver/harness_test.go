package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/egress"
	"cellblock/images"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/sessions"
)

// world is a server over scripted kernels, with one caller who has some scopes.
type world struct {
	t       *testing.T
	service *service
	server  *server.MCPServer
	kernels *kernelstest.Provisioner
	owner   sessions.Owner
	scopes  []string
	notes   []note
}

// note is a notification that the server sent.
type note struct {
	at      time.Duration
	token   any
	value   float64
	message string
	live    string
}

func newWorld(t *testing.T, change ...func(*sessions.Config)) *world {
	t.Helper()
	w := &world{t: t, kernels: kernelstest.NewProvisioner(), owner: sessions.Owner{Subject: "alice"},
		scopes: []string{"python:execute", ScopeRead, ScopeManage, ScopeFilesRead, ScopeFilesWrite, ScopeImages}}
	cfg := sessions.Config{
		Provisioner: w.kernels, DataDir: t.TempDir(), Runtimes: map[string]sessions.Runtime{
			"python": {RunFile: "print ran {path} {args}", Note: images.Python("").Note}},
		Profiles: map[string]sessions.Profile{
			"session":     {Limits: kernels.Limits{Memory: 2 << 30, CPUs: 2}},
			"isolated":    {Limits: kernels.Limits{Memory: 512 << 20}, Once: true},
			"development": {Limits: kernels.Limits{Memory: 4 << 30}, Network: egress.Policy{Mode: egress.Internet}},
		},
		Image:  func(_ context.Context, _ sessions.Owner, _, name string) (string, error) { return name, nil },
		Logger: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := sessions.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.service = newService(Config{
		Sessions: m, Version: "1.2.3", Logger: cfg.Logger,
		Owner:   func(context.Context) (sessions.Owner, error) { return w.owner, nil },
		Allowed: func(_ context.Context, scope string) bool { return slices.Contains(w.scopes, scope) },
	})
	began := time.Now()
	w.service.notify = func(_ context.Context, method string, p map[string]any) error {
		if method != "notifications/progress" {
			t.Errorf("notification %q", method)
		}
		meta, _ := p["_meta"].(map[string]any)
		live, _ := meta[OutputMeta].(string)
		w.notes = append(w.notes, note{time.Since(began), p["progressToken"], p["progress"].(float64), p["message"].(string), live})
		return nil
	}
	w.server = w.service.server()
	return w
}

// inBubble runs a test with a world whose time passes at once, and in which nothing is left at the end.
func inBubble(t *testing.T, test func(*testing.T, *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		test(t, w)
	})
}

// request sends a JSON-RPC request as a transport does and returns the response, decoded.
func (w *world) request(ctx context.Context, method string, params any) (result json.RawMessage, rpcError *mcp.JSONRPCErrorDetails) {
	w.t.Helper()
	message, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := json.Marshal(w.server.HandleMessage(ctx, message))
	if err != nil {
		w.t.Fatal(err)
	}
	var response struct {
		Result json.RawMessage
		Error  *mcp.JSONRPCErrorDetails
	}
	if err := json.Unmarshal(data, &response); err != nil {
		w.t.Fatal(err)
	}
	return response.Result, response.Error
}

// called is the result of a tool call: its texts, and an image as "(image/png)".
type called struct {
	texts      []string
	structured json.RawMessage
	isError    bool
}

func (c called) String() string { return strings.Join(c.texts, "\n") }

func (w *world) callWith(ctx context.Context, params map[string]any) called {
	w.t.Helper()
	result, rpcError := w.request(ctx, "tools/call", params)
	if rpcError != nil {
		w.t.Fatalf("protocol error %d: %s", rpcError.Code, rpcError.Message)
	}
	var r struct {
		Content           []struct{ Type, Text, MIMEType string }
		StructuredContent json.RawMessage
		IsError           bool
	}
	if err := json.Unmarshal(result, &r); err != nil {
		w.t.Fatal(err)
	}
	c := called{structured: r.StructuredContent, isError: r.IsError}
	for _, block := range r.Content {
		if block.Type == "image" {
			block.Text = "(" + block.MIMEType + ")"
		}
		c.texts = append(c.texts, block.Text)
	}
	return c
}

func (w *world) call(tool string, args map[string]any) called {
	w.t.Helper()
	return w.callWith(w.t.Context(), map[string]any{"name": tool, "arguments": args})
}

// run is execute_python in a session.
func (w *world) run(session, code string) called {
	w.t.Helper()
	return w.call("execute_python", map[string]any{"session_id": session, "code": code})
}

// expect checks that a result says all of the words.
func (c called) expect(t *testing.T, isError bool, words ...string) {
	t.Helper()
	if c.isError != isError {
		t.Errorf("isError is %v: %s", c.isError, c)
	}
	for _, word := range words {
		if !strings.Contains(c.String(), word) {
			t.Errorf("it does not say %q:\n%s", word, c)
		}
	}
}
