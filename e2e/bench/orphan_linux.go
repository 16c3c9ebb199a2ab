package main

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starts are carried out on a thread that does not end before this process does.
var starts = sync.OnceValue(func() chan func() {
	c := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range c {
			start()
		}
	}()
	return c
})

// startOurs starts a command that is told to stop when this process is killed. For Linux that is the end of the thread which
// started it.
func startOurs(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	starts() <- func() { started <- cmd.Start() }
	return <-started
}
