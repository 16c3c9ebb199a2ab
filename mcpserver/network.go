package mcpserver

import (
	"slices"
	"strings"

	"cellblock/egress"
	"cellblock/sessions"
)

// network is what a session's kernel may connect to, for hints.
type network struct {
	mode  egress.Mode
	hosts []string
	// elsewhere are the profiles that have a network, in order.
	elsewhere []string
	// images tells that packages can be got into a session's image, host that kernels run in none and have the host's packages.
	images, host bool
}

func networkOf(cfg sessions.Config, profile string) network {
	n := network{}
	if p := cfg.Profiles[profile].Network; p.Open() {
		n.mode, n.hosts = p.Mode, p.Hosts
	}
	for name, p := range cfg.Profiles {
		if p.Network.Open() {
			n.elsewhere = append(n.elsewhere, name)
		}
	}
	slices.Sort(n.elsewhere)
	return n
}

// noSuchHost is what the way out says of a name that has no address, and tunnelFailed what curl alone says of anything that the way out
// could not do.
const (
	noSuchHost   = "cellblock: there is no host "
	tunnelFailed = "CONNECT tunnel failed, response 502"
)

// hint is for what failed because of the network, with what was said. A profile is not to blame where the way out itself has none.
func (n network) hint(said string) string {
	switch {
	case n.mode != "" && strings.Contains(said, egress.Unresolved):
		return "The server, through which the kernel connects, cannot resolve this name now. If it resolves no other either, its machine is offline " +
			"or its DNS does not answer, which no code or profile mends, but its operator: use what is in the workspace meanwhile."
	case n.mode != "" && strings.Contains(said, noSuchHost):
		return ""
	case n.mode != "" && strings.Contains(said, tunnelFailed):
		return "The server, through which the kernel connects, did not get there: curl -v says behind the status whether the host is unknown, silent, or no name is resolved now."
	}
	switch n.mode {
	case egress.Internet:
		return "The session's network leads to public addresses and those that the operator allows (network.private), through the proxy that HTTP_PROXY names."
	case egress.Hosts:
		return "The session's network leads to " + strings.Join(n.hosts[:min(len(n.hosts), 12)], ", ") + " and nowhere else, through the proxy that HTTP_PROXY names; " +
			"where an address is not public, the operator must allow it, too (network.private)."
	}
	return "The kernel has no network: use data that is in the workspace or that installed packages bring along." + n.alternative()
}

// alternative says which profiles have a network.
func (n network) alternative() string {
	if len(n.elsewhere) == 0 {
		return ""
	}
	return " A new session has a network with the profile " + strings.Join(n.elsewhere, " or ") + "."
}

// missing is for a package that is not there: how it is installed, or what to use instead.
func (n network) missing(name, install, instead string) string {
	if n.mode != "" {
		return name + " is not installed: try " + install + "."
	}
	return name + " is not installed, and the kernel has no network to install it: use what is " + instead +
		". " + n.imageHint() + n.alternative()
}
