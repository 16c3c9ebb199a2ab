//go:build linux

package shim

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// C libraries have the first three real-time signals for their threads, and so Go's runtime leaves them as they are, out of
// reach of os/signal. It does not use them itself where there is no cgo.
const (
	firstThreadSignal = 32
	lastThreadSignal  = 34
)

// How a signal is dealt with (sigaction(2)).
const (
	signalDefault = 0
	signalIgnored = 1
)

// sigaction is what the kernel, not the C library, takes for one.
type sigaction struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

// IgnoreThreadSignals ignores the signals that os/signal cannot. Their default is to end the process. Linux spares the first
// of a pid namespace, but not while one of its threads holds signals back, as Go's do for moments: user code that sends them
// without end would be rid of its shim.
func IgnoreThreadSignals() error { return setThreadSignals(signalIgnored) }

// setThreadSignals sets how those signals are dealt with.
func setThreadSignals(handler uintptr) error {
	for n := uintptr(firstThreadSignal); n <= lastThreadSignal; n++ {
		act := sigaction{handler: handler}
		if _, _, err := unix.RawSyscall6(unix.SYS_RT_SIGACTION, n, uintptr(unsafe.Pointer(&act)), 0, unsafe.Sizeof(act.mask), 0, 0); err != 0 {
			return fmt.Errorf("setting what becomes of signal %d: %w", n, err)
		}
	}
	return nil
}
