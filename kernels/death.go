package kernels

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

// ErrClosed is what a Client and its Executions return after Close. The kernel itself goes on.
var ErrClosed error = fault.New(fault.Cancelled, "this connection to the kernel was closed")

// Death says how a kernel ended, or why nothing can be heard from it any more.
type Death struct {
	// Cause is one sentence for people and models: "the kernel was killed by SIGKILL".
	Cause string
	// Exit is what the shim reported about the kernel process, nil when it could report nothing.
	Exit *stream.Exit
	// Container is how the container or sandbox ended, nil while it runs.
	Container *ExitStatus
	// OOM is true when the kernel was killed for memory.
	OOM bool
	// Asked is true when we ended it ourselves: restart, shutdown, stop.
	Asked bool
	// Time is when it ended, as far as known.
	Time time.Time
}

// DeathError is the error of everything that waited on a kernel that ended.
type DeathError struct {
	Death Death
}

// Error returns the cause.
func (e *DeathError) Error() string { return e.Death.Cause }

// Unwrap returns the same as a *fault.Error of kind Died.
func (e *DeathError) Unwrap() error {
	err := fault.New(fault.Died, "%s", e.Death.Cause)
	switch {
	case e.Death.OOM:
		return err.WithHint("Use less memory at a time, for example by reading data in pieces.")
	case e.Death.Exit != nil && e.Death.Exit.Failed != "":
		return err.WithHint("Check the kernel's command and that its image holds it.")
	}
	return err
}

// exitDeath describes the end of a kernel process.
func exitDeath(e stream.Event) Death {
	exit := stream.Exit{Code: -1}
	if e.Exit != nil {
		exit = *e.Exit
	}
	d := Death{Exit: &exit, OOM: exit.OOM || gaveUp(exit), Asked: exit.Asked, Time: e.Time}
	if d.Time.IsZero() {
		d.Time = time.Now()
	}
	switch {
	case exit.Failed != "":
		d.Cause = "the kernel could not be started: " + clip(exit.Failed)
	case d.OOM:
		d.Cause = "the kernel ran out of memory and was killed"
	case exit.Asked:
		d.Cause = "the kernel was stopped"
	case exit.Signal != "":
		d.Cause = "the kernel was killed by " + clip(exit.Signal)
	default:
		d.Cause = fmt.Sprintf("the kernel exited with status %d", exit.Code) + because(exit.Output)
	}
	return d
}

// gaveUp tells whether a program ended itself because it got no more memory, as V8 and C++ do: they say so and abort.
func gaveUp(exit stream.Exit) bool {
	return exit.Signal == "SIGABRT" && (strings.Contains(exit.Output, "out of memory") || strings.Contains(exit.Output, "std::bad_alloc"))
}

// stoppedOutside is the cause of an end that the shim was asked for by somebody else.
const stoppedOutside = "the kernel was stopped from outside, as when the container engine or the machine is stopped"

// containerDeath describes the end of a container or sandbox.
func containerDeath(s ExitStatus, exit *stream.Exit) Death {
	d := Death{Exit: exit, Container: &s, OOM: s.OOM, Asked: s.Asked, Time: time.Now()}
	switch {
	case s.OOM:
		d.Cause = "the kernel ran out of memory and its container or sandbox was killed"
	case s.Asked:
		d.Cause = "the kernel was stopped"
	case s.Code < 0 && s.Signal == "":
		d.Cause = "the kernel's container or sandbox is gone: it was removed, or what runs it was restarted"
	case s.Code == 0 && s.Signal == "": // a shim's only reason to end like this
		d.Cause = stoppedOutside
	case s.Signal != "":
		d.Cause = "the kernel's container or sandbox was killed by " + s.Signal
	default:
		d.Cause = fmt.Sprintf("the kernel's container or sandbox ended with status %d", s.Code)
	}
	return d
}

// lostDeath describes a kernel that may live but cannot be heard any more.
func lostDeath(err error) Death {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		err = op.Err // where the shim was to be found is of no use to who reads this
	}
	return Death{Cause: "the kernel cannot be reached any more: " + clip(err.Error()), Time: time.Now()}
}

// because returns the last line of a kernel's own output as the reason of its exit.
func because(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	last := strings.TrimSpace(lines[len(lines)-1])
	if last == "" {
		return ""
	}
	return ": " + clip(last)
}

// clip bounds text that a kernel or shim wrote, for use inside a sentence.
func clip(s string) string {
	const most = 300
	s = strings.ToValidUTF8(s[:min(len(s), 8*most)], "")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
