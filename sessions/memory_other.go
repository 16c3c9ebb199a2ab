//go:build !linux

package sessions

// hostMemory returns -1 for what is not known: only Linux says what is free.
func hostMemory() (total, available int64) { return -1, -1 }
