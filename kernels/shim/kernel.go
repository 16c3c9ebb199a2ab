//go:build linux

package shim

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"cellblock/kernels/shim/channels"
	"cellblock/kernels/stream"
)

// kernel is one kernel process, from its start to its end.
type kernel struct {
	incarnation int
	*child
	connection channels.Connection
	files      kernelFiles
	console    *console
	oomBefore  int64         // the OOM killer's count at the start
	asked      atomic.Bool   // the shim is ending it
	gone       chan struct{} // closed when its end has been reported and nothing of it is left

	mu   sync.Mutex
	link *link // nil while not connected
}

// kernelFiles is where a kernel's connection file and ipc sockets are.
type kernelFiles struct {
	file string
	dir  string
}

// newKernelFiles makes names that nobody has used: code in the sandbox can write to the run folder too.
func newKernelFiles(runDir string) (kernelFiles, error) {
	if err := os.MkdirAll(runDir, 0o700); err != nil {
		return kernelFiles{}, fmt.Errorf("run folder: %w", err)
	}
	var name [4]byte
	_, _ = rand.Read(name[:]) // never fails
	dir := filepath.Join(runDir, "k"+hex.EncodeToString(name[:]))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return kernelFiles{}, fmt.Errorf("run folder: %w", err)
	}
	return kernelFiles{dir: dir, file: dir + ".json"}, nil
}

// connect makes the connection, with a key of its own, and writes it down.
func (f kernelFiles) connect(c stream.Config) (channels.Connection, error) {
	var conn channels.Connection
	var err error
	if c.Transport == "tcp" {
		conn, err = channels.NewTCP()
	} else {
		conn, err = channels.NewIPC(f.dir)
	}
	if err != nil {
		return conn, err
	}
	file, err := os.OpenFile(f.file, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return conn, fmt.Errorf("connection file: %w", err)
	}
	_, err = file.Write(encode(conn))
	return conn, errors.Join(err, file.Close())
}

func (f kernelFiles) remove() {
	_ = os.Remove(f.file)
	_ = os.RemoveAll(f.dir)
}

// startKernel starts a kernel process and returns once it has become the kernel's program. The error says why it could
// not; then nothing is left of it.
func startKernel(c stream.Config, r *reaper, incarnation int) (*kernel, error) {
	files, err := newKernelFiles(c.RunDir)
	if err != nil {
		return nil, err
	}
	k := &kernel{incarnation: incarnation, files: files, gone: make(chan struct{})}
	if err := k.prepare(c, r); err != nil {
		files.remove()
		return nil, err
	}
	return k, nil
}

// prepare writes the connection file and starts the process.
func (k *kernel) prepare(c stream.Config, r *reaper) error {
	var err error
	if k.connection, err = k.files.connect(c); err != nil {
		return err
	}
	console, output, err := newConsole()
	if err != nil {
		return err
	}
	defer output.Close()
	if err := k.launch(c, r, output); err != nil {
		console.close()
		return err
	}
	k.console = console
	return nil
}

// launch runs Launch in a process of its own session, and waits for its exec.
func (k *kernel) launch(c stream.Config, r *reaper, output *os.File) error {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer null.Close()
	status, statusEnd, err := os.Pipe()
	if err != nil {
		return err
	}
	defer status.Close()
	spec := launchSpec{Argv: argv(c, k.files.file), Dir: c.Dir, Rlimits: c.Rlimits, Seccomp: c.Seccomp}
	files := []uintptr{null.Fd(), output.Fd(), output.Fd(), statusEnd.Fd()}
	child, err := r.spawn(func() (int, error) {
		return syscall.ForkExec("/proc/self/exe", []string{"cellblock-shim", LaunchArg, string(encode(spec))},
			&syscall.ProcAttr{Env: environment(c), Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	})
	statusEnd.Close()
	if err != nil {
		return fmt.Errorf("starting a process: %w", err)
	}
	failure, _ := io.ReadAll(io.LimitReader(status, consoleSize))
	if len(failure) > 0 {
		<-child.done
		return errors.New(string(failure))
	}
	k.child = child
	return nil
}

// alive tells whether the process runs.
func (k *kernel) alive() bool {
	select {
	case <-k.done:
		return false
	default:
		return true
	}
}

func (k *kernel) setLink(l *link) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.link = l
}

// connected returns the present connection, nil while there is none.
func (k *kernel) connected() *link {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.link
}

// exit describes the end of the process, where something may have been killed for memory that it has not outlived. It is called once, after
// that.
func (k *kernel) exit(oom bool) stream.Exit {
	e := stream.Exit{Code: k.status.ExitStatus(), Asked: k.asked.Load(), Output: k.console.close()}
	if k.status.Signaled() {
		e.Signal = unix.SignalName(k.status.Signal())
		e.OOM = k.status.Signal() == unix.SIGKILL && !e.Asked && oom
	}
	return e
}
