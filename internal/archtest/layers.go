package archtest

import (
	"fmt"
	"slices"
	"strings"
)

// A layer says what the packages of a folder may import of ours. A pattern "x/..." stands for x and all below it.
type layer struct {
	folder string // pattern
	may    []string
	why    string
}

// layers is the one direction of imports, from the top down. The first pattern that fits a folder counts.
var layers = []layer{
	{
		"cmd/cellblock-shim", []string{"kernels/shim/...", "kernels/stream", "kernels/wire", "internal/jsontext", "internal/timerslack/..."},
		"the shim is a small static binary beside every kernel; what it links, each kernel pays for",
	},
	{
		"cmd/...", []string{"audit", "auth", "egress", "images/...", "internal/...", "kernels", "kernels/docker", "kernels/local", "kernels/mounts", "mcpserver/...",
			"notebook", "sessions", "sessions/history", "sessions/workspaces", "web/..."},
		"cmd wires everything, but talks to kernels through their Client, never through the shim or the wire",
	},
	{"e2e/...", []string{"..."}, "tests may see everything"},
	{"examples/...", nil, "an example shows what anybody's client can do, so it has only public libraries"},
	{"web/render/...", []string{"web/render/...", "kernels", "internal/..."}, "what outputs look like depends on nothing but them; whose they are is not its business"},
	{
		"web/...", []string{"web/...", "audit", "mcpserver/...", "notebook", "sessions", "sessions/files", "kernels", "auth", "images", "internal/..."},
		"web is the outermost face; engines and kernels' insides are not its business",
	},
	{
		"mcpserver/transport", []string{"internal/..."},
		"the transport carries MCP's messages and knows nothing of sessions or kernels",
	},
	{"mcpserver/htmltext", []string{"internal/..."}, "what a text looks like depends on nothing but it"},
	{"mcpserver/picture", nil, "what fits a model's context depends on nothing but the image"},
	{"mcpserver/terminal", nil, "what a text looks like depends on nothing but it"},
	{
		"mcpserver/...", []string{"mcpserver/...", "audit", "egress", "notebook", "sessions", "sessions/files", "kernels", "kernels/stream", "auth", "images/...", "internal/..."},
		"tools call sessions; what they know of kernels are outputs and events",
	},
	{
		"sessions", []string{"sessions/files", "sessions/workspaces", "egress", "kernels", "kernels/stream", "images", "internal/..."},
		"sessions know owners, not tokens, and kernels, not how they are launched; the Store's contract is theirs, so they " +
			"cannot know who keeps it",
	},
	{"sessions/files", []string{"internal/..."}, "a workspace's files are whoever's; sessions know whose"},
	{"sessions/quota", nil, "a folder's bound is the file system's; sessions know how much and why"},
	{"sessions/workspaces", []string{"sessions/files", "sessions/quota", "kernels", "internal/..."}, "whose a folder is does not depend on what its session does"},
	{
		"sessions/...", []string{"sessions/...", "kernels", "kernels/stream", "images", "internal/..."},
		"sessions know owners, not tokens, and kernels, not how they are launched",
	},
	{"notebook", []string{"kernels", "internal/..."}, "a notebook is made of outputs; whose they are is not its business"},
	{"kernels/wire", []string{"internal/jsontext"}, "framing is pure: bytes in, message out"},
	{"kernels/seccomp", nil, "the filter is numbers; who puts what under it is not its business"},
	{"kernels/stream", []string{"internal/jsontext"}, "server and shim share the stream, so it can know neither"},
	{
		"kernels/shim/...", []string{"kernels/shim/...", "kernels/seccomp", "kernels/stream", "kernels/wire", "internal/jsontext", "internal/timerslack"},
		"the shim stands beside the kernel and has nothing of the server in it",
	},
	{
		"kernels/kernelstest", []string{"kernels/...", "images", "internal/..."},
		"the suite and the fakes may see all of kernels",
	},
	{"kernels", []string{"kernels/stream", "kernels/wire", "internal/..."}, "kernels defines what provisioners implement, so it cannot know them"},
	{
		"kernels/...", []string{"kernels", "kernels/mounts", "kernels/seccomp", "kernels/stream", "internal/..."},
		"a provisioner launches shims and does not speak Jupyter; provisioners do not know each other",
	},
	{"egress", []string{"internal/..."}, "a way out is decided by policy and address; whose cell wants it is told, not known"},
	{"audit", []string{"internal/..."}, "the log says what it is told, and must work when nothing else does"},
	{"auth/...", []string{"auth/...", "internal/..."}, "who calls does not depend on what is called"},
	{"images/...", []string{"images/...", "internal/..."}, "images are described apart from who runs them"},
	{"internal/...", []string{"internal/..."}, "everybody uses internal, so it can use nobody"},
}

// A library says which folders may use a module of others.
type library struct {
	module string
	may    []string
	why    string
}

var libraries = []library{
	{
		"github.com/go-zeromq/zmq4", []string{"kernels/shim/channels"},
		"zmq4 must only be reached behind the guard against hostile peers, and never in the server",
	},
	{"github.com/docker/docker", []string{"kernels/docker"}, "only one provisioner knows the engine's API"},
	{"github.com/mark3labs/mcp-go/server", []string{"mcpserver/..."}, "the MCP server has one face"},
	{"github.com/golang-jwt/jwt", []string{"auth"}, "tokens are read in one place"},
	{"github.com/MicahParks", []string{"auth"}, "tokens are read in one place"},
	{"github.com/prometheus", []string{"web/metrics"}, "what is counted, and under which labels, is decided in one place"},
	{"github.com/zitadel", []string{"web/viewer"}, "people sign in at an identity provider in one place"},
	{"modernc.org/sqlite", []string{"sessions/history"}, "only one store knows SQLite; everybody else knows sessions.Store"},
	{"github.com/alecthomas/chroma", []string{"web/render"}, "hostile text becomes HTML in one place"},
	{"github.com/buildkite/terminal-to-html", []string{"web/render"}, "hostile text becomes HTML in one place"},
	{"github.com/microcosm-cc/bluemonday", []string{"web/render/..."}, "hostile text becomes HTML in one place"},
	{"github.com/yuin/goldmark", []string{"web/render"}, "hostile text becomes HTML in one place"},
	{"github.com/spf13", []string{"cmd/..."}, "only cmd knows flags"},
	{"github.com/knadh/koanf", []string{"cmd/..."}, "only cmd knows where configuration comes from"},
}

// testKits are packages that only tests may import.
var testKits = []string{"kernels/kernelstest", "sessions/storetest", "internal/pipes"}

// CheckImports returns what in files breaks the rules, one sentence each. Tests may import what they like of ours.
func CheckImports(files []File) []string {
	var broken []string
	for _, f := range files {
		if f.Test || fitsAny(f.Folder, testKits) || fits(f.Folder, "e2e/...") {
			continue
		}
		for imported, at := range f.Imports() {
			if problem := checkImport(f.Folder, imported); problem != "" {
				broken = append(broken, at+": "+problem)
			}
		}
	}
	slices.Sort(broken)
	return broken
}

func checkImport(folder, imported string) string {
	if own, ok := strings.CutPrefix(imported, Module+"/"); ok {
		return checkOwn(folder, own)
	}
	for _, l := range libraries {
		if fits(imported, l.module+"/...") && !fitsAny(folder, l.may) {
			return fmt.Sprintf("%s imports %s, which only %s may: %s", folder, imported, strings.Join(l.may, ", "), l.why)
		}
	}
	return ""
}

func checkOwn(folder, own string) string {
	if slices.Contains(testKits, own) {
		return fmt.Sprintf("%s imports %s outside tests: fakes have no place in the program", folder, own)
	}
	for _, l := range layers {
		if !fits(folder, l.folder) {
			continue
		}
		if fitsAny(own, l.may) {
			return ""
		}
		may := "nothing of ours"
		if len(l.may) > 0 {
			may = "only " + strings.Join(l.may, ", ")
		}
		return fmt.Sprintf("%s imports %s, but may import %s: %s", folder, own, may, l.why)
	}
	return fmt.Sprintf("%s has no layer: give the folder its place in internal/archtest/layers.go", folder)
}

// fits tells whether a path is the pattern, or, for "x/...", x or below it; "..." fits all.
func fits(name, pattern string) bool {
	if pattern == "..." {
		return true
	}
	base, below := strings.CutSuffix(pattern, "/...")
	return name == base || below && strings.HasPrefix(name, base+"/")
}

func fitsAny(name string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(name, p) })
}
