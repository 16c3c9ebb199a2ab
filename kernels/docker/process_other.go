//go:build !linux

package docker

import "github.com/docker/go-units"

// readProcess knows nothing here: the container's processes are in a virtual machine or on another host.
func readProcess(int, string) processState { return processState{} }

// hostSwap cannot be told for a system that is not ours: assume that there is swap.
func hostSwap() bool { return true }

// ownUlimits would mean nothing to an engine that is not on this system.
func ownUlimits() []*units.Ulimit { return nil }
