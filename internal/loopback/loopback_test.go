package loopback

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LocalHost": true, "127.0.0.1": true, "127.8.9.10": true, "::1": true, "::ffff:127.0.0.1": true,
		"": false, "localhost.": false, "localhost.example": false, "127.0.0.1.example": false, "0.0.0.0": false, "::": false,
		"10.0.0.1": false, "127.0.0.1:80": false, "[::1]": false, "2130706433": false, "127.1": false, "0x7f.0.0.1": false,
	} {
		if got := Is(host); got != want {
			t.Errorf("%q: %v", host, got)
		}
	}
}
