package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"cellblock/kernels/kernelstest"
)

// npmPackage is a package as npm's registry serves it: its document, and its archive.
func npmPackage(t *testing.T, name, version, code string) (document func(registry string) string, archive []byte) {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, f := range [][2]string{
		{"package/package.json", fmt.Sprintf(`{"name": %q, "version": %q, "main": "index.js"}`, name, version)}, {"package/index.js", code},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f[0], Mode: 0o644, Size: int64(len(f[1]))}); err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte(f[1])) // into memory
	}
	if w.Close() != nil || z.Close() != nil {
		t.Fatal("the archive could not be written")
	}
	sum := sha512.Sum512(b.Bytes())
	return func(registry string) string {
		return fmt.Sprintf(`{"name": %[1]q, "dist-tags": {"latest": %[2]q}, "versions": {%[2]q: {"name": %[1]q, "version": %[2]q,
			"dist": {"tarball": "%[3]s/%[1]s/-/%[1]s-%[2]s.tgz", "integrity": "sha512-%[4]s"}}}}`, name, version, registry, base64.StdEncoding.EncodeToString(sum[:]))
	}, b.Bytes()
}

// npmRegistry is a host outside that has one package. It tells which paths it was asked for.
func npmRegistry(t *testing.T) *outside {
	t.Helper()
	document, archive := npmPackage(t, "cbfar", "1.0.0", "module.exports = () => 'far away'")
	o := &outside{}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /hello", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s", r.URL.Query().Get("name")) })
	mux.HandleFunc("GET /cbfar", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, document(o.plain.URL))
	})
	mux.HandleFunc("GET /cbfar/-/", func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write(archive) })
	o.plain, o.secure = httptest.NewUnstartedServer(mux), httptest.NewUnstartedServer(mux)
	for _, s := range []*httptest.Server{o.plain, o.secure} {
		s.Listener.Close()
		var err error
		if s.Listener, err = net.Listen("tcp", hostAddress+":0"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
	}
	o.plain.Start()
	o.secure.StartTLS()
	o.serveRaw(t)
	return o
}

// Cells of JavaScript fetch, and npm installs into the session's workspace, through the proxy and by its rules alone.
func TestNetworkOfNode(t *testing.T) {
	o := npmRegistry(t)
	s := start(t, "docker", "--pool-size", "0", "--config", networkConfig(t, o))
	c := s.Connect(t, s.Token(t), false)
	kernelstest.Need(t, slices.Contains(c.ToolNames(t), "execute_javascript"), "the image cellblock-node")
	got := call(t, c, "execute_javascript", map[string]any{"session_id": "n", "profile": "far", "timeout_seconds": 600, "code": fmt.Sprintf(`
const get = (url) => fetch(url).then((r) => r.text(), () => 'no way')
console.log([await get(%[1]q + '/hello?name=fetch'), await get('http://pypi.example/'), await get('https://pypi.example/')])
const { spawnSync } = require('node:child_process')
const npm = (registry) => { const r = spawnSync('npm', ['install', '--registry', registry, '--no-audit', '--no-fund', '--fetch-retries=0', 'cbfar'], { encoding: 'utf8' }); return r.status + r.stdout + r.stderr }
console.log(npm(%[1]q))
console.log(require('cbfar')())
console.log(npm('http://pypi.example/'))`, o.plain.URL)})
	wantText(t, got.Text, "[ 'hello fetch', 'no way', 'no way' ]", "0\nadded 1 package", "far away", "403")
}
