package main

import (
	"os"
	"path/filepath"
	"testing"

	"cellblock/internal/fault"
)

// Whatever stands in a configuration file, it is a configuration that holds or an error that says what is wrong.
func FuzzConfigFile(f *testing.F) {
	for _, seed := range []string{"", "addr: 127.0.0.1:0\n", "audit: {required: true}\n", "profiles: {session: {memory: 1GB, cpus: 0.5}}\n",
		"mount_roots: [/]\nprofiles: {lab: {mounts: [{source: /srv, target: /data}], devices: [/dev/null], network: {mode: hosts, hosts: [a.example]}}}\n",
		"trusted_proxies: [10.0.0.0/8, x]\n", "http: {max_requests: 1}\n", "a: &a [*a]\n", "? [x]\n: y\n", "addr: [\n", "\xff", "1: 2\n", "[]", "null", "log: {level: 1e309}\n",
		"sessions: {max: .inf}\n", "timeout: {max: -9223372036854775808h}\n", "pool_size: 99999999999999999999\n", "docker: {host: 'env:HOME'}\n", "languages: {python: {idle_timeout: null}}\n",
		"images: {python: [1]}\n", "tls: {cert: a}\n", "addr.x: y\n", "public_url: 'http://[::1'\n"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "config.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cfg, err := loadConfig(sources{named: path})
		switch {
		case err != nil && fault.KindOf(err) != fault.Invalid:
			t.Errorf("%q: %v", text, err)
		case err != nil:
			return
		case cfg.Addr == "" || !filepath.IsAbs(cfg.DataDir) || cfg.KernelUID <= 0 || cfg.Timeout.Default <= 0 || cfg.PoolSize < 0 || cfg.Sessions.Max < 0:
			t.Errorf("%q is accepted: %+v", text, cfg)
		}
	})
}
