package docker

import (
	"context"
	"net"
)

// carrier is one kernel's way for its shim's stream.
type carrier interface {
	// dial opens a new connection, which ends the one before.
	dial(ctx context.Context) (net.Conn, error)
	// prepare is called when the container exists and has not been started.
	prepare(ctx context.Context) error
	// await is called once it has been. It returns when dial can work, or when ctx ends; the caller ends ctx when the
	// container does.
	await(ctx context.Context) error
	// endsWithShim tells whether a connection is sure to end as soon as the shim has.
	endsWithShim() bool
	// log returns what the shim wrote to its stderr as far as it came by here, "" if it goes to the engine's log.
	log() string
	// remove deletes what the carrier keeps on the host. The kernel is gone.
	remove() error
}
