package sessions

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
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
		for _, name := range m.workspaces.byKey {
			folders[name] = true
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

// imageProvisioner is the fake with an image that can change.
type imageProvisioner struct {
	*fakeProvisioner
	image atomic.Pointer[string]
}

func (p *imageProvisioner) ImageID(_ context.Context, name string) (string, error) {
	if id := p.image.Load(); id != nil {
		return *id, nil
	}
	return "", errors.New("no image " + name)
}

// What is not fit to be handed over never is: it is thrown away and replaced, and the session gets another kernel.
func TestPoolChecksBeforeItGives(t *testing.T) {
	newer := "sha256:2"
	for name, spoil := range map[string]func(m *Manager, p *imageProvisioner){
		"died":                  func(_ *Manager, p *imageProvisioner) { p.last().die(kernels.Death{Cause: "killed"}) },
		"frozen":                func(_ *Manager, p *imageProvisioner) { p.last().frozen.Store(true) },
		"image changed":         func(_ *Manager, p *imageProvisioner) { p.image.Store(&newer) },
		"limits changed":        func(m *Manager, _ *imageProvisioner) { m.cfg.Profiles[DefaultProfile] = Profile{} },
		"language's image name": func(m *Manager, _ *imageProvisioner) { m.cfg.Runtimes["python"] = Runtime{Image: "other"} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &imageProvisioner{fakeProvisioner: &fakeProvisioner{}}
				older := "sha256:1"
				p.image.Store(&older)
				m := pooledManager(t, p.fakeProvisioner, 1, func(c *Config) { c.Provisioner = p })
				defer m.Shutdown(context.Background())
				spoilt := p.last()
				spoil(m, p)
				e, r := execute(t, m, alice, "s", "x")
				if r.Status != kernels.StatusOK || e.Generation() != 1 || spoilt.cells[len(spoilt.cells)-1].code == "x" || p.launched.Load() > 3 {
					t.Errorf("%v in generation %d, %d launches", r.Status, e.Generation(), p.launched.Load())
				}
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := p.live.Load(); n != 2 || m.Stats().Pool.Ready["python"] != 1 {
					t.Errorf("%d kernels live, %+v", n, m.Stats().Pool)
				}
			})
		})
	}
}

// While the engine does not answer nothing can be launched: what is ready is worth the more.
func TestPoolServesWhileTheImageCannotBeLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &imageProvisioner{fakeProvisioner: &fakeProvisioner{}}
		id := "sha256:1"
		p.image.Store(&id)
		m := pooledManager(t, p.fakeProvisioner, 1, func(c *Config) { c.Provisioner = p })
		defer m.Shutdown(context.Background())
		p.image.Store(nil)
		down := errors.New("the engine cannot be reached")
		p.launchErr.Store(&down)
		if _, r := execute(t, m, alice, "s", "x"); r.Status != kernels.StatusOK {
			t.Errorf("got %+v", r)
		}
	})
}

func TestPoolReplacesWhatDiesOrGetsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		p.last().die(kernels.Death{Cause: "killed"})
		time.Sleep(time.Second)
		synctest.Wait()
		if p.launched.Load() != 2 || m.Stats().Pool.Ready["python"] != 1 {
			t.Errorf("after a death: %d launches, %+v", p.launched.Load(), m.Stats().Pool)
		}
		p.last().frozen.Store(true)
		time.Sleep(poolAsking + answerTime + time.Second)
		synctest.Wait()
		if p.launched.Load() != 3 || p.live.Load() != 1 || m.Stats().Pool.Ready["python"] != 1 {
			t.Errorf("after it froze: %d launches, %d live", p.launched.Load(), p.live.Load())
		}
		time.Sleep(poolRenewal + time.Second)
		synctest.Wait()
		if p.launched.Load() != 4 || p.live.Load() != 1 || m.Stats().Pool.Ready["python"] != 1 {
			t.Errorf("after an hour: %d launches, %d live", p.launched.Load(), p.live.Load())
		}
	})
}

func TestPoolTriesAgainMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		var broken error = fault.New(fault.Unavailable, "there is no engine")
		p.launchErr.Store(&broken)
		m := newTestManager(t, p, poolOf(1))
		defer m.Shutdown(context.Background())
		m.StartPool()
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := p.launched.Load(); n < 5 || n > 20 || m.Stats().Pool.Problem != broken.Error() {
			t.Errorf("%d attempts in an hour, %+v", n, m.Stats().Pool)
		}
		p.launchErr.Store(nil)
		time.Sleep(maxPoolPause)
		synctest.Wait()
		if stats := m.Stats().Pool; stats.Ready["python"] != 1 || stats.Problem != "" {
			t.Errorf("after it was mended: %+v", stats)
		}
	})
}

// What somebody wanted once and cannot be started, an image that is gone for one, is not tried for ever.
func TestPoolForgetsWhatCannotBeStarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		var broken error = fault.New(fault.Unavailable, "there is no such image")
		p.launchErr.Store(&broken)
		m.pool.want(Choice{Language: "python", Profile: DefaultProfile, Image: "gone"})
		time.Sleep(poolRenewal / 2)
		synctest.Wait()
		if m.Stats().Pool.Problem == "" {
			t.Error("no start has failed")
		}
		time.Sleep(poolRenewal)
		p.launchErr.Store(nil)
		time.Sleep(poolRenewal)
		synctest.Wait()
		if stats := m.Stats().Pool; stats.Ready["python"] != 1 || stats.Problem != "" || p.live.Load() != 1 {
			t.Errorf("%+v, %d live", stats, p.live.Load())
		}
	})
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
		want := strings.Join([]string{fmt.Sprintf(aside, format), fmt.Sprintf(aside, "import numpy"), fmt.Sprintf(aside, "import no.such"), "x"}, "; ")
		if got := strings.Join(codes, "; "); got != want || e.Number() != 1 || text(t, e) != "x" {
			t.Errorf("%q, cell %d", got, e.Number())
		}
	})
}

// The files of a session go with it, over restarts and deaths, whatever folder its kernel brings; nobody else sees them.
func TestFilesFollowTheSessionIntoPooledFolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 1)
		defer m.Shutdown(context.Background())
		execute(t, m, alice, "s", "x")
		folder := func(o Owner) string {
			name, _ := m.workspaces.lookup(key{o, "s"})
			return filepath.Join(m.workspaces.root, name)
		}
		write := func(path string) {
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte("alice's"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if folder(alice) != p.spec(0).Workspace {
			t.Error("the session is not in the folder that its kernel was launched in")
		}
		write(filepath.Join(folder(alice), "a.txt"))
		write(filepath.Join(folder(alice), "deep", ".hidden"))
		for i, replace := range []func(){
			func() { _, _ = m.Restart(t.Context(), alice, "s") },
			func() { execute(t, m, alice, "s", "die") },
			func() { execute(t, m, alice, "s", "x") },
		} {
			time.Sleep(time.Minute) // the pool is filled
			before := folder(alice)
			replace()
			e, r := execute(t, m, alice, "s", "x")
			if r.Status != kernels.StatusOK {
				t.Fatalf("%d: %+v", i, r)
			}
			if moved := before != folder(alice); moved != (i < 2) {
				t.Errorf("%d: moved %v", i, moved)
			}
			if i < 2 && (e.Generation() != i+2 || !strings.Contains(e.Preamble(), "files in the workspace")) {
				t.Errorf("%d: generation %d, %q", i, e.Generation(), e.Preamble())
			}
			for _, name := range []string{"a.txt", "deep/.hidden"} {
				if got, err := os.ReadFile(filepath.Join(folder(alice), name)); err != nil || string(got) != "alice's" {
					t.Errorf("%d: %s: %q %v", i, name, got, err)
				}
			}
			if left, _ := filepath.Glob(before + "*"); i < 2 && len(left) > 0 {
				t.Errorf("%d: left %v", i, left)
			}
		}
		execute(t, m, bob, "s", "x")
		if entries, err := os.ReadDir(folder(bob)); err != nil || len(entries) > 0 || folder(bob) == folder(alice) {
			t.Errorf("bob's folder: %v %v", entries, err)
		}
		if err := m.Close(t.Context(), alice, "s", CloseOptions{DeleteFiles: true}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(folder(bob)); err != nil {
			t.Error(err)
		}
	})
}

// What cannot be moved stays where it is, and the kernel starts there.
func TestFilesThatCannotBeMovedStay(t *testing.T) {
	for name, spoil := range map[string]func(t *testing.T, m *Manager, old, spare string){
		"the kernel has made files": func(t *testing.T, _ *Manager, _, spare string) { put(t, filepath.Join(spare, "cache")) },
		"the folder is gone":        func(t *testing.T, _ *Manager, _, spare string) { _ = os.Remove(spare) },
		"another process uses them": func(t *testing.T, m *Manager, old, _ string) {
			other := m.workspaces.lock(filepath.Base(old))
			if err := other.RLock(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { other.Close() })
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &fakeProvisioner{}
				m := newTestManager(t, p, poolOf(1))
				defer m.Shutdown(context.Background())
				execute(t, m, alice, "s", "x")
				old := p.spec(0).Workspace
				put(t, filepath.Join(old, "a.txt"))
				m.StartPool()
				time.Sleep(time.Minute)
				spoil(t, m, old, p.spec(1).Workspace)
				if _, err := m.Restart(t.Context(), alice, "s"); err != nil {
					t.Fatal(err)
				}
				if p.spec(2).Workspace != old {
					t.Errorf("the next kernel was launched in %s, want %s", p.spec(2).Workspace, old)
				}
				if _, err := os.Stat(filepath.Join(old, "a.txt")); err != nil {
					t.Error(err)
				}
				if labels, _ := filepath.Glob(filepath.Join(m.workspaces.root, "*.json")); len(labels) > 2 {
					t.Errorf("labels: %v", labels)
				}
			})
		})
	}
}

func put(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(path), 0o600); err != nil {
		t.Fatal(err)
	}
}
