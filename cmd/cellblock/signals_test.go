package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"
)

// A terminal that is closed stops a server as SIGTERM does, and none that was started to outlive it (nohup).
func TestHangUpStops(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	stopsAfter := func(patience time.Duration) bool {
		graceful, _, release := stopSignals(t.Context())
		defer release()
		if err := self.Signal(syscall.SIGHUP); err != nil {
			t.Skip(err)
		}
		select {
		case <-graceful.Done():
			return true
		case <-time.After(patience):
			return false
		}
	}
	taken := make(chan os.Signal, 1)
	signal.Notify(taken, syscall.SIGHUP) // no longer ignored, should these tests be
	signal.Stop(taken)
	if !stopsAfter(time.Minute) {
		t.Error("it does not stop")
	}
	signal.Ignore(syscall.SIGHUP)
	if stopsAfter(100 * time.Millisecond) {
		t.Error("it stops, though the signal is ignored")
	}
	signal.Notify(taken, syscall.SIGHUP)
	signal.Reset(syscall.SIGHUP)
}

func TestStoppingLine(t *testing.T) {
	for keep, want := range map[bool]string{
		true:  "stopping: calls have ten seconds to end, kernels and their cells go on; a second signal stops faster, a third at once",
		false: "stopping: what runs has ten seconds to end; a second signal stops faster, a third at once",
	} {
		if got := stoppingLine(keep); got != want {
			t.Errorf("keep %t: %q", keep, got)
		}
	}
}
