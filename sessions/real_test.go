//go:build linux

package sessions_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
	"cellblock/kernels/kernelstest"
	"cellblock/kernels/local"
	"cellblock/sessions"
)

// newReal returns a Manager whose kernels are the host's Python in real sandboxes.
func newReal(t *testing.T, change ...func(*sessions.Config)) *sessions.Manager {
	t.Helper()
	kernelstest.NeedPython(t)
	dir := kernelstest.ShortDir(t)
	p, err := local.New(local.Config{
		StateDir: filepath.Join(dir, "state"), RunDir: filepath.Join(dir, "run"), ShimPath: kernelstest.BuildShim(t),
	})
	kernelstest.Need(t, err == nil, fmt.Sprintf("the local provisioner (%v)", err))
	err = p.Health(t.Context())
	kernelstest.Need(t, err == nil, fmt.Sprintf("a sandbox (%v)", err))
	cfg := sessions.Config{
		Provisioner: p, DataDir: filepath.Join(dir, "data"),
		Runtimes: map[string]sessions.Runtime{"python": {Kernelspec: kernelstest.Python}},
		Profiles: map[string]sessions.Profile{sessions.DefaultProfile: {Limits: kernels.Limits{Memory: 1 << 30, CPUs: 1, PIDs: 128, Tmp: 64 << 20}}},
		Logger:   slog.New(slog.DiscardHandler), Grace: 2 * time.Second,
	}
	t.Cleanup(func() { _ = p.Close() })
	return realManager(t, cfg, change...)
}

// realManager returns a Manager that ends with the test, and leaves no kernel.
func realManager(t *testing.T, cfg sessions.Config, change ...func(*sessions.Config)) *sessions.Manager {
	t.Helper()
	for _, f := range change {
		f(&cfg)
	}
	m, err := sessions.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := m.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if refs, err := cfg.Provisioner.List(ctx); err != nil || len(refs) > 0 {
			t.Errorf("kernels are left: %v %v", refs, err)
		}
	})
	return m
}

var owner = sessions.Owner{Issuer: "test", Subject: "carol"}

// run runs a cell to its end and returns what it printed and its results' plain texts.
func run(t *testing.T, m *sessions.Manager, r sessions.Request) (string, sessions.Result, *sessions.Execution) {
	t.Helper()
	e, err := m.Execute(t.Context(), owner, r)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for out, err := range e.Outputs(t.Context()) {
		if err != nil {
			t.Fatalf("%v\n%s", err, fault.Hint(err))
		}
		b.WriteString(out.Text)
		b.Write(out.Data["text/plain"])
	}
	result, err := e.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return b.String(), result, e
}

func cell(code string) sessions.Request { return sessions.Request{SessionID: "real", Code: code} }

func TestRealSession(t *testing.T) {
	m := newReal(t)
	if got, r, _ := run(t, m, cell("x = 20\nprint('hello')\nx + 1")); got != "hello\n\"21\"" || r.Status != kernels.StatusOK {
		t.Fatalf("%q %+v", got, r)
	}
	if got, r, _ := run(t, m, cell("1/0")); r.Status != kernels.StatusError || r.Error.Name != "ZeroDivisionError" {
		t.Errorf("%q %+v", got, r)
	}
	if got, _, _ := run(t, m, cell("open('kept.txt', 'w').write('here'); x")); got != `"20"` {
		t.Errorf("after an error: %q", got)
	}

	// Timeout: SIGINT is enough for sleep, and variables are kept.
	r := cell("import time\ntime.sleep(60)")
	r.Timeout = time.Second
	if _, res, _ := run(t, m, r); !res.TimedOut || res.Interrupt.Rung != sessions.RungInterrupt || !res.Interrupt.VariablesKept {
		t.Errorf("timeout: %+v", res)
	}
	if got, _, _ := run(t, m, cell("x")); got != `"20"` {
		t.Errorf("after a timeout: %q", got)
	}

	// Late output of a thread, while another session takes its time.
	run(t, m, cell("import threading\ndef late():\n    time.sleep(0.2)\n    print('from a thread')\nthreading.Thread(target=late).start()"))
	run(t, m, sessions.Request{SessionID: "other", Code: "import time; time.sleep(1)"})
	if _, _, e := run(t, m, cell("1")); len(e.Late()) != 1 || !strings.Contains(e.Late()[0].Outputs[0].Text, "from a thread") {
		t.Errorf("late: %+v", e.Late())
	}

	// Death: told at once, and the next cell has the files but not the variables.
	_, res, _ := run(t, m, cell("import os; os.kill(os.getpid(), 9)"))
	if res.Status != kernels.StatusDied || !strings.Contains(res.Death.Cause, "SIGKILL") || res.Duration > 5*time.Second {
		t.Errorf("death: %+v %+v", res, res.Death)
	}
	got, res, e := run(t, m, cell("print(open('kept.txt').read(), 'x' in globals())"))
	if got != "here False\n" || e.Generation() != 2 || !strings.Contains(e.Preamble(), "SIGKILL") {
		t.Errorf("after death: %q %+v %q", got, res, e.Preamble())
	}

	// Restart.
	run(t, m, cell("x = 1"))
	if info, err := m.Restart(t.Context(), owner, "real"); err != nil || info.Generation != 3 {
		t.Errorf("restart: %+v %v", info, err)
	}
	if got, _, _ := run(t, m, cell("print(open('kept.txt').read(), 'x' in globals())")); got != "here False\n" {
		t.Errorf("after a restart: %q", got)
	}
	if err := m.Close(t.Context(), owner, "real", sessions.CloseOptions{DeleteFiles: true}); err != nil {
		t.Error(err)
	}
}

// What can be interrupted is; what cannot is restarted, and the caller is told.
func TestRealInterrupts(t *testing.T) {
	m := newReal(t)
	run(t, m, cell("x = 7"))
	for name, tt := range map[string]struct {
		code, rung string
		kept       bool
	}{
		"sleep":     {"import time; print('go', flush=True); time.sleep(60)", sessions.RungInterrupt, true},
		"busy loop": {"print('go', flush=True)\nwhile True: pass", sessions.RungInterrupt, true},
		"child":     {"import subprocess; print('go', flush=True); subprocess.run(['sleep', '60'])", sessions.RungInterrupt, true},
		"stubborn child": {"import subprocess\ndef stay():\n    subprocess.run(['sleep', '60'], start_new_session=True)\n" +
			"try:\n    print('go', flush=True)\n    stay()\nexcept KeyboardInterrupt:\n    try:\n        stay()\n" +
			"    except KeyboardInterrupt:\n        stay()", sessions.RungKillChildren, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, err := m.Execute(t.Context(), owner, cell(tt.code))
			if err != nil {
				t.Fatal(err)
			}
			for range e.Outputs(t.Context()) {
				break // it has said that it runs
			}
			report, err := m.Interrupt(t.Context(), owner, "real")
			if err != nil || !report.Ran || report.Rung != tt.rung || report.VariablesKept != tt.kept {
				t.Errorf("%+v %v", report, err)
			}
			if got, _, _ := run(t, m, cell("x")); (got == `"7"`) != tt.kept {
				t.Errorf("afterwards: %q", got)
			}
		})
	}
	t.Run("ignores everything", func(t *testing.T) {
		e, err := m.Execute(t.Context(), owner, cell("import signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nprint('go', flush=True)\ntime.sleep(60)"))
		if err != nil {
			t.Fatal(err)
		}
		for range e.Outputs(t.Context()) {
			break
		}
		e.Cancel()
		res, err := e.Wait(t.Context())
		if err != nil || !res.Cancelled || res.Interrupt.Rung != sessions.RungRestart || res.Interrupt.VariablesKept {
			t.Errorf("%+v %v", res, err)
		}
		got, _, e := run(t, m, cell("print('x' in globals())"))
		if got != "False\n" || !strings.Contains(e.Preamble(), "did not stop") {
			t.Errorf("%q %q", got, e.Preamble())
		}
	})
}

func TestRealConcurrentSessions(t *testing.T) {
	m := newReal(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			r := sessions.Request{SessionID: fmt.Sprint("s", i%2), Code: fmt.Sprintf("import os; print(os.getcwd()); n%d = %d", i, i)}
			if got, _, _ := run(t, m, r); got != "/workspace\n" {
				t.Errorf("%q", got)
			}
		})
	}
	wg.Wait()
	if infos, err := m.List(t.Context(), owner); err != nil || len(infos) != 2 || infos[0].Executions != 2 {
		t.Errorf("%+v %v", infos, err)
	}
}
