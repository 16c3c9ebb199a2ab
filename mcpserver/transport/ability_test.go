package transport

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// What a client can do stands in its session id: a server that was started since, or has forgotten, still knows.
func TestAbilitiesOutliveTheServer(t *testing.T) {
	key := NewSessionKey()
	withKey := func(c *HTTPConfig) { c.Key = key }
	before, _ := asking(t, withKey)
	after, _ := asking(t, withKey)
	able := before.able("alice", map[string]any{"elicitation": map[string]any{}})
	unable := before.able("alice", map[string]any{"sampling": map[string]any{}})
	able.w, unable.w = after, after

	s := able.talk(able.toolCall(1, "form", nil))
	q := s.next()
	if q.Method != "elicitation/create" {
		t.Fatalf("after a restart a client that can ask its user is told %+v", q)
	}
	able.post(response(q.ID, `"result":{"action":"decline"}`))
	s.next()
	if got := unable.post(unable.toolCall(1, "form", nil)); got.last().text() != "cannot ask" {
		t.Errorf("one that cannot: %s", got.body)
	}
}

func TestAbilities(t *testing.T) {
	key, yes := NewSessionKey(), &struct{}{}
	for name, tt := range map[string]struct {
		can       *mcp.ElicitationCapability
		form, url bool
	}{
		"nothing":        {nil, false, false},
		"no way is said": {&mcp.ElicitationCapability{}, true, false},
		"forms":          {&mcp.ElicitationCapability{Form: yes}, true, false},
		"addresses":      {&mcp.ElicitationCapability{URL: yes}, false, true},
		"both":           {&mcp.ElicitationCapability{Form: yes, URL: yes}, true, true},
	} {
		c := &client{version: handshake, capabilities: mcp.ClientCapabilities{Elicitation: tt.can}}
		known, ok := key.verify(key.mint("ann", c, time.Now()), "ann")
		if !ok || known.version != handshake {
			t.Fatalf("%s: %+v, %v", name, known, ok)
		}
		for _, c := range []*client{c, known} {
			if c.elicits(mcp.ElicitationModeForm) != tt.form || c.elicits(mcp.ElicitationModeURL) != tt.url {
				t.Errorf("%s: %+v", name, c.GetClientCapabilities())
			}
		}
	}
}

// In the handshake revisions a client says it once, and its session's id says it from then on; since, with each request.
func TestShowsApps(t *testing.T) {
	const kind = `{"mimeTypes":["` + AppType + `"]}`
	for name, tt := range map[string]struct{ extensions, want string }{
		"nothing":           {`{}`, "no apps"},
		"apps":              {`{"` + AppsExtension + `":` + kind + `}`, "apps"},
		"apps, and more":    {`{"x/y":{},"` + AppsExtension + `":{"mimeTypes":["text/html","` + AppType + `"]}}`, "apps"},
		"of another kind":   {`{"` + AppsExtension + `":{"mimeTypes":["text/html"]}}`, "no apps"},
		"no list":           {`{"` + AppsExtension + `":{"mimeTypes":"` + AppType + `"}}`, "no apps"},
		"no settings":       {`{"` + AppsExtension + `":null}`, "no apps"},
		"another extension": {`{"io.modelcontextprotocol/tasks":` + kind + `}`, "no apps"},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := asking(t)
			w.mcp.AddTool(mcp.NewTool("shows"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				if ShowsApps(ctx) {
					return mcp.NewToolResultText("apps"), nil
				}
				return mcp.NewToolResultText("no apps"), nil
			})
			handshaken, modern := w.able("ann", map[string]any{"extensions": json.RawMessage(tt.extensions)}), w.user("ann", stateless)
			declared := strings.Replace(modern.toolCall(1, "shows", nil), `"`+mcp.MetaKeyClientCapabilities+`":{}`,
				`"`+mcp.MetaKeyClientCapabilities+`":{"extensions":`+tt.extensions+`}`, 1)
			for era, got := range map[string]answer{handshake: handshaken.post(handshaken.toolCall(1, "shows", nil)), stateless: modern.post(declared)} {
				if got.last().text() != tt.want {
					t.Errorf("%s: %s, want %q", era, got.body, tt.want)
				}
			}
		})
	}
}
