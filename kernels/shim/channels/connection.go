package channels

import (
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"cellblock/kernels/wire"
)

// Connection is what a connection file says (jupyter_client, "Connection files"); its JSON is the file's content. The
// file must belong to the kernel's user, with mode 0600, in a folder that it can write: kernels rewrite it.
type Connection struct {
	// Transport is "ipc" or "tcp".
	Transport string `json:"transport"`
	// IP is an address, or for ipc the path that the sockets' paths start with: "IP-PORT".
	IP          string `json:"ip"`
	ShellPort   int    `json:"shell_port"`
	IOPubPort   int    `json:"iopub_port"`
	StdinPort   int    `json:"stdin_port"`
	ControlPort int    `json:"control_port"`
	HBPort      int    `json:"hb_port"`
	// SignatureScheme must be wire.Scheme; Key is what messages are signed with, and empty for no signatures.
	SignatureScheme string `json:"signature_scheme"`
	Key             string `json:"key"`
	KernelName      string `json:"kernel_name"`
}

// maxSocketPath is what fits into a sockaddr_un, in bytes.
const maxSocketPath = 107

// NewIPC returns a connection over Unix sockets in dir, which should hold nothing else: Dial watches it. The folder
// need not exist yet. Its path is at most 102 bytes long.
func NewIPC(dir string) (Connection, error) {
	c := newConnection("ipc", filepath.Join(dir, "k"), [5]int{1, 2, 3, 4, 5})
	_, path := c.address(c.HBPort)
	if len(path) > maxSocketPath {
		return Connection{}, fmt.Errorf("channels: socket path %q has %d bytes, at most %d: use a shorter folder", path, len(path), maxSocketPath)
	}
	return c, nil
}

// NewTCP returns a connection over five ports of 127.0.0.1 that were free a moment ago.
func NewTCP() (Connection, error) {
	var ports [5]int
	for i := range ports {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return Connection{}, fmt.Errorf("channels: looking for a free port: %w", err)
		}
		defer l.Close() // only when all five are found, so that they differ
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return newConnection("tcp", "127.0.0.1", ports), nil
}

func newConnection(transport, ip string, ports [5]int) Connection {
	return Connection{
		Transport: transport, IP: ip,
		ShellPort: ports[0], IOPubPort: ports[1], StdinPort: ports[2], ControlPort: ports[3], HBPort: ports[4],
		SignatureScheme: wire.Scheme, Key: rand.Text(),
	}
}

// RemoveSockets removes the sockets of an ipc connection. It belongs between two kernels that use the same connection:
// the first one's children may still hold them open, and a dial would reach those.
func (c Connection) RemoveSockets() error {
	if c.Transport != "ipc" {
		return nil
	}
	var errs []error
	for _, port := range []int{c.ShellPort, c.IOPubPort, c.StdinPort, c.ControlPort, c.HBPort} {
		_, path := c.address(port)
		if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// address returns network and address of a port, as package net wants them.
func (c Connection) address(port int) (network, address string) {
	if c.Transport == "ipc" {
		return "unix", c.IP + "-" + strconv.Itoa(port)
	}
	return "tcp", net.JoinHostPort(c.IP, strconv.Itoa(port))
}

// check refuses what Dial cannot serve.
func (c Connection) check() error {
	if c.Transport != "ipc" && c.Transport != "tcp" {
		return fmt.Errorf("channels: transport %q, must be ipc or tcp", c.Transport)
	}
	if c.Key != "" && c.SignatureScheme != wire.Scheme {
		return fmt.Errorf("channels: signature scheme %q, must be %s", c.SignatureScheme, wire.Scheme)
	}
	return nil
}
