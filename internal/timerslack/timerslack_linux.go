// Package timerslack keeps the Go runtime's monitor thread from waking up thousands of times a second.
//
// While anything runs, that thread sleeps for 20 µs at a time, which Linux stretches by a thread's timer slack, 50 µs by
// default (prctl(2), PR_SET_TIMERSLACK). Each waking takes the processor from somebody for 10 µs: on two of them, a cell
// that takes 2 ms in its kernel is a sixth slower for it. With more slack the thread wakes up a few hundred times a
// second at most. Timers of the program may then fire that much later.
package timerslack

import (
	"os"
	"runtime"
	"syscall"
	"time"
)

// Of prctl(2). Package golang.org/x/sys/unix, which has them, would be initialised after most that package first is to be before.
const (
	setTimerSlack = 29
	getTimerSlack = 30
)

const (
	wide = 2 * time.Millisecond
	// usual is Linux's own.
	usual = 50 * time.Microsecond
)

// Widen makes the program's threads sleep with a slack of 2 ms. A thread has the slack of the one that started it, and
// the monitor is there before main: so the program is executed again, once, in its place. It must be called before
// anything else; package first does. Where that does not work, everything goes on as it is: real-time threads, for one, have no slack, and
// none can be set.
func Widen() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	path, err := os.Executable()
	if err != nil || isWide() || set(wide) != nil || !isWide() {
		return
	}
	_ = syscall.Exec(path, os.Args, os.Environ())
	_ = set(usual)
}

// Restore gives the calling thread the usual slack back, for the program that it is about to execute.
func Restore() error { return set(usual) }

func isWide() bool {
	slack, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, getTimerSlack, 0, 0)
	return errno == 0 && time.Duration(slack) >= wide
}

func set(slack time.Duration) error {
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, uintptr(slack.Nanoseconds()), 0); errno != 0 {
		return errno
	}
	return nil
}
