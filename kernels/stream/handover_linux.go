package stream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// A shim whose container can write nothing that the host has cannot make the socket that it is reached by. So the
// provisioner makes it and listens first; the shim connects to it, as anybody would, and gets the listening socket itself
// (unix(7), SCM_RIGHTS). It is the shim's alone from then on: the socket lives as long as the shim does, whatever becomes of
// the server.

// handedOver is what the shim answers when it has the socket.
const handedOver = 1

// GiveListener hands a listening socket over to the first who connects to it, and returns when he has it. The socket is
// closed here in any case.
func GiveListener(ctx context.Context, l *net.UnixListener) error {
	defer l.Close()
	defer context.AfterFunc(ctx, func() { _ = l.SetDeadline(time.Unix(1, 0)) })()
	conn, err := l.AcceptUnix()
	if err != nil {
		return errors.Join(ctx.Err(), err)
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })()
	raw, err := l.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	err = raw.Control(func(fd uintptr) {
		_, _, sent = conn.WriteMsgUnix([]byte{handedOver}, syscall.UnixRights(int(fd)), nil)
	})
	if err = errors.Join(err, sent); err == nil {
		_, err = conn.Read(make([]byte, 1))
	}
	return errors.Join(ctx.Err(), err)
}

// TakeListener gets a listening socket from who listens on it at a path.
func TakeListener(path string) (net.Listener, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path})
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	rights := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), rights)
	if err != nil {
		return nil, err
	}
	l, err := listenerIn(rights[:n])
	if err != nil {
		return nil, fmt.Errorf("no socket was handed over: %w", err)
	}
	if _, err := conn.Write([]byte{handedOver}); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// listenerIn is the socket that a control message brought.
func listenerIn(rights []byte) (net.Listener, error) {
	messages, err := syscall.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	if len(messages) != 1 {
		return nil, fmt.Errorf("%d control messages", len(messages))
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, err
	}
	if len(fds) != 1 {
		return nil, fmt.Errorf("%d descriptors", len(fds))
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close() // FileListener has its own
	return net.FileListener(f)
}
