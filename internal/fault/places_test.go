package fault_test

import (
	"errors"
	"testing"

	"cellblock/internal/fault"
)

func TestWithoutPlaces(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"an engine's address", "the container engine at tcp://10.1.2.3:2375 does not answer", "the container engine at … does not answer"},
		{"with what follows", "at tcp://engine.internal:2375: no", "at …: no"},
		{"of IPv6", "at tcp://[fd00::1]:2375 there", "at … there"},
		{"an engine's socket", "at unix:///var/run/docker.sock does", "at …/docker.sock does"},
		{"a request", `Get "http://10.1.2.3:2375/v1.47/info": no`, `Get "…": no`},
		{"a connection", "dial tcp 10.1.2.3:2375: i/o timeout", "dial: i/o timeout"},
		{"two ends", "read tcp 10.1.2.4:40000->10.1.2.3:2375: connection reset by peer", "read: connection reset by peer"},
		{"a name", "dial tcp: lookup engine.internal on 10.0.0.2:53: no such host", "lookup: no such host"},
		{"a file", "the disk is full (write /var/lib/cellblock/blobs/c0/new-1: no space left on device)",
			"the disk is full (write …/new-1: no space left on device)"},
		{"a socket's two ends", "write unix @->/run/user/1000/docker.sock: broken pipe", "write unix @->…/docker.sock: broken pipe"},
		{"folders in a row", "not below [/srv/data /mnt/models]", "not below […/data …/models]"},
		{"an image", "no image registry.example:5000/team/python:3", "no image registry.example:5000/team/python:3"},
		{"none", "it did not come up within 10 s: read on", "it did not come up within 10 s: read on"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			whole := fault.New(fault.Unavailable, "%s", tt.text).WithHint("Do it: %s.", tt.text)
			err := fault.WithoutPlaces(whole)
			if err.Error() != tt.want || fault.Hint(err) != "Do it: "+tt.want+"." || fault.KindOf(err) != fault.Unavailable || !errors.Is(err, whole) {
				t.Errorf("WithoutPlaces(%q) = %q, want %q", fault.Text(whole), fault.Text(err), tt.want)
			}
		})
	}
	if fault.WithoutPlaces(nil) != nil {
		t.Error("no error has become one")
	}
}
