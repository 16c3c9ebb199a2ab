package sessions

import (
	"context"
	"slices"
	"testing"
	"time"

	"cellblock/kernels"
)

// What the tests in package sessions_test, which may import stores, need of the ones in here.

// FakeProvisioner launches kernels that exist in memory only.
type FakeProvisioner = fakeProvisioner

// NewTestManager returns a Manager over the fake.
func NewTestManager(t *testing.T, p *FakeProvisioner, change ...func(*Config)) *Manager {
	t.Helper()
	return newTestManager(t, p, change...)
}

var (
	Alice = alice
	Bob   = bob
	// StartCell is Execute that must be accepted, WaitFor is Wait for a cell that must have run.
	StartCell = start
	WaitFor   = wait
	TextOf    = text
)

// Python is a request for a Python cell.
func Python(id, code string) Request { return python(id, code) }

// StopsIn is how long it takes to stop a kernel.
func (p *FakeProvisioner) StopsIn(d time.Duration) { p.stopTime = d }

// SavesIn sets how long kernels take to save their variables, Loads what those say that load them.
func (p *FakeProvisioner) SavesIn(d time.Duration) { p.saving = d }
func (p *FakeProvisioner) Loads(answer string)     { p.loads = answer }

// AttachesIn is how long it takes to attach to a kernel.
func (p *FakeProvisioner) AttachesIn(d time.Duration) { p.attachTime = d }

// InMemory is how many bytes of a cell's outputs are in memory.
func (e *Execution) InMemory() int64 { return e.record.size() }

// Records is of how many ended cells a session holds the record.
func (m *Manager) Records(o Owner, id string) int {
	s, err := m.find(context.Background(), o, id)
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.records)
}

// Recent is how many ended cells a session holds.
func (m *Manager) Recent(o Owner, id string) int {
	s, err := m.find(context.Background(), o, id)
	if err != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.recent)
}

// NewFake is New over a FakeProvisioner.
func NewFake(cfg Config) (*Manager, error) {
	m, err := New(cfg)
	if err == nil {
		m.connect = cfg.Provisioner.(*FakeProvisioner).connect
	}
	return m, err
}

// MaxWaiting is how many changes may wait for a store before no new cells are taken.
const MaxWaiting = maxWaiting

// Burden adds n changes that say nothing to those of Alice's session that wait for the store.
func Burden(m *Manager, id string, n int) {
	m.mu.Lock()
	s := m.sessions[key{alice, id}]
	m.mu.Unlock()
	for range n {
		s.save(GenerationEnded{Number: 1 << 20}) // one that never was
	}
}

// HasImages has the fake run kernels in images.
func (p *FakeProvisioner) HasImages() { p.images = true }

// Specs are what was launched, in order.
func (p *FakeProvisioner) Specs() []kernels.Spec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.specs)
}

// Live is how many kernels run.
func (p *FakeProvisioner) Live() int64 { return p.live.Load() }
