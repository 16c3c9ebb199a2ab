package storetest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/sessions"
)

// Processes is one disk and whoever works on it. A store's tests say how to make them.
type Processes interface {
	// Start returns the store of a process that starts on the disk.
	Start(t *testing.T) sessions.Store
	// Kill ends a process without a chance to tidy up. The process that starts next may take its place.
	Kill(t *testing.T, s sessions.Store)
}

var (
	alice = sessions.Owner{Issuer: "https://a", Subject: "alice"}
	bob   = sessions.Owner{Issuer: "https://a", Subject: "bob"}
)

// Run checks that a store does what sessions.Store promises. disk makes a new, empty one for each test.
func Run(t *testing.T, disk func(t *testing.T) Processes) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Processes)
	}{
		{"a life is told as it was", testLife},
		{"what a session is made of is kept", testChoice},
		{"outputs come back as they were", testFaithful},
		{"what is there stays over a restart", testRestart},
		{"a killed process loses nothing committed", testKilled},
		{"one process at a time", testClaims},
		{"numbers are given once", testNumbers},
		{"a commit is all or nothing", testAtomic},
		{"one commit or many", testTogether},
		{"owners are apart", testOwners},
		{"holes", testHoles},
		{"deleted is gone", testDelete},
		{"writers side by side", testConcurrent},
		{"reading while it is written", testReadWhileWritten},
		{"pages of executions", testPages},
		{"outputs that are looked for", testFind},
		{"the end of a wait", testContext},
		{"kernels whose end is not written down", testRunning},
		{"cells whose end is not written down", testUnended},
		{"when a session was used", testUsed},
		{"images of sessions", testImages},
		{"closed and not closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, disk(t)) })
	}
}

// open is Open that must succeed.
func open(t *testing.T, s sessions.Store, o sessions.Owner, id string) sessions.StoredSession {
	t.Helper()
	found, err := s.Open(t.Context(), sessions.StoredSession{Owner: o, ID: id, Language: "python", Created: time.Now()})
	if err != nil {
		t.Fatalf("Open(%s): %v", id, err)
	}
	return found
}

// commit is Commit that must succeed.
func commit(t *testing.T, s sessions.Store, ref sessions.SessionRef, changes ...sessions.Change) {
	t.Helper()
	if err := s.Commit(t.Context(), ref, changes...); err != nil {
		t.Fatalf("Commit: %v", err)
	}
}

func queued(n int) sessions.ExecutionQueued {
	return sessions.ExecutionQueued{
		Number: n, MsgID: fmt.Sprintf("m-%d", n), Code: fmt.Sprintf("cell %d", n), Caller: "a test", Timeout: time.Minute, Queued: time.Now(),
		File: "work.py", Args: "--n 4", Restores: 7,
	}
}

// cell is the changes of a cell that was queued, runs in generation 1 and printed some lines.
func cell(n int, lines ...string) []sessions.Change {
	return []sessions.Change{
		queued(n), sessions.ExecutionBegan{Number: n, Generation: 1, Started: time.Now(), Preamble: "a fresh kernel"}, printed(n, 0, lines...),
	}
}

func printed(n, first int, lines ...string) sessions.OutputsKept {
	kept := sessions.OutputsKept{Number: n, First: first}
	for i, line := range lines {
		kept.Outputs = append(kept.Outputs, kernels.Output{
			Kind: kernels.OutputStream, Stream: "stdout", Text: line, Seq: uint64(first + i + 1), Time: time.Unix(1700000000, int64(i)).UTC(),
		})
	}
	return kept
}

func generation(n int) sessions.GenerationBegan {
	return sessions.GenerationBegan{Number: n, Started: time.Now(), Ref: kernels.Ref{
		Provisioner: "local", Version: 3, KernelID: fmt.Sprintf("kernel%d", n), Data: json.RawMessage(`{"pid":7}`),
	}}
}

// outputs reads an execution's outputs from an index on.
func outputs(t *testing.T, s sessions.Store, ref sessions.SessionRef, number, from int) (outs []sessions.StoredOutput) {
	t.Helper()
	for out, err := range s.Outputs(t.Context(), ref, number, from) {
		if err != nil {
			t.Fatalf("output %d of execution %d: %v", out.Index, number, err)
		}
		outs = append(outs, out)
	}
	return outs
}

func text(outs []sessions.StoredOutput) string {
	var b strings.Builder
	for _, out := range outs {
		b.WriteString(out.Output.Text)
		if out.Output.Notice != nil {
			b.WriteString("<" + out.Output.Notice.String() + ">")
		}
	}
	return b.String()
}

func wantText(t *testing.T, s sessions.Store, ref sessions.SessionRef, number int, want string) {
	t.Helper()
	if got := text(outputs(t, s, ref, number, 0)); got != want {
		t.Errorf("execution %d printed %q, want %q", number, got, want)
	}
}

func wantKind(t *testing.T, what string, err error, kind fault.Kind) {
	t.Helper()
	if err == nil || fault.KindOf(err) != kind {
		t.Errorf("%s: %v, want an error of kind %v", what, err, kind)
	}
}

// sameTime compares times by instant and the rest by value.
func sameTime(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}
