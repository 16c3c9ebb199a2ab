// Package loopback tells this machine's own addresses from others.
package loopback

import (
	"net/netip"
	"strings"
)

// Is tells whether a host, without a port, is this machine by name or address. A name that merely resolves to it is not.
func Is(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback()
}
