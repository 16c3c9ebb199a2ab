package sessions

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
)

// attended starts a cell that somebody attends.
func attended(t *testing.T, m *Manager, code string) *Execution {
	t.Helper()
	r := python("s", code)
	r.Attended = true
	e := start(t, m, alice, r)
	synctest.Wait()
	return e
}

// An answer is in the record before anybody can know of it, be it the cell's end.
func TestAnAnswerIsKeptUnderTheLock(t *testing.T) {
	var in input
	in.mu.Lock()
	in.open(Prompt{}, func(string) {}, time.Minute, func(string) {})
	p := in.prompt
	in.mu.Unlock()
	kept := false
	reply := in.take(p.ID, func(*Prompt) {
		select {
		case <-p.Closed():
			t.Error("the prompt is closed already")
		default:
		}
		if kept = true; in.mu.TryLock() {
			t.Error("the cell's end does not wait for the answer")
		}
	})
	if !kept || reply == nil {
		t.Error("the prompt was not answered")
	}
}

// prompt is the prompt that a cell must have open.
func prompt(t *testing.T, e *Execution, text string) *Prompt {
	t.Helper()
	synctest.Wait()
	p := e.Prompt()
	if p == nil || p.Text != text {
		t.Fatalf("the prompt is %+v, not %q", p, text)
	}
	return p
}

// closed tells whether a prompt is.
func closed(p *Prompt) bool {
	select {
	case <-p.Closed():
		return true
	default:
		return false
	}
}

// printed is what a cell printed, without its prompts, with ^D for the mark of an answer that is none.
func printed(t *testing.T, e *Execution) string {
	t.Helper()
	var b strings.Builder
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if out.Kind == kernels.OutputStream {
			b.WriteString(strings.ReplaceAll(out.Text, noInput, "^D"))
		}
	}
	return b.String()
}

// withFake runs a test in a bubble, over kernels that exist in memory only.
func withFake(t *testing.T, test func(t *testing.T, m *Manager)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) { test(t, newTestManager(t, &fakeProvisioner{})) })
}

func TestInputIsAnsweredOnce(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		e := attended(t, m, "ask a: b:")
		a := prompt(t, e, "a:")
		e.Answer("another", "x")
		if closed(a) {
			t.Error("an answer to another prompt closed this one")
		}
		e.Answer(a.ID, "1")
		b := prompt(t, e, "b:")
		e.Answer(a.ID, "again")
		e.Refuse(a.ID, "late")
		if !closed(a) || closed(b) || a.ID == b.ID {
			t.Errorf("after the first answer: %v %v", closed(a), closed(b))
		}
		if !e.Asked(a.ID) || !e.Asked(b.ID) || e.Asked("") || e.Asked("x-1") {
			t.Error("it does not know what it asked")
		}
		e.Answer(b.ID, "2")
		if got := printed(t, e); got != "a:1\nb:2\n" || e.Prompt() != nil {
			t.Errorf("it printed %q", got)
		}
		if got := said(t, e); got != "a:|1|b:|2" {
			t.Errorf("the record has %q", got)
		}
	})
}

// Whoever is not asked, the cell does not wait for him.
func TestInputThatNobodyGives(t *testing.T) {
	tests := map[string]struct {
		code, want string
		act        func(e *Execution)
	}{
		"a password":           {"ask (secret)", "(secret)^Dsecrets are not asked for here", nil},
		"declined":             {"ask a: b:", "a:^Dthe user declined: put the value into the code instead of calling input()\nb:^Dnobody can be asked", func(e *Execution) { e.Refuse(e.Prompt().ID, "the user declined") }},
		"the asker leaves":     {"ask a: b:", "a:^Dnobody is there to answer: put the value into the code instead of calling input()\nb:^Dnobody can be asked", (*Execution).Unattend},
		"nobody answers":       {"ask a: b:", "a:^Dnobody answered within 5 minutes: put the value into the code instead of calling input()\nb:^Dnobody can be asked", func(*Execution) {}},
		"much too long a line": {"ask a:", "a:^Dthe answer is longer than 65536 bytes", func(e *Execution) { e.Answer(e.Prompt().ID, strings.Repeat("x", maxLine+1)) }},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, m *Manager) {
				e := attended(t, m, tt.code)
				if tt.act != nil {
					tt.act(e)
				}
				if got := printed(t, e); !strings.HasPrefix(got, tt.want) {
					t.Errorf("it printed %q", got)
				}
			})
		})
	}
	withFake(t, func(t *testing.T, m *Manager) {
		e := start(t, m, alice, python("s", "ask a:"))
		if got := printed(t, e); !strings.HasPrefix(got, "a:^Dnobody can be asked for input here: put the value") {
			t.Errorf("unattended: %q", got)
		}
	})
}

// A user is not asked for ever.
func TestInputInALoop(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		e := attended(t, m, "ask"+strings.Repeat(" a:", maxPrompts+1))
		for range maxPrompts {
			e.Answer(prompt(t, e, "a:").ID, "1")
		}
		if got := printed(t, e); !strings.HasPrefix(got, strings.Repeat("a:1\n", maxPrompts)+"a:^Dnobody can be asked") {
			t.Errorf("it printed %q", got)
		}
	})
}

// said is what a cell asked and was answered, in the order of its record.
func said(t *testing.T, e *Execution) string {
	t.Helper()
	var all []string
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if out.Kind == kernels.OutputInput || out.Kind == kernels.OutputAnswer {
			all = append(all, out.Text)
		}
	}
	return strings.Join(all, "|")
}

// What was asked for a password is kept, what was typed is not; and of answers that are none nothing is.
func TestPasswordsAreNotKept(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		r := python("s", "ask (secret)")
		r.Attended, r.Caller = true, Person
		e := start(t, m, alice, r)
		e.Answer(prompt(t, e, "(secret)").ID, "hunter2")
		if got := said(t, e); got != "(secret)|" {
			t.Errorf("the record has %q", got)
		}
		e = attended(t, m, "ask a:")
		e.Refuse(prompt(t, e, "a:").ID, "no")
		if got := said(t, e); got != "a:" {
			t.Errorf("of a refusal the record has %q", got)
		}
	})
}

// Only a kernel whose cell somebody attends is told that it may ask.
func TestKernelIsToldWhetherItMayAsk(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		p := m.cfg.Provisioner.(*fakeProvisioner)
		for _, want := range []bool{true, false} {
			r := python("s", "print 1")
			r.Attended = want
			wait(t, start(t, m, alice, r))
			if cells := p.last().cells; cells[len(cells)-1].mayAsk != want {
				t.Errorf("the kernel was told %v", !want)
			}
		}
		first := attended(t, m, "sleep 5s")
		second := attended(t, m, "print 1")
		second.Unattend() // while it waits for its turn
		wait(t, first)
		wait(t, second)
		if cells := p.last().cells; cells[len(cells)-1].mayAsk {
			t.Error("a cell whose caller had gone was told that it may ask")
		}
	})
}

// The time in which the user thinks is not the cell's.
func TestTimeoutDoesNotCountTheWaitingForInput(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		r := python("s", "ask a: b:")
		r.Attended, r.Timeout = true, 10*time.Second
		e := start(t, m, alice, r)
		for _, text := range []string{"a:", "b:"} {
			p := prompt(t, e, text)
			time.Sleep(4 * time.Minute)
			e.Answer(p.ID, "x")
		}
		if r := wait(t, e); r.TimedOut || r.Status != kernels.StatusOK {
			t.Errorf("%+v", r)
		}
		e = start(t, m, alice, Request{SessionID: "s", Code: "sleep 20s", Language: "python", Attended: true, Timeout: 10 * time.Second})
		if r := wait(t, e); !r.TimedOut || r.Duration != 10*time.Second {
			t.Errorf("%+v", r)
		}
	})
}

// A prompt ends with its cell, whatever ends that.
func TestPromptEndsWithItsCell(t *testing.T) {
	for name, end := range map[string]func(*testing.T, *Manager, *Execution){
		"cancel":    func(_ *testing.T, _ *Manager, e *Execution) { e.Cancel() },
		"interrupt": func(t *testing.T, m *Manager, _ *Execution) { _, _ = m.Interrupt(t.Context(), alice, "s") },
		"restart":   func(t *testing.T, m *Manager, _ *Execution) { _, _ = m.Restart(t.Context(), alice, "s") },
		"close":     func(t *testing.T, m *Manager, _ *Execution) { _ = m.Close(t.Context(), alice, "s", CloseOptions{}) },
		"death": func(_ *testing.T, m *Manager, _ *Execution) {
			m.cfg.Provisioner.(*fakeProvisioner).last().die(kernels.Death{Cause: "killed"})
		},
	} {
		t.Run(name, func(t *testing.T) {
			withFake(t, func(t *testing.T, m *Manager) {
				e := attended(t, m, "ask a:")
				p := prompt(t, e, "a:")
				end(t, m, e)
				wait(t, e)
				if !closed(p) || e.Prompt() != nil {
					t.Error("the prompt is open")
				}
				e.Answer(p.ID, "late")
				if got := printed(t, e); got != "" {
					t.Errorf("it printed %q", got)
				}
				if name != "close" {
					if _, r := execute(t, m, alice, "s", "print 1"); r.Status != kernels.StatusOK {
						t.Errorf("the next cell: %+v", r)
					}
				}
			})
		})
	}
}

// A person is asked for a secret, which no model is; the answer is nowhere but in the kernel.
func TestPasswordOfAPerson(t *testing.T) {
	withFake(t, func(t *testing.T, m *Manager) {
		r := python("s", "ask (secret)")
		r.Attended, r.Caller = true, Person
		e := start(t, m, alice, r)
		p := prompt(t, e, "(secret)")
		if !p.Password {
			t.Error("it would be shown")
		}
		e.Answer(p.ID, "hunter2")
		wait(t, e)
		if got := printed(t, e); got != "(secret)hunter2\n" { // the fake prints what it got
			t.Errorf("%q", got)
		}
	})
}
