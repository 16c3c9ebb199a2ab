package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
	"cellblock/sessions"
	"cellblock/sessions/storetest"
)

func TestExecute(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		got := w.run("analysis", "print a\nstderr b\npng\nresult 7")
		got.expect(t, false, "a\n[stderr] b\n(image/png)\n7\n[session analysis · cell 1 · ok · ")
		if got.structured != nil {
			t.Errorf("structuredContent %s", got.structured)
		}
		w.run("analysis", "set x 42").expect(t, false, "cell 2 · ok")
		w.run("analysis", "get x").expect(t, false, "42\n[session analysis · cell 3 · ok · 0.00 s]")
	})
}

func TestErrorsAreResults(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		got := w.run("s", "print before\nerror ValueError it is wrong")
		got.expect(t, true, "before\n", "ValueError: it is wrong", "[session s · cell 1 · error · ")
		w.run("s", "stderr only a warning").expect(t, false, "[stderr] only a warning")
		w.run("s", "bareerror\nerror E x").expect(t, true, "E: x") // the reply does not say it, the output does
		w.run("s", "noreply").expect(t, true, "incomplete", "Note: the kernel's reply never came")
	})
}

func TestMintedIDIsSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		got := w.call("execute_python", map[string]any{"code": "1+1"})
		got.expect(t, false, "(new: pass this session_id to go on with it) · cell 1 · ok")
		last := got.texts[len(got.texts)-1]
		id := strings.Fields(strings.TrimPrefix(last, "[session "))[0]
		w.run(id, "1+1").expect(t, false, "[session "+id+" · cell 2")
	})
}

func TestDeathIsToldTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "print a\ndie SIGKILL").expect(t, true, "a\nThe kernel was killed by SIGKILL. Variables are lost, files are kept; "+
			"the next call runs on a new kernel.\n[session s · cell 1 · kernel died · ")
		got := w.run("s", "1+1")
		got.expect(t, false, "killed by SIGKILL", "generation 2", "cell 2 · ok")
		if !strings.HasPrefix(got.texts[0], "Note: The kernel of session") {
			t.Errorf("first: %s", got.texts[0])
		}
		w.run("s", "oom").expect(t, true, "The kernel ran out of memory (limit 2 GiB) and was killed. Work on the data in pieces")
	})
}

// A process that is killed for memory, and is not the kernel, may leave its cell waiting or going on: the result says what was done to it.
func TestKilledProcessesAreTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		const advice = " killed while the cell ran, for want of memory; the limit is 2 GiB for all of them together: work on the data in pieces"
		w.run("s", "used 1s 5 1").expect(t, false, "A process of this session was"+advice, "· ok ·")
		w.run("s", "used 1s 5 1000").expect(t, false, "1,000 processes of this session were"+advice)
		w.execute("s", "used 1s 5 2\nwait", map[string]any{"timeout_seconds": 2}).expect(t, true, "timeout of 2.0 s", "2 processes of this session were"+advice)
		w.execute("s", "used 1s 5 2\nwait", map[string]any{"wait_seconds": 1}).expect(t, false, "2 processes of this session were"+advice,
			"waits in vain: interrupt_session stops it.", "· still running, 1.0 s so far")
		w.call("interrupt_session", map[string]any{"session_id": "s"}).expect(t, false, "was stopped")
		w.execute("s", "used 1s 5\nwait", map[string]any{"wait_seconds": 1, "timeout_seconds": 2}).expect(t, false, "still running")
		if got := w.call("get_execution", map[string]any{"session_id": "s", "execution_id": 5, "wait_seconds": 0}); strings.Contains(got.String(), "killed") {
			t.Error(got)
		}
		if got := w.run("s", "used 1s 5"); strings.Contains(got.String(), "killed") {
			t.Error(got)
		}
	})
}

func TestTimeoutsAreExplained(t *testing.T) {
	for code, words := range map[string][]string{
		"wait":         {"ran longer than its timeout of 2.0 s. An interrupt was enough. Variables are kept.", "· timed out · 2.0 s]"},
		"child":        {"It stopped when the processes that it had started were killed; variables are kept."},
		"stubborn 24h": {"ran longer than its timeout of 2.0 s. The kernel was restarted because", "Variables are lost, files are kept"},
	} {
		inBubble(t, func(t *testing.T, w *world) {
			got := w.call("execute_python", map[string]any{"session_id": "s", "code": code, "timeout_seconds": 2})
			got.expect(t, true, words...) // also where the code itself has ended well
		})
	}
}

func TestKernelThatDoesNotStart(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kernels.LaunchError = fault.New(fault.Unavailable, "there is no container engine").WithHint("Start Docker.")
		w.run("s", "1+1").expect(t, true, `the python kernel of session "s" did not start: there is no container engine`,
			"Hint: Start Docker.", "[session s · cell 1 · no result]")
		w.kernels.LaunchError = nil
		w.run("s", "1+1").expect(t, false, "2")
	})
}

// Where the machine's folders and its engine are is for the operator, in the log.
func TestKernelThatDoesNotStartTellsNoPlaces(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kernels.LaunchError = fault.New(fault.Unavailable, "the container engine at tcp://10.1.2.3:2375 does not answer").WithHint("Set DOCKER_HOST=tcp://10.1.2.3:2375.")
		w.run("r", "1+1").expect(t, true, "did not start: the container engine at … does not answer", "Hint: Set DOCKER_HOST=….")
		w.kernels.LaunchError = errors.New(`launch: dial "unix:///run/engine/docker.sock", open /opt/cellblock/bin/shim: no such file; image team/python:3`)
		got := w.run("s", "1+1")
		got.expect(t, true, `did not start: launch: dial "…/docker.sock", open …/shim: no such file; image team/python:3`)
		for _, folder := range []string{"/run", "/opt", "bin"} {
			if strings.Contains(got.String(), folder) {
				t.Errorf("%s is told: %s", folder, got)
			}
		}
	})
}

func TestLateOutputIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("s", "late 1s from a thread")
		time.Sleep(2 * time.Second)
		w.run("s", "print now").expect(t, false, "now\n[cell 1 went on in the background and produced:]\nfrom a thread\n[session s · cell 2")
	})
}

// What is told of many earlier cells is bounded together.
func TestLateOutputOfManyCellsIsBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		for range 20 {
			w.run("s", "late 10s "+strings.Repeat("x", 3000))
		}
		time.Sleep(time.Minute)
		got := w.run("s", "print now")
		got.expect(t, false, "[cell 1 went on", "more cells went on in the background; get_execution reads")
		if len(got.String()) > 2*lateBudget.chars {
			t.Errorf("%d characters", len(got.String()))
		}
	})
}

// A call holds no more of its cell than the session does, however long the cell goes on.
func TestCallHoldsNoMoreThanTheSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) { c.RecordBytes = 20_000 })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		var code strings.Builder
		for i := range 300 {
			fmt.Fprintf(&code, "png %d\nsleep 1ms\n", i)
		}
		got := w.run("s", code.String())
		got.expect(t, false, "outputs left out here")
		if n := strings.Count(got.String(), "(image/png)"); n > 100 || n < 10 {
			t.Errorf("%d of 300 images, of which the session keeps fewer", n)
		}
	})
}

func TestCancelledCallStopsItsCell(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(3*time.Second, cancel)
		began := time.Now()
		got := w.callWith(ctx, map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "stubborn 4s"}})
		got.expect(t, true, "the call ended before its cell did", "[session s · cell 1 · no result]")
		if time.Since(began) != 3*time.Second {
			t.Errorf("it took %v", time.Since(began))
		}
		w.run("s", "1+1").expect(t, false, "2\n[session s · cell 2 · ok")
	})
}

func TestProgress(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.kernels.LaunchDelay = 12 * time.Second
		params := func(code string) map[string]any {
			return map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": code},
				"_meta": map[string]any{"progressToken": "tok"}}
		}
		w.callWith(t.Context(), params("print hello\nsleep 21s\nprint bye")).expect(t, false, "hello\nbye")
		var messages []string
		before := note{}
		for _, n := range w.notes {
			if n.token != "tok" || n.value <= before.value || n.at-before.at > lifeSign {
				t.Errorf("%+v after %+v", n, before)
			}
			messages, before = append(messages, n.message), n
		}
		all := strings.Join(messages, "|")
		for _, want := range []string{"starting the kernel|", "running for 0.00 s\nhello|running for 5.0 s|", "\nbye"} {
			if !strings.Contains(all, want) {
				t.Errorf("progress does not say %q: %s", want, all)
			}
		}

		w.notes = nil
		w.callWith(t.Context(), params(strings.Repeat("print x\nsleep 10ms\n", 300))).expect(t, false, "x")
		if n := len(w.notes); n < 8 || n > 14 {
			t.Errorf("%d notifications in 3 seconds", n)
		}
		total := 0
		for _, n := range w.notes {
			total += strings.Count(n.message, "x")
		}
		if total != 300 {
			t.Errorf("%d of 300 lines were told", total)
		}

		w.notes = nil
		w.run("s", "sleep 60s")
		if len(w.notes) > 0 {
			t.Errorf("progress without a token: %+v", w.notes)
		}
	})
}

// What is told live is a beginning of the result's texts, so that a client who prints it needs only print the rest.
func TestLiveLines(t *testing.T) {
	for code, want := range map[string]string{
		"print a\nstderr b\nsleep 1s\nprint c": "a\nc\n",
		"print a\nsleep 1s\nclear\nprint b":    "a\n",
		"print a\nsleep 1s\nflood 500000":      "a\n",
		"print a\nsleep 1s\nprint x\ry":        "a\n",
		"sleep 6s\nresult 5":                   "",
	} {
		inBubble(t, func(t *testing.T, w *world) {
			w.callWith(t.Context(), map[string]any{"name": "execute_python", "arguments": map[string]any{"code": code},
				"_meta": map[string]any{"progressToken": 1}})
			var got string
			for _, n := range w.notes {
				got += n.live
			}
			// Of a flood, more or less is told, as its pieces come.
			if got != want && !(strings.Contains(code, "flood") && strings.HasPrefix(got, want) && len(got) <= defaultBudget.chars/4) {
				t.Errorf("%q: live %.80q (%d bytes), want %q", code, got, len(got), want)
			}
		})
	}
}

func TestProgressOfACellThatWaits(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		go w.run("s", "sleep 11s")
		synctest.Wait()
		w.callWith(t.Context(), map[string]any{"name": "execute_python", "arguments": map[string]any{"session_id": "s", "code": "1+1"},
			"_meta": map[string]any{"progressToken": 7}}).expect(t, false, "2")
		if len(w.notes) != 2 || w.notes[0].message != "waiting for 1 cell before it in the session" {
			t.Errorf("%+v", w.notes)
		}
	})
}

// A model whose cell a person stops or takes back is told that it was a person.
func TestPersonStopsTheCellOfAModel(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		m, results := w.service.Sessions, make(chan called, 1)
		begin := func(code string) {
			go func() { results <- w.run("s", code) }()
			synctest.Wait()
		}
		begin("wait")
		if _, err := m.InterruptCell(t.Context(), w.owner, "s", 1, sessions.Person); err != nil {
			t.Fatal(err)
		}
		(<-results).expect(t, true, "A person in the viewer interrupted this cell. An interrupt was enough. Variables are kept.", "interrupted")
		w.call("get_execution", map[string]any{"session_id": "s", "execution_id": 1}).expect(t, true, "A person in the viewer interrupted this cell.")

		w.call("execute_python", map[string]any{"session_id": "s", "code": "wait", "wait_seconds": 0})
		for n, who := range []string{sessions.Person, "another client"} {
			begin("print never")
			if err := m.TakeBack(t.Context(), w.owner, "s", n+3, who); err != nil {
				t.Fatal(err)
			}
			(<-results).expect(t, true, who+" took this cell back before it ran", fmt.Sprintf("cell %d", n+3))
		}
		if _, err := m.RestartBy(t.Context(), w.owner, "s", sessions.Person); err != nil {
			t.Fatal(err)
		}
		w.call("get_execution", map[string]any{"session_id": "s", "execution_id": 2}).
			expect(t, true, "A person in the viewer restarted the kernel while this cell ran. Variables are lost")

		begin("wait")
		if _, err := m.InterruptCell(t.Context(), w.owner, "s", 0, "cursor 1.0"); err != nil {
			t.Fatal(err)
		}
		(<-results).expect(t, true, "Another client stopped this cell by interrupt_session. An interrupt was enough.", "interrupted")
	})
}

func TestSessionTools(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("a", "1+1")
		time.Sleep(time.Minute)
		go w.run("b", "wait")
		synctest.Wait()
		time.Sleep(30 * time.Second)

		got := w.call("list_sessions", nil)
		got.expect(t, false, "b · python · busy for 30 s · 1 cell · used 30 s ago\na · python · idle · 1 cell · used 1 min ago · kernel stops in 28 min unless a cell runs")
		var list struct{ Sessions []sessionEntry }
		if err := json.Unmarshal(got.structured, &list); err != nil || len(list.Sessions) != 2 || list.Sessions[0].BusySeconds != 30 {
			t.Errorf("%s %v", got.structured, err)
		}

		w.call("interrupt_session", map[string]any{"session_id": "b"}).expect(t, false, "The running cell of session b was stopped. An interrupt was enough. Variables are kept.")
		w.call("interrupt_session", map[string]any{"session_id": "b"}).expect(t, false, "was not running anything")
		w.call("restart_session", map[string]any{"session_id": "a"}).expect(t, false, "fresh kernel (generation 2)", "files are kept")
		w.run("a", "incarnation").expect(t, false, "restarted on request", "2\n[session a · cell 2")
		w.call("close_session", map[string]any{"session_id": "a"}).expect(t, false, "Session a is closed; its files are kept.")
		w.call("close_session", map[string]any{"session_id": "b", "delete_files": true}).expect(t, false, "its files and history are deleted")
		w.call("list_sessions", nil).expect(t, false, "No sessions.")
	})
}

// What was closed before is said to have been.
func TestCloseAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(c *sessions.Config) { c.Store = storetest.NewMemory() })
		defer w.kernels.StopAll()
		defer func() { _ = w.service.Sessions.Shutdown(context.Background()) }()
		w.run("a", "1+1")
		w.call("close_session", map[string]any{"session_id": "a"}).expect(t, false, "Session a is closed; its files are kept.")
		w.call("close_session", map[string]any{"session_id": "a"}).expect(t, false, "Session a was closed already; its files are kept.")
		w.call("close_session", map[string]any{"session_id": "a", "delete_files": true}).expect(t, false, "Session a was closed already; its files and history are deleted.")
		w.call("close_session", map[string]any{"session_id": "a"}).expect(t, true, "there is no session")
	})
}

func TestHealth(t *testing.T) {
	inBubble(t, func(t *testing.T, w *world) {
		w.run("a", "1+1")
		got := w.call("health", nil)
		got.expect(t, false, "ok · cellblock 1.2.3 · kernels by fake · 1 session", "limits: memory not enforced", "workspace size by measuring;")
		var report HealthReport
		if err := json.Unmarshal(got.structured, &report); err != nil || report.Status != HealthOK || report.Sessions["idle"] != 1 || report.Problems == nil {
			t.Errorf("%s %v", got.structured, err)
		}
		w.kernels.HealthError = fault.New(fault.Unavailable, "the engine does not answer").WithHint("Start it.")
		w.call("health", nil).expect(t, false, "down · ", "problem: the engine does not answer\n  to do: Start it.")
	})
}

func TestHealthOfThePool(t *testing.T) {
	report := HealthReport{Pool: &Pool{Size: 2, Ready: map[string]int{"python": 1, "bash": 2}, Problem: "no\nimage"}}
	const want = "kernels ready for new sessions: bash 2 of 2, python 1 of 2; the last start failed: no image"
	if text := healthText(report); !strings.Contains(text, want) {
		t.Errorf("%s", text)
	}
	if text := healthText(HealthReport{}); strings.Contains(text, "ready") {
		t.Errorf("without a pool: %s", text)
	}
}

func TestPanicIsAnErrorOfItsCall(t *testing.T) {
	w := newWorld(t)
	w.service.Config.Health = func(context.Context) HealthReport { panic("boom") }
	w.server = w.service.server()
	got := w.call("health", nil)
	got.expect(t, true, "health failed inside the server")
	if strings.Contains(got.String(), "boom") {
		t.Error("the panic's text was told to the caller")
	}
}

func TestStatusTexts(t *testing.T) {
	for d, want := range map[time.Duration]string{120 * time.Millisecond: "0.12 s", 3400 * time.Millisecond: "3.4 s", 75 * time.Second: "75 s"} {
		if got := words.Took(d); got != want {
			t.Errorf("%v: %q", d, got)
		}
	}
	if got := strings.Join(deathRemark(kernels.Death{Cause: "x."}, false), " "); !strings.HasPrefix(got, "X. Variables") {
		t.Error(got)
	}
}
