package transport

import (
	"net/url"
	"strings"
	"testing"

	"cellblock/internal/loopback"
)

// FuzzOrigin asks a guard that knows one page's origin about any other: only those of that page, and of this machine, get in.
func FuzzOrigin(f *testing.F) {
	for _, seed := range []string{"https://page.example", "https://page.example:443", "HTTPS://PAGE.example/", "https://page.example.evil.test", "https://page.example@evil.test", "http://localhost:1",
		"http://[::1]:8787", "http://127.0.0.1.evil.test", "null", "", "https://page.example\\@evil.test", "http://[::ffff:127.0.0.1]", "http://[::1%25lo]", "file://localhost"} {
		f.Add(seed)
	}
	guard := NewGuard([]string{"https://page.example"}, nil)
	f.Fuzz(func(t *testing.T, origin string) {
		if !guard.AllowsOrigin(origin) {
			return
		}
		normal, host, ok := parseOrigin(origin)
		if !ok || normal != "https://page.example" && !loopback.Is(host) {
			t.Fatalf("%q gets in as %q, host %q", origin, normal, host)
		}
		if again, _, ok := parseOrigin(normal); !strings.Contains(host, "%") && (!ok || again != normal) {
			t.Errorf("%q is %q, and that %q", origin, normal, again)
		}
		if u, err := url.Parse(origin); err != nil || !strings.EqualFold(u.Hostname(), host) {
			t.Errorf("%q: %v, host %q", origin, err, host)
		}
	})
}
