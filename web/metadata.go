package web

import "net/http"

// protectedResource answers with the metadata by which an OAuth client finds out where to get a token for this server
// (RFC 9728, section 2; MCP, "Authorization", "Authorization server location").
func protectedResource(cfg Config) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, struct {
			Resource string   `json:"resource"`
			Servers  []string `json:"authorization_servers"`
			Scopes   []string `json:"scopes_supported,omitempty"`
			Methods  []string `json:"bearer_methods_supported"`
			Name     string   `json:"resource_name"`
		}{Resource: cfg.mcpURL(), Servers: []string{cfg.Issuer}, Scopes: cfg.Scopes, Methods: []string{"header"}, Name: "cellblock"})
	})
}
