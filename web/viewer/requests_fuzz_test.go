package viewer

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"cellblock/mcpserver"
)

// FuzzRequests has a person who may do everything with a session send any query and any body to each of the viewer's addresses: the
// answer is never that the server has failed.
func FuzzRequests(f *testing.F) {
	scopes := append(slices.Clone(all), mcpserver.ScopeImages)
	variables := strings.NewReplacer("{id}", "a", "{number}", "1", "{key}", "x", "{index}", "0", "{digest}", "x", "{name}", "app.css", "{$}", "")
	b := newPages(f).signIn("anna", scopes...)
	b.ran("anna", "a", "print hello")
	var addresses []string
	for _, r := range b.viewer.table {
		if r.pattern != "GET /live" { // it goes on
			addresses = append(addresses, variables.Replace(r.pattern))
		}
	}
	seeds := [][2]string{{"", ""}, {"before=1&after=-1&from=x", "{}"}, {"path=../x&word=w&offset=9223372036854775807", `{"code":"1","language":"python","number":-1}`},
		{"path=%00&path=a&at=1e9", `{"path":"..","word":"/","size":-1}`}, {"%zz=1;a", `{"code":1}`}, {"q=a&limit=0", `{"id":"../b","language":"","image":"x","profile":"y"}{}`},
		{"code=x&state=y&error=z", "code=x&"}}
	for i := range addresses {
		seed := seeds[i%len(seeds)]
		f.Add(uint8(i), seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, address uint8, query, body string) {
		at := addresses[int(address)%len(addresses)]
		method, path, _ := strings.Cut(at, " ")
		b := b
		if path == "/signout" || path == "/s/a/close" { // nothing is left behind these
			b = newPages(t).signIn("anna", scopes...)
			b.ran("anna", "a", "print hello")
		}
		r := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, strings.NewReader(body))
		r.URL.RawQuery = query
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		r.Header.Set(csrfHeader, b.csrf)
		r.AddCookie(&http.Cookie{Name: b.viewer.cookie, Value: b.secret})
		w := httptest.NewRecorder()
		if b.handler.ServeHTTP(w, r); w.Code >= 500 && w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s?%s with %q: %d %s", at, query, body, w.Code, w.Body)
		}
	})
}
