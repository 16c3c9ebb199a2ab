package sessions

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/sessionid"
	"cellblock/kernels"
)

func TestConcurrentFirstCallsShareOneStart(t *testing.T) {
	p := &fakeProvisioner{launchTime: 20 * time.Millisecond}
	m := newTestManager(t, p, func(c *Config) { c.MaxQueue = 50 })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			e, err := m.Execute(t.Context(), alice, python("shared", fmt.Sprintf("cell %d", i)))
			if err != nil {
				t.Error(err)
				return
			}
			if r, err := e.Wait(t.Context()); err != nil || r.Status != kernels.StatusOK {
				t.Errorf("cell %d: %v %v", i, r.Status, err)
			}
		})
	}
	wg.Wait()
	if n := p.launched.Load(); n != 1 {
		t.Errorf("%d kernels were launched, want 1", n)
	}
	if info, _ := m.Get(t.Context(), alice, "shared"); info.Executions != 50 || info.State != Idle || info.Generation != 1 {
		t.Errorf("info %+v", info)
	}
}

func TestSessionsOfTwoOwnersAreTwo(t *testing.T) {
	p := &fakeProvisioner{}
	m := newTestManager(t, p)
	execute(t, m, alice, "analysis", "a")
	execute(t, m, bob, "analysis", "b")
	if n := p.launched.Load(); n != 2 {
		t.Errorf("%d kernels, want 2", n)
	}
	if p.specs[0].Workspace == p.specs[1].Workspace {
		t.Error("two owners share a workspace")
	}
	if err := m.Close(t.Context(), bob, "analysis", CloseOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Get(t.Context(), alice, "analysis"); err != nil {
		t.Errorf("alice's session went with bob's: %v", err)
	}
	if infos, _ := m.List(t.Context(), bob); len(infos) != 0 {
		t.Errorf("bob sees %+v", infos)
	}
}

// Calls on one session queue in order.
func TestCellsRunInTheOrderTheyCame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		var all []*Execution
		for i := range 10 {
			all = append(all, start(t, m, alice, python("s", fmt.Sprintf("sleep %ds", 10-i))))
		}
		synctest.Wait()
		if pos := all[9].Position(); pos != 9 {
			t.Errorf("position %d, want 9", pos)
		}
		began := time.Now()
		wait(t, all[9])
		if took := time.Since(began); took != 56*time.Second { // 1 s launch + 10+9+…+1
			t.Errorf("took %v", took)
		}
		for i, e := range p.last().cells {
			if want := fmt.Sprintf("sleep %ds", 10-i); e.code != want {
				t.Errorf("cell %d was %q, want %q", i, e.code, want)
			}
		}
	})
}

// Calls on different sessions never wait for each other.
func TestSessionsDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		slow := start(t, m, alice, python("slow", "sleep 100s"))
		synctest.Wait()
		began := time.Now()
		execute(t, m, alice, "quick", "x")
		if time.Since(began) != 0 {
			t.Error("the quick session waited")
		}
		slow.Cancel()
		wait(t, slow)
	})
}

// A session id is validated before anything is done with it, as is the rest of a request.
func TestExecuteRefuses(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	execute(t, m, alice, "py", "x")
	for _, tt := range []struct {
		name  string
		r     Request
		kind  fault.Kind
		words []string
	}{
		{"slash", python("a/b", "x"), fault.Invalid, []string{"session_id", `"a/b"`, "1 to 64 characters"}},
		{"dot", python(".", "x"), fault.Invalid, []string{"session_id"}},
		{"dots", python("..", "x"), fault.Invalid, []string{"session_id", `not "." or ".."`}},
		{"long", python(strings.Repeat("x", 300), "x"), fault.Invalid, []string{"session_id", "300 characters", "1 to 64"}},
		{"umlaut", python("größe", "x"), fault.Invalid, []string{"session_id"}},
		{"newline", python("a\nb", "x"), fault.Invalid, []string{"session_id", `a\nb`}},
		{"empty code", python("s", ""), fault.Invalid, []string{"code", "empty"}},
		{"blank code", python("s", " \n\t"), fault.Invalid, []string{"code", "empty"}},
		{"NUL", python("s", "a\x00b"), fault.Invalid, []string{"code", "NUL", "offset 1"}},
		{"bytes", python("s", "ab\xff"), fault.Invalid, []string{"code", "UTF-8", "offset 2"}},
		{"10 MB", python("s", strings.Repeat("x", 10<<20)), fault.Invalid, []string{"code", "10485760 bytes", "1048576"}},
		{"language", Request{Code: "x", Language: "cobol"}, fault.Invalid, []string{"language", "cobol", "bash, python"}},
		{"negative", Request{Code: "x", Language: "python", Timeout: -1}, fault.Invalid, []string{"timeout_seconds"}},
		{"too long", Request{Code: "x", Language: "python", Timeout: 2 * time.Hour}, fault.Invalid, []string{"timeout_seconds", "7200", "3600"}},
		{"other language", Request{SessionID: "py", Code: "x", Language: "bash"}, fault.Conflict, []string{`"py" is a python session`, "bash"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := m.Execute(t.Context(), alice, tt.r)
			if fault.KindOf(err) != tt.kind || err == nil {
				t.Fatalf("got %v (kind %v), want kind %v", err, fault.KindOf(err), tt.kind)
			}
			for _, w := range tt.words {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
			if len(err.Error()) > 400 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestFullQueueIsBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{}, func(c *Config) { c.MaxQueue = 2 })
		defer m.Shutdown(context.Background())
		start(t, m, alice, python("s", "sleep 10s"))
		synctest.Wait()
		start(t, m, alice, python("s", "a"))
		start(t, m, alice, python("s", "b"))
		_, err := m.Execute(t.Context(), alice, python("s", "c"))
		if fault.KindOf(err) != fault.Busy || fault.Hint(err) == "" {
			t.Errorf("got %v", fault.Text(err))
		}
	})
}

func TestMintedSessionIsCulledUnlessUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		once, _ := execute(t, m, alice, "", "x")
		twice, _ := execute(t, m, alice, "", "x")
		if !once.Minted() || sessionid.Validate(once.SessionID()) != nil || once.SessionID() == twice.SessionID() {
			t.Fatalf("minted %q and %q", once.SessionID(), twice.SessionID())
		}
		time.Sleep(4 * time.Minute)
		again, _ := execute(t, m, alice, twice.SessionID(), "y")
		if again.Minted() || again.Number() != 2 {
			t.Errorf("second call: minted %v, number %d", again.Minted(), again.Number())
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		infos, _ := m.List(t.Context(), alice)
		if len(infos) != 1 || infos[0].ID != twice.SessionID() {
			t.Errorf("after an hour there are %+v", infos)
		}
		back, _ := execute(t, m, alice, once.SessionID(), "z")
		if !strings.Contains(back.Preamble(), "nobody used it again for 5 minutes") {
			t.Errorf("preamble %q", back.Preamble())
		}
	})
}

func TestCloseDuringStart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: 10 * time.Second}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		e := start(t, m, alice, python("s", "x"))
		synctest.Wait()
		began := time.Now()
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled || !strings.Contains(err.Error(), "closed") {
			t.Errorf("the waiting cell got %v", err)
		}
		if time.Since(began) != 0 || p.live.Load() != 0 {
			t.Errorf("took %v, %d live", time.Since(began), p.live.Load())
		}
	})
}

func TestNextSessionOfAnIdWaitsForTheOneThatEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{stopTime: 2 * time.Second}
		m := newTestManager(t, p)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		closed := make(chan error, 1)
		go func() { closed <- m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}) }()
		synctest.Wait()
		if _, err := m.Get(t.Context(), alice, "s"); fault.KindOf(err) != fault.NotFound {
			t.Errorf("an ending session is there: %v", err)
		}
		e := start(t, m, alice, Request{SessionID: "s", Language: "bash", Code: "y"}) // the id is free for any language
		synctest.Wait()
		if n := p.live.Load(); n != 1 {
			t.Errorf("%d kernels at once", n)
		}
		if err := <-closed; err != nil {
			t.Fatal(err)
		}
		wait(t, e)
		if e.Number() != 1 || !strings.Contains(e.Preamble(), "the session was closed") {
			t.Errorf("number %d, preamble %q", e.Number(), e.Preamble())
		}
		if p.specs[0].Workspace == p.specs[1].Workspace {
			t.Error("the deleted workspace was used again")
		}
	})
}

func TestCloseEndsTheRunningCellAndWhatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{})
		defer m.Shutdown(context.Background())
		running, queued := start(t, m, alice, python("s", "stubborn")), start(t, m, alice, python("s", "x"))
		synctest.Wait()
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := queued.Wait(t.Context()); fault.KindOf(err) != fault.Cancelled {
			t.Errorf("queued: %v", err)
		}
		if r := wait(t, running); r.Status != kernels.StatusDied || !r.Death.Asked ||
			r.Death.Cause != "the session was closed while this cell ran" {
			t.Errorf("running: %+v %+v", r, r.Death)
		}
		// Nothing of it is left, not even an empty workspace: it is not known any more.
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); fault.KindOf(err) != fault.NotFound {
			t.Errorf("closing what is not there: %v", err)
		}
	})
}

func TestShutdownFailsWhatWaitsAndRefusesWhatComes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{stopTime: 2 * time.Second}
		m := newTestManager(t, p)
		var queued []*Execution
		for i := range 20 {
			id := fmt.Sprintf("s%d", i)
			start(t, m, alice, python(id, "sleep 1h"))
			queued = append(queued, start(t, m, alice, python(id, "x")))
		}
		synctest.Wait()
		if s := m.Stats(); s.Sessions[Busy] != 20 || s.Queued != 20 || s.Executions != 40 {
			t.Errorf("stats %+v", s)
		}
		began := time.Now()
		if err := m.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("20 sessions stopped in %v, side by side it is 2 s", took)
		}
		for _, e := range queued {
			if _, err := e.Wait(t.Context()); fault.KindOf(err) != fault.Unavailable {
				t.Errorf("waiting cell got %v", err)
			}
		}
		if _, err := m.Execute(t.Context(), alice, python("new", "x")); fault.KindOf(err) != fault.Unavailable {
			t.Errorf("new call got %v", err)
		}
	})
}

func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newTestManager(t, &fakeProvisioner{stopTime: time.Hour})
		execute(t, m, alice, "s", "x")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Shutdown(ctx); err == nil || !strings.Contains(err.Error(), "1 sessions") {
			t.Errorf("got %v", err)
		}
		if err := m.Shutdown(t.Context()); err != nil {
			t.Errorf("second Shutdown: %v", err)
		}
	})
}
