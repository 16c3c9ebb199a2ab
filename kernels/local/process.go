//go:build linux

package local

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity names a process beyond the reuse of its pid.
type identity struct {
	PID int `json:"pid"`
	// Start is when it started, in clock ticks since boot (proc_pid_stat(5), field 22).
	Start uint64 `json:"start"`
}

// errEnded is what there is to say of a process that is not there any more.
var errEnded = errors.New("the process has ended")

// bootID tells this boot of the machine from others, across which pids and start times may repeat.
var bootID = sync.OnceValues(func() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(b)), err
})

// procStat is what is needed of /proc/PID/stat.
type procStat struct {
	zombie bool
	parent int
	start  uint64
}

// parseStat parses proc_pid_stat(5). The second field, the program's name, may hold anything, also parentheses.
func parseStat(b []byte) (procStat, error) {
	_, rest, ok := cutLast(b, ") ")
	fields := bytes.Fields(rest)
	if !ok || len(fields) < 20 {
		return procStat{}, fmt.Errorf("not a process's stat: %.80q", b)
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return procStat{}, err
	}
	start, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return procStat{zombie: string(fields[0]) == "Z", parent: parent, start: start}, err
}

func cutLast(b []byte, sep string) (before, after []byte, found bool) {
	if i := bytes.LastIndex(b, []byte(sep)); i >= 0 {
		return b[:i], b[i+len(sep):], true
	}
	return b, nil, false
}

// readStat returns a process's stat, or errEnded.
func readStat(pid int) (procStat, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
		return procStat{}, errEnded
	}
	if err != nil {
		return procStat{}, err
	}
	return parseStat(b)
}

// identify returns the identity of a process that is known to run.
func identify(pid int) (identity, error) {
	st, err := readStat(pid)
	return identity{PID: pid, Start: st.start}, err
}

// runs tells whether the process is there, as itself, and be it as a zombie.
func (id identity) runs() bool {
	now, err := identify(id.PID)
	return err == nil && now == id
}

// process is a process that runs or ran, held so that its pid cannot come to mean another.
type process struct {
	identity
	pidfd *os.File
}

// openProcess finds the process that id names, as long as its pid means it: while it runs and until it is reaped. Else it
// returns errEnded.
func openProcess(id identity) (*process, error) {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EINVAL) {
		return nil, errEnded
	}
	if err != nil {
		return nil, fmt.Errorf("pidfd_open: %w", err)
	}
	// Non-blocking, so that the runtime's poller waits for it and no thread has to.
	if err := unix.SetNonblock(fd, true); err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	p := &process{identity: id, pidfd: os.NewFile(uintptr(fd), "pidfd")}
	st, err := readStat(id.PID)
	if err == nil && st.start != id.Start {
		err = errEnded
	}
	if err != nil {
		_ = p.close()
		return nil, err
	}
	return p, nil
}

// ended tells whether the process has ended, reaped or not.
func (p *process) ended() bool {
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return true
	}
	var gone bool
	err = conn.Control(func(fd uintptr) { gone = readable(fd) })
	return err != nil || gone
}

// readable tells whether a pidfd's process has ended.
func readable(fd uintptr) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0)
	return err == nil && n > 0
}

// wait returns when the process has ended, with nil, or when close is called, with an error.
func (p *process) wait() error {
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	return conn.Read(readable)
}

// signal sends a signal; a process that has ended takes it too.
func (p *process) signal(sig unix.Signal) error {
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return err
	}
	var sent error
	if err := conn.Control(func(fd uintptr) { sent = unix.PidfdSendSignal(int(fd), sig, nil, 0) }); err != nil {
		return err
	}
	if errors.Is(sent, unix.ESRCH) {
		return nil
	}
	return sent
}

// killGroup kills the process and, as it leads a group of its own, what it started and has not yet left the group: the
// child that bubblewrap makes the sandbox's first process of.
func (p *process) killGroup() {
	_ = unix.Kill(-p.PID, unix.SIGKILL)
	_ = p.signal(unix.SIGKILL)
}

// reaping keeps two handles of one kernel from reaping it at once, after which the pid could be another child's.
var reaping sync.Mutex

// reap takes the exit status of a process that is our own child and has ended. It reports false for all others: then
// somebody else does it.
func (p *process) reap() (unix.WaitStatus, bool) {
	reaping.Lock()
	defer reaping.Unlock()
	conn, err := p.pidfd.SyscallConn()
	if err != nil {
		return 0, false
	}
	var info unix.Siginfo
	ours := func(fd uintptr) {
		err = unix.Waitid(unix.P_PIDFD, int(fd), &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	}
	if closed := conn.Control(ours); closed != nil || err != nil || info.Signo == 0 {
		return 0, false
	}
	var st unix.WaitStatus
	pid, err := unix.Wait4(p.PID, &st, unix.WNOHANG, nil)
	return st, err == nil && pid == p.PID
}

func (p *process) close() error { return p.pidfd.Close() }
