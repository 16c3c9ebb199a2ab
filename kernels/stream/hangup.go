package stream

import (
	"io"
	"net"
	"time"
)

// HangUp closes a connection once the other end has dealt with all that was written to it: it ends its own direction, as a
// TCP connection's CloseWrite does, and throws away what comes until the other has closed too, for at most limit. A connection
// that cannot be closed in one direction alone is closed at once. Nobody else may read meanwhile.
//
// A close alone is not enough. What was written just before it may reach a shim after the next connection's Hello, and an
// engine between the two may drop it.
func HangUp(conn net.Conn, limit time.Duration) error {
	half, ok := conn.(interface{ CloseWrite() error })
	if ok && conn.SetDeadline(time.Now().Add(limit)) == nil && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, conn)
	}
	return conn.Close()
}
