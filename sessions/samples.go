package sessions

import (
	"context"
	"slices"
	"sync"
	"time"

	"cellblock/kernels"
)

// Sample is what a session's container or sandbox used at a moment, as its shim counts it.
type Sample struct {
	At time.Time
	// CPU is how many processors it kept busy since the sample before, 1.5 for one and a half; 0 in the first of a kernel.
	CPU float64
	// Memory counts against MemoryLimit, in bytes; that is 0 where there is none.
	Memory, MemoryLimit int64
}

const (
	// SampleEvery is the shortest time between two samples of a session.
	SampleEvery = 2 * time.Second
	// maxSamples bounds those that are remembered of a session.
	maxSamples = 300
	// sampleTime bounds the taking of one.
	sampleTime = time.Second
)

// Samples returns what a session has used, oldest first, with a new sample if the last one is older than SampleEvery. Samples
// are taken for whoever asks and never else: a session that nobody looks at has none, and costs nothing. Asking is no use of
// the session, and does not wait for its cell. The error is NotFound for a session that does not run.
func (m *Manager) Samples(ctx context.Context, o Owner, id string) ([]Sample, error) {
	s, err := m.find(ctx, o, id)
	if err != nil {
		return nil, err
	}
	s.samples.take(ctx, s.answering())
	return s.samples.all(), nil
}

// answering is the client of the kernel that lives; nil when there is none.
func (s *session) answering() client {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state != Idle && s.state != Busy {
		return nil
	}
	return s.live
}

// OOMKills is how many processes of its session were killed for memory since the cell began to run; 0 for one that does not run, where
// nobody counts that, and where the kernel's shim does not answer soon. How many they were in the end is in the cell's result.
func (e *Execution) OOMKills(ctx context.Context) int64 {
	phase, _ := e.Phase()
	if e.session == nil || phase != PhaseRunning {
		return 0
	}
	c := e.session.answering()
	if c == nil {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	stats, _ := c.Stats(ctx)
	return max(0, stats.OOMKills)
}

// samples are a session's last ones. Its zero value works.
type samples struct {
	taking sync.Mutex // held while one is taken, so that nobody asks beside

	mu     sync.Mutex
	taken  []Sample
	of     client        // the kernel's that the last one was of
	before time.Duration // the processor time that this one had used by then
}

func (s *samples) all() []Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.taken)
}

// take takes a sample, if it is time. A kernel that does not answer has none.
func (s *samples) take(ctx context.Context, c client) {
	if c == nil || !s.due() || !s.taking.TryLock() {
		return
	}
	defer s.taking.Unlock()
	ctx, cancel := context.WithTimeout(ctx, sampleTime)
	defer cancel()
	if stats, err := c.Stats(ctx); err == nil {
		s.add(c, stats, time.Now())
	}
}

func (s *samples) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.taken)
	return n == 0 || time.Since(s.taken[n-1].At) >= SampleEvery
}

func (s *samples) add(c client, stats kernels.Stats, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := Sample{At: at, Memory: max(0, stats.Memory), MemoryLimit: max(0, stats.MemoryLimit)}
	if n := len(s.taken); n > 0 && s.of == c && stats.CPU >= s.before {
		one.CPU = (stats.CPU - s.before).Seconds() / max(at.Sub(s.taken[n-1].At), time.Millisecond).Seconds()
	}
	s.of, s.before = c, stats.CPU
	s.taken = append(s.taken, one)
	s.taken = s.taken[max(0, len(s.taken)-maxSamples):]
}
