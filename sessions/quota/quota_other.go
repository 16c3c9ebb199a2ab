//go:build !linux || !(amd64 || arm64)

package quota

import "fmt"

// Check returns ErrNone: only Linux has project quotas.
func Check(string) error { return fmt.Errorf("%w: not on this system", ErrNone) }

// Bound does nothing.
func Bound(string, int64) error { return nil }

// Join does nothing.
func Join(_, _ string) error { return nil }

// Lift does nothing.
func Lift(string) error { return nil }
