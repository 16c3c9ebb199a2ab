package main

import (
	"net"
	"net/netip"
	"slices"
	"testing"
)

// No exception of a profile opens any of these (egress.Config.Listening).
func TestWhereTheServerListens(t *testing.T) {
	callers := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1).To4(), Port: 8787}
	for metrics, want := range map[string][]string{
		"": nil, "127.0.0.1:9090": {"127.0.0.1:9090"}, "0.0.0.0:9090": {"0.0.0.0:9090"}, ":9090": {"[::]:9090"}, "[::1]:9090": {"[::1]:9090"},
	} {
		c := &Config{Metrics: MetricsConfig{Enabled: true, Addr: metrics}}
		var got []string
		for _, at := range c.listens(callers) {
			got = append(got, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String())
		}
		if want = append([]string{"127.0.0.1:8787"}, want...); !slices.Equal(got, want) {
			t.Errorf("metrics at %q: %q, want %q", metrics, got, want)
		}
	}
	if off := (&Config{Metrics: MetricsConfig{Addr: "127.0.0.1:9090"}}).listens(nil); off != nil {
		t.Errorf("metrics are not served, and stdio has no address: %v", off)
	}
}
