package egress

import (
	"net/netip"
	"strings"
	"testing"

	"cellblock/internal/fault"
)

func rules(t *testing.T, p Policy) *Rules {
	t.Helper()
	r, err := p.Compile()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckHost(t *testing.T) {
	named := rules(t, Policy{Mode: Hosts, Private: []string{"10.1.2.3"}, Hosts: []string{
		"pypi.org", "*.Example.COM", "db.example.net:5432", "10.1.2.3:22", "[2606:4700::1]:443", "bücher.example", "_srv.example.org.",
	}})
	for _, tt := range []struct {
		host string
		port uint16
		want string // "": refused
	}{
		{"pypi.org", 443, "pypi.org"},
		{"PyPI.org.", 80, "pypi.org"},
		{"files.pypi.org", 443, ""},
		{"notpypi.org", 443, ""},
		{"pypi.org.evil.test", 443, ""},
		{"a.example.com", 1, "a.example.com"},
		{"b.a.example.com", 65535, "b.a.example.com"},
		{"example.com", 443, ""},
		{"badexample.com", 443, ""},
		{".example.com", 443, ""},
		{"a..example.com", 443, ""},
		{"db.example.net", 5432, "db.example.net"},
		{"db.example.net", 22, ""},
		{"10.1.2.3", 22, "10.1.2.3"},
		{"::ffff:10.1.2.3", 22, "10.1.2.3"},
		{"10.1.2.3", 80, ""},
		{"2606:4700:0::1", 443, "2606:4700::1"},
		{"fe80::1%eth0", 443, ""},
		{"BÜCHER.example", 443, "xn--bcher-kva.example"},
		{"_srv.example.org", 443, "_srv.example.org"},
		{"pypi.org", 0, ""},
		{"", 443, ""},
		{".", 443, ""},
		{"pypi.org\x00.evil.test", 443, ""},
		{"pypi.org/", 443, ""},
		{"a@pypi.org", 443, ""},
		{strings.Repeat("a.", 200) + "example.com", 443, ""},
	} {
		got, err := named.CheckHost(tt.host, tt.port)
		if got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q port %d: %q, %v; want %q", tt.host, tt.port, got, err, tt.want)
		}
	}
	for _, closed := range []*Rules{nil, rules(t, Policy{}), rules(t, Policy{Mode: None, Private: []string{"127.0.0.1"}})} {
		if _, err := closed.CheckHost("pypi.org", 443); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("no network: %v", err)
		}
		for _, at := range []string{"1.1.1.1:443", "127.0.0.1:80"} {
			if err := closed.CheckAddress(netip.MustParseAddrPort(at)); fault.KindOf(err) != fault.Forbidden {
				t.Errorf("no network: %s: %v", at, err)
			}
		}
	}
	if name, err := rules(t, Policy{Mode: Internet}).CheckHost("anything.test", 7); name != "anything.test" || err != nil {
		t.Errorf("internet: %q, %v", name, err)
	}
}

// Other programs read these as addresses: an upstream proxy would.
func TestAddressesInOtherWordsAreNoHosts(t *testing.T) {
	all := rules(t, Policy{Mode: Internet})
	for _, host := range []string{"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.1.", "169.254.43518", "0xA9.0xfe.0xa9.0xfe", "１２７.０.０.１", "a.1", "0x"} {
		if name, err := all.CheckHost(host, 80); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q is taken for the name %q: %v", host, name, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "1.example.com", "0x7f.example.com", "3com", "a.0x1g"} {
		if _, err := all.CheckHost(host, 80); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
}

func TestCompileRefusesWhatIsWrong(t *testing.T) {
	for _, tt := range []struct {
		policy Policy
		want   string
	}{
		{Policy{Mode: "internt"}, `"internt" is not one of none, hosts, internet` + "\nHint: Did you mean internet?"},
		{Policy{Mode: Hosts}, "network: the mode hosts needs at least one host\nHint: Name"},
		{Policy{Mode: Internet, Hosts: []string{"a.test"}}, "in the mode hosts alone, and the mode is internet\nHint: Write mode: hosts"},
		{Policy{Hosts: []string{"a.test"}}, "in the mode hosts alone, and the mode is none"},
		{Policy{Mode: Hosts, Hosts: []string{"*"}}, `"*" is not a host`},
		{Policy{Mode: Hosts, Hosts: []string{"*.com"}}, `"*.com" is not a host`},
		{Policy{Mode: Hosts, Hosts: []string{"a.*.com"}}, "is not a host"},
		{Policy{Mode: Hosts, Hosts: []string{"https://pypi.org"}}, "address of the web"},
		{Policy{Mode: Hosts, Hosts: []string{"pypi.org:0"}}, "no port"},
		{Policy{Mode: Hosts, Hosts: []string{"pypi.org/simple"}}, "is not a host"},
		{Policy{Mode: Hosts, Hosts: []string{"*.10.0.0.1"}}, "is not a host"},
		{Policy{Mode: Hosts, Hosts: []string{"10.0.0.1:80"}}, "private does not name it"},
		{Policy{Mode: Internet, Private: []string{"intranet.test"}}, "not an address or a network"},
		{Policy{Mode: Internet, Private: []string{"10.0.0.1/8"}}, "not an address or a network"},
		{Policy{Mode: Internet, Private: []string{"fe80::1%eth0"}}, "not an address or a network"},
	} {
		if _, err := tt.policy.Compile(); err == nil || fault.KindOf(err) != fault.Invalid || !strings.Contains(fault.Text(err), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.policy, err, tt.want)
		}
	}
}

func TestCheckAddress(t *testing.T) {
	internet := rules(t, Policy{Mode: Internet})
	for _, addr := range []string{
		"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "169.254.1.1", "169.254.169.254",
		"169.254.170.2", "168.63.129.16", "100.64.0.1", "100.100.100.200", "192.0.0.192", "192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7",
		"203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::2", "::7f00:1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:10.0.0.1", "::ffff:0:7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::1.1.1.1", "64:ff9b:1::1",
		"2002:7f00:1::", "2002:a9fe:a9fe::1", "2001::1", "2001:0:53aa::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "3fff::1", "5f00::1", "100::1", "fc00::1", "fd00:ec2::254",
		"fd12:3456::1", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "4000::1", "8000::1",
	} {
		if err := internet.CheckAddress(netip.AddrPortFrom(netip.MustParseAddr(addr), 443)); fault.KindOf(err) != fault.Forbidden {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for _, addr := range []string{"1.1.1.1", "8.8.8.8", "::ffff:9.9.9.9", "172.15.0.1", "172.32.0.1", "100.63.255.255", "100.128.0.1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1", "223.255.255.255"} {
		if err := internet.CheckAddress(netip.AddrPortFrom(netip.MustParseAddr(addr), 443)); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	if internet.CheckAddress(netip.AddrPort{}) == nil {
		t.Error("no address at all is allowed")
	}
}

func TestExceptions(t *testing.T) {
	r := rules(t, Policy{Mode: Internet, Private: []string{"10.1.2.3:5432", "192.168.0.0/16", "[fd00::1]:80", "::ffff:172.16.0.9"}})
	for at, want := range map[string]bool{
		"10.1.2.3:5432": true, "[::ffff:10.1.2.3]:5432": true, "10.1.2.3:22": false, "10.1.2.4:5432": false, "192.168.7.7:1": true, "192.169.0.1:1": true,
		"[fd00::1]:80": true, "[fd00::1]:81": false, "[fd00::2]:80": false, "172.16.0.9:9": true, "127.0.0.1:5432": false,
		"[fd00::1%eth0]:80": false,
	} {
		if err := r.CheckAddress(netip.MustParseAddrPort(at)); (err == nil) != want {
			t.Errorf("%s: %v", at, err)
		}
	}
}
