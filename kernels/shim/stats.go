//go:build linux

package shim

import (
	"os"

	"cellblock/kernels/stream"
)

// stats samples what kernel and shim use.
func (s *Shim) stats() stream.Stats {
	now := s.used.sample()
	self, _ := readProcess(os.Getpid())
	s.mu.Lock()
	before, k := s.cpuBefore, s.kernel
	s.mu.Unlock()
	st := stream.Stats{
		CPU: max(0, now.cpu-before), Memory: now.memory, MemoryLimit: s.cgroup.limit(), OOMKills: s.gate.meter.killed(now), ShimMemory: self.resident,
	}
	if k != nil {
		st.Starved = starved(k.pid)
	}
	return st
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

// markCPU lets stats count from now: the next kernel is about to start.
func (s *Shim) markCPU() {
	used := s.used.sample().cpu
	s.mu.Lock()
	s.cpuBefore = used
	s.mu.Unlock()
}

// savesVariables is the name of a copy of the kernel that saves its variables: nearly all that it holds is the kernel's, and counted there.
const savesVariables = "cellblock-saves"

func resident(ps []process) (n int64) {
	for _, p := range ps {
		if p.name != savesVariables {
			n += p.resident
		}
	}
	return n
}
