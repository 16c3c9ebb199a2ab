package main

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	cerrdefs "github.com/containerd/errdefs"

	"cellblock/images/derived"
	"cellblock/internal/fault"
)

// Where the engine is, owners of images are not told. What a package manager said of its index they are.
func TestImagesTellNoPlaces(t *testing.T) {
	away := fault.New(fault.Unavailable, "the container engine at tcp://10.1.2.3:2375 does not answer")
	absent := fault.New(fault.Unavailable, "the engine at tcp://10.1.2.3:2375 has no image: %w", cerrdefs.ErrNotFound)
	step := &derived.StepError{ExitCode: 1}
	tests := []struct {
		name      string
		err       error
		want, log string
	}{
		{"an engine that is away", fmt.Errorf("making it: %w", away), "making it: the container engine at … does not answer", "tcp://10.1.2.3:2375"},
		{"an image that is not there", absent, "the engine at … has no image: not found", ""},
		{"a step that failed", step, step.Error(), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			got := engineImages{logger: slog.New(slog.NewTextHandler(&log, nil))}.told(tt.err)
			if got.Error() != tt.want || !errors.Is(got, tt.err) {
				t.Errorf("told is %q, want %q", got, tt.want)
			}
			if !strings.Contains(log.String(), tt.log) || (tt.log == "") != (log.Len() == 0) {
				t.Errorf("logged is %q", log.String())
			}
		})
	}
}
