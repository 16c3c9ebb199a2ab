package egress

import "net/netip"

// block is a range of addresses that no kernel reaches unless an operator names it.
type block struct {
	net netip.Prefix
	why string
}

func blocks(why string, nets ...string) []block {
	var all []block
	for _, n := range nets {
		all = append(all, block{netip.MustParsePrefix(n), why})
	}
	return all
}

// refused are the ranges that are not public (IANA's registries of special-purpose addresses), and what clouds have put
// elsewhere.
var refused = concat(
	blocks("of cloud metadata", "169.254.169.254/32", "169.254.170.2/32", "168.63.129.16/32", "100.100.100.200/32", "192.0.0.192/32",
		"fd00:ec2::254/128", "fd00:ec2::23/128", "fd20:ce::254/128"),
	blocks("this machine's own", "127.0.0.0/8", "0.0.0.0/8", "::1/128", "::/128"),
	blocks("private", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7", "fec0::/10"),
	blocks("link-local", "169.254.0.0/16", "fe80::/10"),
	blocks("shared by a carrier's customers", "100.64.0.0/10"),
	blocks("multicast or broadcast", "224.0.0.0/4", "255.255.255.255/32", "ff00::/8"),
	blocks("one that stands for another", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.88.99.0/24", "::/96", "::ffff:0:0:0/96"),
	blocks("reserved", "192.0.0.0/24", "192.0.2.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "100::/64"),
)

func concat(groups ...[]block) []block {
	var all []block
	for _, g := range groups {
		all = append(all, g...)
	}
	return all
}

// unicast6 is where all public addresses of IPv6 are.
var unicast6 = netip.MustParsePrefix("2000::/3")

// whyRefused says what kind of address it is that no kernel reaches, or "" for a public one.
func whyRefused(addr netip.Addr) string {
	addr = addr.Unmap()
	if !addr.IsValid() || addr.Zone() != "" {
		return "not a complete one"
	}
	for _, b := range refused {
		if b.net.Contains(addr) {
			return b.why
		}
	}
	if addr.Is6() && !unicast6.Contains(addr) {
		return "reserved"
	}
	return ""
}
