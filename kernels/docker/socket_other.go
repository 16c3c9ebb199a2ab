//go:build !linux

package docker

import (
	"context"
	"net"

	"cellblock/internal/fault"
)

// dialSocket exists on Linux only: elsewhere the engine runs in a virtual machine, which shares folders but no sockets.
func dialSocket(context.Context, string, string) (net.Conn, error) {
	return nil, errNoSockets
}

func listenIn(string, string) (listeningSocket, error) { return nil, errNoSockets }

var errNoSockets = fault.New(fault.Unavailable, "a container's socket cannot be reached from this system").
	WithHint("Use the carrier stdio.")

func refused(error) bool { return false }
