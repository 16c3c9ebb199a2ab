package viewer

import (
	"slices"
	"testing"

	"cellblock/kernels"
	"cellblock/sessions"
)

// The panel says what a session's kernels can get at besides their workspace.
func TestReachOf(t *testing.T) {
	var none, internet, hosts sessions.Profile
	internet.Network.Mode = "internet"
	hosts.Network.Mode, hosts.Network.Hosts = "hosts", []string{"a.example", "b:5432"}
	for want, p := range map[string]sessions.Profile{"none": none, "internet": internet, "a.example, b:5432": hosts} {
		p.Mounts = []kernels.Mount{{Target: "/data"}, {Target: "/out", Writable: true}}
		if got := reachOf(p); !slices.Equal(got, []detail{{Name: "Network", Value: want}, {Name: "/data", Value: "read-only"}, {Name: "/out", Value: "writable"}}) {
			t.Errorf("%s: %+v", want, got)
		}
	}
}
