package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// stopSignals turns signals into two contexts: the first signal ends graceful, the second ends forced, the third ends
// the process. Call release when the work is done.
func stopSignals(parent context.Context) (graceful, forced context.Context, release func()) {
	graceful, stop := context.WithCancel(parent)
	forced, force := context.WithCancel(context.WithoutCancel(parent))
	signals := make(chan os.Signal, 3)
	signal.Notify(signals, stopping()...)
	done := make(chan struct{})
	go func() {
		for _, act := range []func(){stop, force, func() { os.Exit(130) }} {
			select {
			case <-signals:
				act()
			case <-done:
				return
			}
		}
	}()
	return graceful, forced, func() {
		signal.Stop(signals)
		close(done)
		stop()
		force()
	}
}

// stopping are the signals that stop a server. A terminal that is closed is one of them: a process that it killed would leave kernels
// behind that were to end with it, and not say so. Where whoever started the process had it ignored (nohup), it stays so.
func stopping() []os.Signal {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if signal.Ignored(syscall.SIGHUP) {
		return all
	}
	return append(all, syscall.SIGHUP)
}

// stoppingLine says what a stop does to what runs, and what more signals do.
func stoppingLine(keep bool) string {
	what := "what runs has ten seconds to end"
	if keep {
		what = "calls have ten seconds to end, kernels and their cells go on"
	}
	return "stopping: " + what + "; a second signal stops faster, a third at once"
}

// outliveReaders lets a write to a closed pipe fail instead of ending the process, as it would by SIGPIPE where that pipe
// is standard output or standard error: whoever read there may go at any time, and the kernels must still be stopped.
// The signal is taken and not ignored, because programs that are started inherit what is ignored.
func outliveReaders() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }
