package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"cellblock/auth"
	"cellblock/internal/fault"
	"cellblock/web/viewer"
)

const (
	mcpPath     = "/mcp"
	healthPath  = "/health"
	readyPath   = "/ready"
	metricsPath = "/metrics"
	// MetadataPath is where the protected-resource metadata lies, alone and followed by the path of what it is about
	// (RFC 9728, section 3.1).
	MetadataPath = "/.well-known/oauth-protected-resource"
)

// access is who may follow a route: a scope, or one of these. A route without it cannot be.
type access string

const (
	anybody  access = "anybody"
	anyToken access = "any token"
)

// route is one path of the site.
type route struct {
	path    string // exact
	methods []string
	access  access
	handler http.Handler
}

// routes is the whole site. What is not in it does not exist.
func (cfg Config) routes(started time.Time, requests *shares) []route {
	state := newHealth(cfg, started)
	bodies := newShares(maxBodies, ownBodies)
	table := []route{
		{"/", []string{http.MethodGet}, anybody, indexPage(cfg.mcpURL())},
		{mcpPath, nil, anyToken, cfg.MCP}, // which knows its methods, and the scope of each call, itself
		{healthPath, []string{http.MethodGet}, anybody, state},
		{readyPath, []string{http.MethodGet}, anybody, http.HandlerFunc(state.ready)},
	}
	if cfg.Metrics != nil {
		table = append(table, route{metricsPath, []string{http.MethodGet}, access(auth.ScopeAdmin), cfg.Metrics})
	}
	if cfg.Issuer != "" {
		metadata := protectedResource(cfg)
		table = append(table,
			route{MetadataPath, []string{http.MethodGet}, anybody, metadata},
			route{MetadataPath + mcpPath, []string{http.MethodGet}, anybody, metadata})
	}
	for i, r := range table {
		table[i].handler = cfg.guarded(r, requests, bodies)
	}
	return table
}

// guarded is a route's handler behind what its access demands; requests counts those with a token, and bodies their bytes.
func (cfg Config) guarded(r route, requests, bodies *shares) http.Handler {
	switch r.access {
	case anybody:
		return r.handler
	case "":
		panic("web: nobody has said who may follow the route " + r.path)
	}
	inner := boundBodyBytes(bodies, boundRequests(requests, r.handler))
	if r.access != anyToken {
		inner = auth.RequireScope(string(r.access), cfg.Bearer)(inner)
	}
	return auth.RequireBearer(cfg.Verifier, cfg.Bearer)(noteSubject(inner))
}

// router finds the route of a path, exactly as it stands: nothing is cleaned, redirected or guessed, so that no two
// spellings lead to one place by different gates.
type router struct {
	byPath map[string]route
	mcpURL string
	viewer *viewer.Viewer // nil: there is none
	pages  http.Handler   // the viewer's
}

func (cfg Config) router(started time.Time) *router {
	r := &router{byPath: map[string]route{}, mcpURL: cfg.mcpURL(), viewer: cfg.Viewer}
	requests := newShares(cfg.Limits.Requests, cfg.Limits.PerOwner)
	for _, route := range cfg.routes(started, requests) {
		r.byPath[route.path] = route
	}
	if cfg.Viewer != nil { // which has a table of its own, with who may follow what; what its callers hold counts here
		r.pages = cfg.Viewer.Handler(func(next http.Handler) http.Handler { return noteSubject(boundRequests(requests, next)) })
	}
	return r
}

func (rt *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route, found := rt.byPath[r.URL.Path]
	switch {
	case rt.viewer != nil && (!found || r.URL.Path == "/") && rt.viewer.Has(r):
		rt.pages.ServeHTTP(w, r)
	case !found && rt.viewer != nil && rt.viewer.Nowhere(w, r):
	case !found:
		writeError(w, fault.New(fault.NotFound, "there is nothing at this path").
			WithHint("MCP clients connect to %s.", rt.mcpURL))
	case !route.allows(r.Method):
		w.Header().Set("Allow", strings.Join(route.methods, ", "))
		writeErrorStatus(w, http.StatusMethodNotAllowed, fault.New(fault.Invalid, "%s takes %s only", route.path, strings.Join(route.methods, ", ")).
			WithHint("MCP clients connect to %s.", rt.mcpURL))
	default:
		route.handler.ServeHTTP(w, r)
	}
}

// allows reports whether a route takes a method. Where GET may go, HEAD may.
func (r route) allows(method string) bool {
	return r.methods == nil || slices.Contains(r.methods, method) ||
		method == http.MethodHead && slices.Contains(r.methods, http.MethodGet)
}
