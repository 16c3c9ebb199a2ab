package egress

import (
	"context"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// copySize is how much is read of a connection at once, in bytes.
	copySize = 16 << 10
	// lingering is how long a program may go on sending when the host has said its last.
	lingering = time.Minute
)

// join leads everything from each of two connections to the other, the program's and the host's, until both directions have
// ended or ctx has, and closes both.
func join(ctx context.Context, program, host net.Conn) {
	closeBoth := func() { program.Close(); host.Close() }
	defer closeBoth()
	defer context.AfterFunc(ctx, closeBoth)()
	var up sync.WaitGroup
	up.Go(func() {
		if pass(host, program) != nil {
			closeBoth()
		}
	})
	if pass(program, host) != nil {
		closeBoth()
	}
	_ = program.SetReadDeadline(time.Now().Add(lingering))
	up.Wait()
}

// pass copies until from ends, and passes the end on.
func pass(to, from net.Conn) error {
	_, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, copySize))
	if err == nil {
		err = closeWrite(to)
	}
	return err
}
