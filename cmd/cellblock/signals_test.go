package main

import "testing"

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
