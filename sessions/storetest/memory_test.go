package storetest

import (
	"testing"

	"cellblock/sessions"
)

// memoryProcesses are processes that share what is in memory.
type memoryProcesses struct{ disk *Memory }

func (p memoryProcesses) Start(*testing.T) sessions.Store     { return p.disk.Another() }
func (p memoryProcesses) Kill(_ *testing.T, s sessions.Store) { s.(*Memory).Kill() }

func TestMemory(t *testing.T) {
	Run(t, func(*testing.T) Processes { return memoryProcesses{NewMemory()} })
}
