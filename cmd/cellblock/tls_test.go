package main

import (
	"net"
	"testing"

	"cellblock/auth"
	"cellblock/internal/fault"
)

func TestDevModeStaysOffTheNetwork(t *testing.T) {
	dev, err := auth.ConfigFromEnv(nil)
	if err != nil {
		t.Fatal(err)
	}
	for addr, want := range map[string]bool{
		"127.0.0.1:8787": true, "localhost:0": true, "[::1]:8787": true, "127.9.9.9:1": true,
		"0.0.0.0:8787": false, ":8787": false, "[::]:8787": false, "192.0.2.1:8787": false, "host.example:8787": false, "localhost.example:1": false,
	} {
		if err := checkDevAddr(dev, &Config{Addr: addr}); (err == nil) != want || err != nil && fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", addr, err)
		}
		if err := checkDevAddr(dev, &Config{Addr: addr, DevAllowRemote: true}); err != nil {
			t.Errorf("%s, and it is allowed: %v", addr, err)
		}
	}
}

func TestWhereAServerWithTLSIsFound(t *testing.T) {
	at := &net.TCPAddr{IP: net.IPv4zero, Port: 8443}
	for _, tt := range []struct {
		cfg  Config
		want string
	}{
		{Config{}, "http://127.0.0.1:8443/mcp"},
		{Config{PublicURL: "https://cells.example.com"}, "http://127.0.0.1:8443/mcp"}, // a proxy has the certificate
		{Config{TLS: TLSConfig{Cert: "c"}}, "https://127.0.0.1:8443/mcp"},
		{Config{TLS: TLSConfig{Cert: "c"}, PublicURL: "https://cells.example.com"}, "https://cells.example.com/mcp"},
	} {
		if got := tt.cfg.localURL(at); got != tt.want {
			t.Errorf("%+v: %s", tt.cfg, got)
		}
	}
}

func TestSettingsOfWhoGetsInAreChecked(t *testing.T) {
	good := Config{Audit: AuditConfig{Enabled: true, MaxBytes: 64 << 20}, Calls: CallsConfig{600, 100}, TrustedProxies: []string{"10.0.0.0/8", "::1", "192.0.2.1"}}
	if err := good.checkAccess(); err != nil {
		t.Error(err)
	}
	networks, err := good.proxies()
	if err != nil || len(networks) != 3 || networks[1].String() != "::1/128" {
		t.Errorf("%v, %v", networks, err)
	}
	for name, spoil := range map[string]func(*Config){
		"half a pair":         func(c *Config) { c.TLS.Key = "k" },
		"tiny files":          func(c *Config) { c.Audit.MaxBytes = 100 },
		"required and off":    func(c *Config) { c.Audit.Required, c.Audit.Enabled = true, false },
		"no burst":            func(c *Config) { c.Calls.Burst = 0 },
		"fewer than none":     func(c *Config) { c.Calls.PerMinute = -1 },
		"a name of a proxy":   func(c *Config) { c.TrustedProxies = []string{"proxy.example"} },
		"a network too large": func(c *Config) { c.TrustedProxies = []string{"10.0.0.0/33"} },
	} {
		bad := good
		spoil(&bad)
		if err := bad.checkAccess(); fault.KindOf(err) != fault.Invalid || fault.Hint(err) == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if good.limiter(true) != nil || good.limiter(false) == nil {
		t.Error("the limit of calls is one of dev mode, or of no mode")
	}
}
