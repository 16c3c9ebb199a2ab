package kernels

import (
	"strings"
	"testing"

	"cellblock/internal/fault"
	"cellblock/kernels/stream"
)

func TestNoticeText(t *testing.T) {
	for want, n := range map[string]Notice{
		"… 1,234,567 bytes (20,000 lines) of stdout left out here …": {Elided: &stream.Elided{Stream: "stdout", Bytes: 1234567, Lines: 20000}},
		"… 1 output (999 bytes) left out here …":                     {Elided: &stream.Elided{Messages: 1, Bytes: 999}},
		"… 12 broken messages dropped here: wrong signature …":       {Dropped: &stream.Dropped{Count: 12, Reason: "wrong signature"}},
		"… 1 output (70,000,000 bytes) dropped here: too large for one message; save it to a file, or show less of it at once …": {
			Dropped: &stream.Dropped{Count: 1, Reason: stream.DroppedTooLarge, Bytes: 70_000_000}},
		"… 1,000 bytes of output lost here: nobody fetched them in time …":           {Gap: &stream.Gap{Bytes: 1000}},
		"… the kernel's reply never came: whether the code succeeded is not known …": {Incomplete: "the kernel's reply never came: whether the code succeeded is not known"},
		"… -1,000 bytes (1 line) of bad name left out here …":                        {Elided: &stream.Elided{Stream: "bad\nname", Bytes: -1000, Lines: 1}},
		"… 1 broken message dropped here: " + strings.Repeat("é", 300) + "… …":       {Dropped: &stream.Dropped{Reason: strings.Repeat("é", 301)}},
		"… 1 broken message dropped here: " + strings.Repeat("x", 300) + "… …":       {Dropped: &stream.Dropped{Reason: strings.Repeat("x", 5000)}},
	} {
		if got := n.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestDeathCauses(t *testing.T) {
	exit := func(e stream.Exit) Death { return exitDeath(stream.Event{Exit: &e}) }
	for _, tt := range []struct {
		death Death
		want  string
	}{
		{exit(stream.Exit{Code: 1}), "the kernel exited with status 1"},
		{exit(stream.Exit{Code: 1, Output: "\n\n"}), "the kernel exited with status 1"},
		{exit(stream.Exit{Code: -1, Signal: "SIGSEGV", Output: "x"}), "the kernel was killed by SIGSEGV"},
		{exit(stream.Exit{Code: -1, Signal: "SIGKILL", OOM: true}), "the kernel ran out of memory and was killed"},
		{exit(stream.Exit{Failed: "exec: no such file"}), "the kernel could not be started: exec: no such file"},
		{exit(stream.Exit{Code: -1, Signal: "SIGTERM", Asked: true}), "the kernel was stopped"},
		{exitDeath(stream.Event{}), "the kernel exited with status -1"},
		{containerDeath(ExitStatus{Code: -1}, nil), "the kernel's container or sandbox is gone: it was removed, or what runs it was restarted"},
		{containerDeath(ExitStatus{Code: 137}, nil), "the kernel's container or sandbox ended with status 137"},
		{containerDeath(ExitStatus{Code: -1, Signal: "SIGKILL"}, nil), "the kernel's container or sandbox was killed by SIGKILL"},
		{containerDeath(ExitStatus{Code: -1, OOM: true}, nil), "the kernel ran out of memory and its container or sandbox was killed"},
		{containerDeath(ExitStatus{Code: 0, Asked: true}, nil), "the kernel was stopped"},
		{containerDeath(ExitStatus{Code: 0}, nil), "the kernel was stopped from outside, as when the container engine or the machine is stopped"},
	} {
		err := &DeathError{tt.death}
		if err.Error() != tt.want || fault.KindOf(err) != fault.Died || tt.death.Time.IsZero() {
			t.Errorf("got %q, %+v; want %q", err, tt.death, tt.want)
		}
		if hint := fault.Hint(err); tt.death.OOM && !strings.Contains(hint, "memory") {
			t.Errorf("hint %q", hint)
		}
	}
}

func TestMembers(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 1, `[]`: 1, `{"a":1}`: 1, `{"a":1,"b":[1,2,{"c":3,"d":4}]}`: 2, `["a,b","\",","\\",1]`: 4, ``: 1, `"a,b"`: 1, `{"a":"}{,"}`: 1,
	} {
		if got := members([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

func TestRecentIsBounded(t *testing.T) {
	var r recent
	r.init()
	r.add("first", true)
	for i := range recentIDs {
		r.add(strings.Repeat("x", i), false)
	}
	if r.has("first") || !r.has("") || len(r.ids) != recentIDs {
		t.Fatalf("%d ids", len(r.ids))
	}
}
