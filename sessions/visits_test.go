package sessions

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"cellblock/internal/fault"
)

func as(caller string, r Request) Request {
	r.Caller = caller
	return r
}

// A model that comes back is told, once, which cells a person ran meanwhile. Each client is told for itself.
func TestVisited(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	ran := func(caller, want string) {
		t.Helper()
		e := start(t, m, alice, as(caller, python("s", "x")))
		wait(t, e)
		if got := e.Preamble(); got != want {
			t.Errorf("cell %d of %s is told %q, want %q", e.Number(), caller, got, want)
		}
	}
	ran("claude", "")
	ran(Person, "")
	ran("claude", "Before this cell a person ran cell 2 here in the viewer; get_execution reads it.")
	ran("claude", "")
	ran(Person, "")
	ran(Person, "")
	ran("other", "Before this cell a person ran cells 2 and 5–6 here in the viewer; get_execution reads them.")
	ran("claude", "Before this cell a person ran cells 5–6 here in the viewer; get_execution reads them.")
	ran("other", "")
}

// What a kernel took with it when it ended is told to the model, although a person's cell was the first on the next kernel.
func TestPersonDoesNotTakeTheNews(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	ran := func(caller, code string) string {
		t.Helper()
		e := start(t, m, alice, as(caller, python("s", code)))
		if _, err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		return e.Preamble()
	}
	ran("claude", "x")
	if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
		t.Fatal(err)
	}
	for _, caller := range []string{Person, "claude"} {
		told := ran(caller, "x")
		if strings.Count(told, "(generation 1) ended") != 1 {
			t.Errorf("%s is told %q", caller, told)
		}
		if visited := strings.Contains(told, "a person ran cells 2–3"); visited != (caller == "claude") {
			t.Errorf("%s is told %q", caller, told)
		}
		if again := ran(caller, "x"); strings.Contains(again, "generation") {
			t.Errorf("%s is told again: %q", caller, again)
		}
	}
}

// Who interrupts and who restarts is told, and kept.
func TestPersonStopsACell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		report, err := m.InterruptCell(t.Context(), alice, "s", 1, Person)
		if r := wait(t, e); err != nil || report.Caller != Person || r.Interrupt != report {
			t.Errorf("%+v, %+v, %v", report, r.Interrupt, err)
		}
		e = start(t, m, alice, python("s", "sleep 1h"))
		synctest.Wait()
		if _, err := m.RestartBy(t.Context(), alice, "s", Person); err != nil {
			t.Error(err)
		}
		const why = "a person in the viewer restarted the kernel"
		if r := wait(t, e); r.Death == nil || r.Death.Cause != why+" while this cell ran" {
			t.Errorf("%+v", r.Death)
		}
		if e, _ := execute(t, m, alice, "s", "x"); !strings.Contains(e.Preamble(), why) {
			t.Errorf("the next cell is told %q", e.Preamble())
		}
		if _, err := m.RestartBy(t.Context(), alice, "s", Person); err != nil {
			t.Error(err)
		}
		if e, _ := execute(t, m, alice, "s", "x"); !strings.Contains(e.Preamble(), why+".") {
			t.Errorf("the next cell is told %q", e.Preamble())
		}
	})
}

func TestTakeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		running, waits, last := start(t, m, alice, python("s", "sleep 1m")), start(t, m, alice, python("s", "never")), start(t, m, alice, python("s", "x"))
		synctest.Wait()
		for number, kind := range map[int]fault.Kind{1: fault.Conflict, 4: fault.NotFound} {
			if err := m.TakeBack(t.Context(), alice, "s", number, Person); fault.KindOf(err) != kind {
				t.Errorf("cell %d: %v", number, err)
			}
		}
		if err := m.TakeBack(t.Context(), alice, "s", 2, Person); err != nil {
			t.Error(err)
		}
		if _, err := waits.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled || err.Error() != "a person in the viewer took this cell back before it ran" {
			t.Errorf("it is told %v", err)
		}
		wait(t, running)
		wait(t, last)
		if n := len(p.last().cells); n != 2 {
			t.Errorf("%d cells ran", n)
		}
		if err := m.TakeBack(t.Context(), alice, "s", 2, Person); fault.KindOf(err) != fault.Conflict || !strings.Contains(err.Error(), "has ended") {
			t.Errorf("once more: %v", err)
		}
	})
}

// A cell that its kernel never had is told on the next one what it would have been told on the first.
func TestVisitedWhenRunOnceMore(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	wait(t, start(t, m, alice, as("claude", python("s", "x"))))
	wait(t, start(t, m, alice, as(Person, python("s", "x"))))
	e := start(t, m, alice, as("claude", python("s", "unsent 1")))
	wait(t, e)
	if told := e.Preamble(); e.Generation() != 2 || !strings.Contains(told, "a person ran cell 2") {
		t.Errorf("on generation %d it is told %q", e.Generation(), told)
	}
}

func TestVisitsAreBounded(t *testing.T) {
	var v visits
	for n := range 3 * maxVisits {
		v.note(n+1, Person)
	}
	if len(v.cells) != maxVisits || v.cells[0].number != 2*maxVisits+1 {
		t.Errorf("%d from %d", len(v.cells), v.cells[0].number)
	}
	var apart []int
	for n := range 20 {
		apart = append(apart, 2*n)
	}
	if got, want := cellsText(apart), "cells …, 28, 30, 32, 34, 36 and 38"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
