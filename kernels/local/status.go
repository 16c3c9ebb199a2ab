//go:build linux

package local

import (
	"bytes"
	"encoding/json"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"cellblock/kernels"
)

// A kernel's status file tells, line by line, what happened to its sandbox. Bubblewrap writes its exit code into it
// (--json-status-fd), so that a server learns it that was not there; the server adds that Stop was asked. User code has no descriptor of it. A handle keeps it open and can read it after it was unlinked.
type statusLine struct {
	ExitCode *int `json:"exit-code,omitempty"`
	Asked    bool `json:"asked,omitempty"`
}

// statusFacts is all that a status file says.
type statusFacts struct {
	exit  int // -1: not known
	asked bool
}

// parseStatus reads what it can; a line that bubblewrap had no time to finish ends it.
func parseStatus(r io.Reader) statusFacts {
	facts := statusFacts{exit: -1}
	for dec := json.NewDecoder(r); ; {
		var line statusLine
		if dec.Decode(&line) != nil {
			return facts
		}
		if line.ExitCode != nil {
			facts.exit = *line.ExitCode
		}
		facts.asked = facts.asked || line.Asked
	}
}

// appendStatus adds a line. Appends of one write each do not mix.
func appendStatus(f *os.File, line statusLine) error {
	b, err := json.Marshal(line)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return err
}

// readStatus reads an open status file from its start.
func readStatus(f *os.File) statusFacts {
	b, err := io.ReadAll(io.NewSectionReader(f, 0, 64<<10))
	if err != nil {
		return statusFacts{exit: -1}
	}
	return parseStatus(bytes.NewReader(b))
}

// exitStatus says how a sandbox ended. Bubblewrap tells a signal as a shell does, by 128 more.
func (f statusFacts) exitStatus() kernels.ExitStatus {
	st := kernels.ExitStatus{Code: f.exit, Asked: f.asked}
	if f.exit > 128 {
		st.Code, st.Signal = -1, unix.SignalName(unix.Signal(f.exit-128))
	}
	return st
}

// exitCode is a wait status in the form that bubblewrap gives it.
func exitCode(st unix.WaitStatus) int {
	if st.Signaled() {
		return 128 + int(st.Signal())
	}
	return st.ExitStatus()
}
