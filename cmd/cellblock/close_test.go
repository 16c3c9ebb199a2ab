package main

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

func TestForcedStopIsNoError(t *testing.T) {
	forced, force := context.WithCancel(t.Context())
	force()
	cut, other := fmt.Errorf("calls still run: %w", context.Canceled), errors.New("broken")
	for _, tt := range []struct {
		forced    context.Context
		err, want error
	}{{forced, cut, nil}, {forced, other, other}, {t.Context(), cut, cut}, {t.Context(), nil, nil}} {
		if got := unlessForced(tt.forced, tt.err); got != tt.want {
			t.Errorf("forced %v, %v: %v", tt.forced.Err(), tt.err, got)
		}
	}
}
