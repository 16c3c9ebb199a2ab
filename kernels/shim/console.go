//go:build linux

package shim

import (
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// consoleSize is how much of the kernel process's own stdout and stderr is kept, in bytes.
const consoleSize = 8 << 10

// console reads what the kernel process writes to its own stdout and stderr (not what cells print: that comes over
// IOPub) and keeps the end of what came since the last cell was sent. Its reader goroutine ends with close.
type console struct {
	r    *os.File
	done chan struct{}

	mu  sync.Mutex
	end []byte // up to twice consoleSize
}

// newConsole returns a console and the end of its pipe that the kernel gets, for the caller to close.
func newConsole() (*console, *os.File, error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	c := &console{r: os.NewFile(uintptr(fds[0]), "console"), done: make(chan struct{})}
	go c.read()
	return c, os.NewFile(uintptr(fds[1]), "console"), nil
}

func (c *console) read() {
	defer close(c.done)
	buf := make([]byte, 4<<10)
	for {
		n, err := c.r.Read(buf)
		c.keep(buf[:n])
		if err != nil {
			return
		}
	}
}

func (c *console) keep(p []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = append(c.end, p...)
	if len(c.end) > 2*consoleSize {
		c.end = append(c.end[:0], c.end[len(c.end)-consoleSize:]...)
	}
}

// forget drops what has been written until now. What a cell's programs wrote long ago are no last words.
func (c *console) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.end = c.end[:0]
}

// close reads what is in the pipe and returns the end of it all. It does not wait for processes that still hold the
// other end; they get SIGPIPE from then on.
func (c *console) close() string {
	_ = c.r.SetReadDeadline(time.Unix(1, 0)) // ends the goroutine
	<-c.done
	_ = c.r.SetReadDeadline(time.Time{})
	if raw, err := c.r.SyscallConn(); err == nil {
		_ = raw.Read(c.drain)
	}
	c.r.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.ToValidUTF8(string(c.end[max(0, len(c.end)-consoleSize):]), "?")
}

// drain reads what is there, but no more than a pipe holds: somebody may go on writing.
func (c *console) drain(fd uintptr) bool {
	buf := make([]byte, 64<<10)
	for range 16 {
		n, err := syscall.Read(int(fd), buf)
		if n <= 0 || err != nil {
			break
		}
		c.keep(buf[:n])
	}
	return true
}
