package viewer

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// FuzzRequests has a person who may do everything with a session send any query and any body to each of the viewer's addresses: the
// answer is never that the server has failed.
func FuzzRequests(f *testing.F) {
	addresses := []string{"GET /", "GET /images", "POST /sessions", "POST /s/a/interrupt", "POST /s/a/restart", "POST /s/a/run", "POST /s/a/restore", "POST /s/a/answer",
		"POST /s/a/complete", "POST /s/a/inspect", "GET /s/a/earlier", "GET /s/a/cells", "GET /s/a/cells/1", "GET /s/a/cells/1/items/x", "GET /s/a/cells/1/outputs/0",
		"GET /s/a/cells/1/outputs/0/frame", "GET /s/a/files", "GET /s/a/preview", "GET /s/a/picture", "GET /s/a/download", "POST /s/a/upload", "POST /s/a/uploaded", "POST /s/a/delete",
		"GET /s/a/variables", "GET /s/a/details", "GET /s/a/notebook", "GET /signin", "POST /signin", "GET /signin/callback"}
	seeds := [][2]string{{"", ""}, {"before=1&after=-1&from=x", "{}"}, {"path=../x&word=w&offset=9223372036854775807", `{"code":"1","language":"python","number":-1}`},
		{"path=%00&path=a&at=1e9", `{"path":"..","word":"/","size":-1}`}, {"%zz=1;a", `{"code":1}`}, {"q=a&limit=0", `{"id":"../b","language":"","image":"x","profile":"y"}{}`},
		{"code=x&state=y&error=z", "code=x&"}}
	for i := range addresses {
		seed := seeds[i%len(seeds)]
		f.Add(uint8(i), seed[0], seed[1])
	}
	b := newPages(f).signIn("anna", all...)
	b.ran("anna", "a", "print hello")
	f.Fuzz(func(t *testing.T, address uint8, query, body string) {
		at := addresses[int(address)%len(addresses)]
		method, path, _ := strings.Cut(at, " ")
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
