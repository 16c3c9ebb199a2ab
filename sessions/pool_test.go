package sessions

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/kernels"
)

// poolOf makes a pool of n Python kernels.
func poolOf(n int) func(*Config) {
	return func(c *Config) {
		c.PoolSize = n
		c.Runtimes = map[string]Runtime{"python": {Kernelspec: kernels.Kernelspec{Name: "python3", Language: "python"}, Image: "python:latest"}}
	}
}

// pooledManager returns a Manager whose pool is full, inside a synctest bubble.
func pooledManager(t *testing.T, p *fakeProvisioner, size int, change ...func(*Config)) *Manager {
	t.Helper()
	m := newTestManager(t, p, append([]func(*Config){poolOf(size)}, change...)...)
	m.StartPool()
	time.Sleep(time.Minute)
	synctest.Wait()
	if ready := m.Stats().Pool.Ready["python"]; ready != size {
		t.Fatalf("%d kernels are ready, want %d", ready, size)
	}
	return m
}

func (p *fakeProvisioner) spec(i int) kernels.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.specs[i]
}

func TestPoolIsFilledOneKernelAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p, func(c *Config) { c.PoolSize = 2 })
		defer m.Shutdown(context.Background())
		time.Sleep(time.Minute)
		if p.launched.Load() != 0 {
			t.Error("kernels were launched before the pool was started")
		}
		m.StartPool()
		m.StartPool()
		for n := range int64(2) { // two of python; nobody has used bash
			time.Sleep(time.Second)
			synctest.Wait()
			if launched, live := p.launched.Load(), p.live.Load(); launched != n+1 || live > n {
				t.Errorf("after %d s: %d launches, %d live", n+1, launched, live)
			}
		}
		time.Sleep(time.Minute)
		stats := m.Stats()
		if p.launched.Load() != 2 || stats.Pool.Ready["python"] != 2 || len(stats.Pool.Ready) != 1 || len(stats.Sessions) != 0 {
			t.Errorf("%d launches, %+v", p.launched.Load(), stats)
		}
	})
}

// A language has kernels in the pool once somebody has used it.
func TestPoolTakesUpLanguages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := newTestManager(t, p, func(c *Config) { c.PoolSize = 2 })
		defer m.Shutdown(context.Background())
		m.StartPool()
		e, err := m.Execute(t.Context(), alice, Request{SessionID: "shell", Language: "bash", Code: "ok"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if ready := m.Stats().Pool.Ready; ready["bash"] != 2 || ready["python"] != 2 || p.launched.Load() != 5 {
			t.Errorf("%d launches, ready %v", p.launched.Load(), ready)
		}
	})
}

func TestPoolIsNotBegunTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p, func(c *Config) { c.PoolSize, c.Runtimes = 1, map[string]Runtime{"r": {}, "bash": {}} })
		defer m.Shutdown(context.Background())
		m.StartPool() // of neither language: they are none's favourite
		m.StartPool()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := p.launched.Load(); n != 0 {
			t.Errorf("%d launches", n)
		}
	})
}

func TestPoolGivesAndRefills(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		began := time.Now()
		e, r := execute(t, m, alice, "s", "x")
		if took := time.Since(began); took != 0 || r.Status != kernels.StatusOK || e.Number() != 1 || e.Generation() != 1 || e.Preamble() != "" {
			t.Errorf("took %v: %v, cell %d, generation %d, %q", took, r.Status, e.Number(), e.Generation(), e.Preamble())
		}
		time.Sleep(poolQuiet - time.Millisecond)
		synctest.Wait()
		if n := p.launched.Load(); n != 1 {
			t.Errorf("%d launches before it was quiet", n)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := m.Stats().Pool.Ready["python"]; n != 1 || p.launched.Load() != 2 {
			t.Errorf("%d ready after %d launches", n, p.launched.Load())
		}
	})
}

// More sessions at once than the pool has kernels: the others start theirs, as without a pool, and no two share a folder.
func TestPoolDemandLargerThanThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{launchTime: time.Second}
		m := pooledManager(t, p, 2)
		defer m.Shutdown(context.Background())
		began := time.Now()
		var cells []*Execution
		for i := range 6 {
			cells = append(cells, start(t, m, []Owner{alice, bob}[i%2], python(fmt.Sprint("s", i/2), "sleep 10s")))
		}
		atOnce := 0
		for _, e := range cells {
			wait(t, e)
			if _, started := e.Phase(); started.Equal(began) {
				atOnce++
			}
		}
		folders := map[string]bool{}
		for i := range cells {
			dir, _ := m.workspaces.Find(key{[]Owner{alice, bob}[i%2], fmt.Sprint("s", i/2)}.workspace())
			folders[dir] = true
		}
		if atOnce != 2 || len(folders) != 6 {
			t.Errorf("%d began at once, in %d folders", atOnce, len(folders))
		}
	})
}

func TestPoolWaitsWhileCellsRun(t *testing.T) {
	for code, want := range map[string]time.Duration{
		"sleep 3s": 3*time.Second + poolQuiet,
		"sleep 1h": poolPatience,
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvisioner{}
			m := pooledManager(t, p, 1)
			defer m.Shutdown(context.Background())
			e := start(t, m, alice, python("s", code))
			time.Sleep(want - time.Millisecond)
			synctest.Wait()
			if p.launched.Load() != 1 {
				t.Errorf("%s: refilled too early", code)
			}
			time.Sleep(time.Millisecond)
			synctest.Wait()
			if p.launched.Load() != 2 {
				t.Errorf("%s: not refilled after %v", code, want)
			}
			e.Cancel()
			wait(t, e)
		})
	}
}

// Images are made by whoever likes to, and the pool does not grow with them. What nobody wants any more makes room.
func TestPoolIsBoundedByChoices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		for round := range 2 {
			for i := range 2 * maxUnusual {
				m.pool.want(Choice{Language: "python", Profile: DefaultProfile, Image: fmt.Sprint(round, "-", i)})
			}
			time.Sleep(10 * time.Minute)
			synctest.Wait()
			if n := p.live.Load(); n != maxUnusual+1 {
				t.Errorf("round %d: %d kernels wait", round, n)
			}
			time.Sleep(3 * poolRenewal)
			synctest.Wait()
			if n := p.live.Load(); n != 1 {
				t.Errorf("round %d: %d kernels wait for nobody", round, n)
			}
		}
	})
}

func TestPoolIsNotFilledWhileMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := newTestManager(t, p, poolOf(1))
		defer m.Shutdown(context.Background())
		var short atomic.Bool
		short.Store(true)
		m.pool.short = short.Load
		m.StartPool()
		time.Sleep(time.Minute)
		synctest.Wait()
		if p.launched.Load() != 0 {
			t.Error("a kernel was launched")
		}
		short.Store(false)
		time.Sleep(maxPoolPause)
		synctest.Wait()
		if p.launched.Load() != 1 {
			t.Errorf("%d launches", p.launched.Load())
		}
	})
}

// Whatever the pool is doing, nothing of it is left after a shutdown: no kernel (newTestManager), no folder, no goroutine.
func TestPoolEndsWithTheManager(t *testing.T) {
	for at := range 4 {
		synctest.Test(t, func(t *testing.T) {
			p := &fakeProvisioner{launchTime: time.Second}
			m := newTestManager(t, p, poolOf(2))
			m.StartPool()
			time.Sleep(time.Duration(at) * 800 * time.Millisecond)
			if err := m.Shutdown(context.Background()); err != nil {
				t.Error(err)
			}
			m.StartPool()
			left, _ := filepath.Glob(filepath.Join(m.cfg.DataDir, "workspaces", "*"))
			if len(left) > 0 || p.live.Load() != 0 {
				t.Errorf("stopped at %d: %d kernels, %v", at, p.live.Load(), left)
			}
		})
	}
}

func TestPooledKernelsLateOutputReachesItsSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		c := p.last()
		c.late(kernels.Output{Kind: kernels.OutputStream, Text: "before"}, "nobody's")
		execute(t, m, alice, "s", "x")
		c.late(kernels.Output{Kind: kernels.OutputStream, Text: "after"}, c.cells[len(c.cells)-1].id)
		e, _ := execute(t, m, alice, "s", "y")
		if late := e.Late(); len(late) != 1 || late[0].Outputs[0].Text != "after" {
			t.Errorf("%+v", late)
		}
	})
}

func TestPoolPreloads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1, func(c *Config) { c.PoolPreload = []string{"numpy", "no.such"} })
		defer m.Shutdown(context.Background())
		e, _ := execute(t, m, alice, "s", "x")
		var codes []string
		for _, c := range p.clients[0].cells {
			codes = append(codes, c.code)
		}
		want := strings.Join([]string{fmt.Sprintf(aside, format), fmt.Sprintf(aside, "import numpy"), fmt.Sprintf(aside, "import no.such"), fmt.Sprintf(aside, settle), "x"}, "; ")
		if got := strings.Join(codes, "; "); got != want || e.Number() != 1 || text(t, e) != "x" {
			t.Errorf("%q, cell %d", got, e.Number())
		}
	})
}
