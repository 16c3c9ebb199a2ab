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

// hint is for what failed because of the network.
func (n network) hint() string {
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

// imageHint says how packages get into a kernel's image.
func (n network) imageHint() string {
	switch {
	case n.images:
		return "install_package gets further ones into the session's image."
	case n.host:
		return "Other packages are installed on the server's host, by its operator."
	}
	return "Other packages come with the kernels' image, which is the operator's."
}

// installHint is for a program that could install nothing.
func (n network) installHint() string {
	if n.mode != "" {
		return ""
	}
	return "Nothing can be installed, as the kernel has no network: use what is there (importlib.metadata.distributions() " +
		"lists it), or put a pure Python module into the workspace. " + n.imageHint() + n.alternative()
}
