package sessions

import (
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
)

// Whoever takes the channel first and then looks sees every state that lasts, of the sessions that he asked about and no others.
func TestChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p)
		told := func(c <-chan struct{}) bool {
			select {
			case <-c:
				return true
			default:
				return false
			}
		}
		one, all, everybody := m.Changed(alice, "s"), m.Changed(alice, ""), m.Changed(Owner{}, "")
		other, bobs := m.Changed(alice, "other"), m.Changed(bob, "")
		e := start(t, m, alice, python("s", "x"))
		if !told(one) || !told(all) || !told(everybody) || told(other) || told(bobs) {
			t.Error("a new session is not told to those who look, or is to others")
		}
		var seen []State
		for {
			changed := m.Changed(alice, "s")
			info, err := m.Get(t.Context(), alice, "s")
			if err != nil {
				t.Fatal(err)
			}
			if n := len(seen); n == 0 || seen[n-1] != info.State {
				seen = append(seen, info.State)
			}
			if info.State == Idle && info.Last == e && e.Info().Phase == PhaseEnded {
				break
			}
			<-changed
		}
		if seen[0] != Starting || seen[len(seen)-1] != Idle {
			t.Errorf("seen: %v", seen)
		}
		changed := m.Changed(alice, "s")
		if err := m.Close(t.Context(), alice, "s", CloseOptions{}); err != nil || !told(changed) {
			t.Errorf("closed: %v", err)
		}
	})
}

// Looking for sessions that nobody has takes no more memory for ever, and whoever looks at others misses nothing.
func TestChangedIsBounded(t *testing.T) {
	m := newTestManager(t, &fakeProvisioner{})
	first := m.Changed(alice, "s")
	for i := range 2 * maxWaits {
		m.Changed(bob, strconv.Itoa(i))
	}
	select {
	case <-first:
	default:
		t.Error("who looked first is not told to look again")
	}
	if n := len(m.watchers.waits); n > maxWaits {
		t.Errorf("%d channels are kept", n)
	}
}

// A session that died says why, until it has a kernel again.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		execute(t, m, alice, "s", "x")
		changed := m.Changed(alice, "s")
		p.KillLast()
		<-changed
		synctest.Wait()
		info, err := m.Get(t.Context(), alice, "s")
		if err != nil || info.State != Died || info.Lost == "" || m.Stats().Deaths != 1 {
			t.Errorf("%+v, %v, %+v", info, err, m.Stats())
		}
		execute(t, m, alice, "s", "x")
		if info, _ := m.Get(t.Context(), alice, "s"); info.Lost != "" {
			t.Errorf("it is said still: %q", info.Lost)
		}
	})
}

// A session is there without a cell, with its kernel; one that cannot be is not.
func TestBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p)
		info, err := m.Begin(t.Context(), alice, Request{Language: "python"})
		if err != nil || info.ID == "" || info.State != Idle || info.Executions != 0 {
			t.Fatalf("%+v, %v", info, err)
		}
		if _, err := m.Begin(t.Context(), alice, Request{SessionID: info.ID, Language: "python"}); err != nil || p.launched.Load() != 1 {
			t.Errorf("begun again: %v, %d kernels", err, p.launched.Load())
		}
		if _, err := m.Begin(t.Context(), alice, Request{SessionID: info.ID, Language: "bash"}); fault.KindOf(err) != fault.Conflict {
			t.Errorf("with another language: %v", err)
		}
		if e, _ := execute(t, m, alice, info.ID, "x"); e.Number() != 1 || e.Preamble() != "" {
			t.Errorf("its first cell is %d, told %q", e.Number(), e.Preamble())
		}
		p.NotLaunched(errors.New("there is no engine"))
		if _, err := m.Begin(t.Context(), alice, Request{SessionID: "other", Language: "python"}); err == nil {
			t.Error("begun without an engine")
		}
		p.NotLaunched(nil)
		synctest.Wait()
		if list, _ := m.List(t.Context(), alice); len(list) != 1 {
			t.Errorf("left: %+v", list)
		}
	})
}
