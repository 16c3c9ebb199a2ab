//go:build linux

package shim

import (
	"os"
	"time"

	"cellblock/kernels/stream"
)

// stats samples what kernel and shim use: from the control group where there is one, else by adding up /proc.
func (s *Shim) stats() (stream.Stats, error) {
	ps, err := processes()
	if err != nil {
		return stream.Stats{}, err
	}
	self, kernels := split(ps)
	st := stream.Stats{
		CPU:  s.cpu(self, kernels),
		PIDs: len(kernels), MemoryLimit: s.cgroup.limit(),
		ShimMemory: self.resident, JournalBytes: s.journal.used(),
	}
	if now, peak, ok := s.cgroup.memory(); ok {
		st.Memory, st.MemoryPeak = now, peak
	} else {
		st.Memory = resident(kernels)
	}
	if n, ok := s.cgroup.pids(); ok {
		st.PIDs = int(n)
	}
	s.mu.Lock()
	st.CPU -= s.cpuBefore
	k := s.kernel
	s.mu.Unlock()
	if k != nil {
		st.Starved = starved(k.pid)
	}
	return st, nil
}

// family is split of what runs now. As pid 1 the shim sees no others; elsewhere it looks for its descendants only, of which
// there are few where /proc may have thousands.
func family() (self process, kernels []process) {
	pid := os.Getpid()
	if pid != 1 {
		if kernels, ok := descendants(pid, nil); ok {
			self, _ = readProcess(pid)
			return self, kernels
		}
	}
	ps, _ := processes() // of what cannot be read, nothing is known
	return split(ps)
}

// split returns the shim, and what it is the shim of.
func split(ps []process) (self process, kernels []process) {
	pid := os.Getpid()
	for _, p := range ps {
		if p.pid == pid {
			self = p
		}
	}
	if pid != 1 {
		return self, below(pid, ps)
	}
	for _, p := range ps {
		if p.pid != pid {
			kernels = append(kernels, p)
		}
	}
	return self, kernels
}

// cpu returns the processor time that all kernels so far have used. Of those that have ended, the shim has it, as their
// parent.
func (s *Shim) cpu(self process, kernels []process) time.Duration {
	if used, ok := s.cgroup.cpu(); ok {
		return used
	}
	used := self.waited
	for _, p := range kernels {
		used += p.cpu + p.waited
	}
	return used
}

// markCPU lets stats count from now: the next kernel is about to start.
func (s *Shim) markCPU() {
	ps, err := processes()
	if err != nil {
		return
	}
	used := s.cpu(split(ps))
	s.mu.Lock()
	s.cpuBefore = used
	s.mu.Unlock()
}

func resident(ps []process) (n int64) {
	for _, p := range ps {
		n += p.resident
	}
	return n
}
