package egress

import (
	"net/netip"
	"strconv"
	"strings"

	"cellblock/internal/fault"
)

// Rules are a Policy that has been checked. They never change. Those of nil allow nothing.
type Rules struct {
	mode    Mode
	hosts   []pattern
	private []exception
}

// CheckHost tells whether a name or address, as a client wrote it, may be connected to, and returns it as it is to be resolved.
// What it resolves to is for CheckAddress to decide. The error is Forbidden, or Invalid for what is no host.
func (r *Rules) CheckHost(host string, port uint16) (string, error) {
	name, err := normalHost(host)
	switch {
	case err != nil || port == 0:
		return "", fault.New(fault.Invalid, "there can be no host of this name and port")
	case r == nil || r.mode == None:
		return "", fault.New(fault.Forbidden, "this session's profile has no network")
	case r.mode == Internet:
		return name, nil
	}
	for _, h := range r.hosts {
		if h.fits(name, port) {
			return name, nil
		}
	}
	return "", fault.New(fault.Forbidden, "%s port %d is not among the hosts that this session's profile may connect to", name, port).
		WithHint("Those are %s.", r.named())
}

// maxNamed is how many hosts an error names.
const maxNamed = 12

// named lists the hosts that may be connected to.
func (r *Rules) named() string {
	var names []string
	for _, h := range r.hosts[:min(len(r.hosts), maxNamed)] {
		names = append(names, h.String())
	}
	if more := len(r.hosts) - maxNamed; more > 0 {
		names = append(names, strconv.Itoa(more)+" more")
	}
	return strings.Join(names, ", ")
}

// CheckAddress tells whether an address may be connected to. The error is Forbidden.
func (r *Rules) CheckAddress(at netip.AddrPort) error {
	addr := at.Addr().Unmap()
	if r != nil && r.excepts(addr, at.Port()) {
		return nil
	}
	if why := whyRefused(addr); why != "" {
		return fault.New(fault.Forbidden, "the address %s is %s", addr, why).
			WithHint("Sessions reach public addresses, and others only where the operator names them.")
	}
	if r == nil || r.mode == None {
		return fault.New(fault.Forbidden, "this session's profile has no network")
	}
	return nil
}

func (r *Rules) excepts(addr netip.Addr, port uint16) bool {
	if r.mode == None || addr.Zone() != "" {
		return false
	}
	for _, e := range r.private {
		if e.net.Contains(addr) && (e.port == 0 || e.port == port) {
			return true
		}
	}
	return false
}
