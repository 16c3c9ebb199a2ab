package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"cellblock/internal/request"
)

// A refused token is logged as the client's, not the proxy's, and under the name that the client was given.
func TestARefusalIsLoggedAsTheClients(t *testing.T) {
	s := newSite(t, func(c *Config) { c.Proxies = []netip.Prefix{netip.MustParsePrefix("192.0.2.1/32")} })
	got := s.ask("POST", "/mcp", "{}", "Authorization", "Bearer nonsense", "X-Forwarded-For", "198.51.100.9")
	id := got.Header().Get("X-Request-Id")
	for line := range strings.Lines(s.log.String()) {
		if strings.Contains(line, "request refused") {
			if !strings.Contains(line, "client=198.51.100.9 ") || !strings.Contains(line, "request="+id+" ") || strings.Contains(line, "192.0.2.1") {
				t.Errorf("%s", line)
			}
			return
		}
	}
	t.Errorf("status %d, and nothing of it in\n%s", got.Code, s.log)
}

func TestWhoseARequestIs(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for name, tt := range map[string]struct {
		from, says, proto string
		want              string
		secure            bool
	}{
		"directly":                        {"192.0.2.1:5", "", "", "192.0.2.1", false},
		"directly, and claims another":    {"192.0.2.1:5", "198.51.100.9", "https", "192.0.2.1", false},
		"by a proxy":                      {"10.1.2.3:5", "198.51.100.9", "https", "198.51.100.9", true},
		"by a proxy, over http":           {"10.1.2.3:5", "198.51.100.9", "http", "198.51.100.9", false},
		"by a proxy that says nothing":    {"10.1.2.3:5", "", "", "10.1.2.3", false},
		"by two proxies":                  {"10.1.2.3:5", "198.51.100.9, 10.9.9.9", "https", "198.51.100.9", true},
		"the client made up one before":   {"10.1.2.3:5", "127.0.0.1, 198.51.100.9", "", "198.51.100.9", false},
		"the client made up two protos":   {"10.1.2.3:5", "198.51.100.9", "https, http", "198.51.100.9", false},
		"something that is no address":    {"10.1.2.3:5", "evil, 10.9.9.9", "", "10.9.9.9", false},
		"by a proxy over IPv6":            {"[fd00::1]:5", "2001:db8::7", "https", "2001:db8::7", true},
		"by a proxy that tells the port":  {"10.1.2.3:5", "198.51.100.9:4711", "https", "198.51.100.9", true},
		"over IPv6, with the port":        {"[fd00::1]:5", "[2001:db8::7]:4711, [fd00::2]:80", "https", "2001:db8::7", true},
		"a proxy's IPv4 address as IPv6":  {"[::ffff:10.1.2.3]:5", "198.51.100.9", "https", "198.51.100.9", true},
		"a stranger close to the network": {"11.0.0.1:5", "198.51.100.9", "https", "11.0.0.1", false},
		"no address at all":               {"@", "198.51.100.9", "https", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			var got request.Info
			var left http.Header
			h := nameClients(proxies, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				got, left = request.FromContext(r.Context()), r.Header
			}))
			r := httptest.NewRequest("GET", "/", nil)
			r.RemoteAddr = tt.from
			for name, value := range map[string]string{"X-Forwarded-For": tt.says, "X-Forwarded-Proto": tt.proto, "X-Forwarded-Host": "evil.example", "Forwarded": "for=1.1.1.1"} {
				if value != "" {
					r.Header.Set(name, value)
				}
			}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if got.Address != tt.want || got.ID == "" || rec.Header().Get("X-Request-Id") != got.ID {
				t.Errorf("%+v", got)
			}
			if secure := rec.Header().Get("Strict-Transport-Security") != ""; secure != tt.secure {
				t.Errorf("secure: %v", secure)
			}
			if len(left) != 0 {
				t.Errorf("what the headers said goes on: %v", left)
			}
		})
	}
}
