package sessions

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cellblock/internal/fault"
	"cellblock/kernels"
)

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

// The check that begins with a session serves its first kernel only, of which it was, and not for long.
func TestPoolCheckIsOfOneKernelAndOneMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &fakeProvisioner{}
		m := pooledManager(t, p, 2)
		defer m.Shutdown(context.Background())
		choice := Choice{Language: "python", Profile: DefaultProfile}
		check := m.pool.checkFirst(choice)
		first, second := m.pool.pop(choice), m.pool.pop(choice)
		if first == nil || second == nil || !check.serves(first) || check.serves(second) {
			t.Error("it is not of the first kernel alone")
		}
		if err := <-check.result; err != nil {
			t.Error(err)
		}
		if time.Sleep(checkTime); check.serves(first) {
			t.Error("it is believed for ever")
		}
		if none := m.pool.checkFirst(Choice{Language: "cobol"}); none.serves(first) {
			t.Error("a check of nothing serves")
		}
		for _, k := range []*pooled{first, second} {
			m.pool.throwAway(k, "")
		}
	})
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
