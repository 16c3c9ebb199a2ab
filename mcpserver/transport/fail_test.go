package transport

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"cellblock/internal/fault"
)

func TestFailSaysWhatBecameOfAReading(t *testing.T) {
	s := server.NewMCPServer("t", "1", server.WithResourceCapabilities(false, false))
	s.AddResourceTemplate(mcp.NewResourceTemplate("x://{kind}", "x"), func(ctx context.Context, r mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		switch r.Params.URI {
		case "x://missing":
			Fail(ctx, fault.New(fault.NotFound, "there is no such thing").WithHint("Try another."))
		case "x://defect":
			Fail(ctx, errors.New("secret insides"))
		}
		return nil, errors.New("as mcp-go tells it")
	})
	d := NewDispatcher(s, nil)
	for _, tt := range []struct {
		uri, version, message string
		code                  int
	}{
		{"x://missing", "", "there is no such thing\nHint: Try another.", mcp.RESOURCE_NOT_FOUND},
		{"x://missing", mcp.ProtocolVersion20260728, "there is no such thing\nHint: Try another.", mcp.INVALID_PARAMS},
		{"x://plain", "", "as mcp-go tells it", mcp.INTERNAL_ERROR},
	} {
		m := &message{method: "resources/read", version: tt.version, id: []byte("1"),
			raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"` + tt.uri + `"}}`)}
		response, ok := d.call(t.Context(), m, &client{}, &outlet{}).(mcp.JSONRPCError)
		if !ok || response.Error.Code != tt.code || response.Error.Message != tt.message {
			t.Errorf("%s: %+v", tt.uri, response)
		}
	}
	m := &message{method: "resources/read", id: []byte("1"), raw: []byte(`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"x://defect"}}`)}
	if e := d.call(t.Context(), m, &client{}, &outlet{}).(mcp.JSONRPCError); e.Error.Code != mcp.INTERNAL_ERROR || e.Error.Message == "secret insides" {
		t.Errorf("%+v", e)
	}
	Fail(t.Context(), http.ErrAbortHandler) // outside of a request: nothing
}
