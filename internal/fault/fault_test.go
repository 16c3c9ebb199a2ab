package fault_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"testing"

	"cellblock/internal/fault"
)

func TestKindOf(t *testing.T) {
	busy := fault.New(fault.Busy, "full")
	tests := []struct {
		name string
		err  error
		want fault.Kind
	}{
		{"nil", nil, fault.Internal},
		{"plain", io.EOF, fault.Internal},
		{"own", busy, fault.Busy},
		{"wrapped", fmt.Errorf("outer: %w", busy), fault.Busy},
		{"joined second", errors.Join(io.EOF, busy), fault.Busy},
		{"outermost wins", fault.New(fault.Timeout, "late: %w", busy), fault.Timeout},
		{"cancelled", context.Canceled, fault.Cancelled},
		{"cancelled, wrapped", fmt.Errorf("dial: %w", context.Canceled), fault.Cancelled},
		{"deadline", context.DeadlineExceeded, fault.Timeout},
		{"cause of a context", causeOf(busy), fault.Busy},
		{"kind over context", fault.New(fault.Died, "gone: %w", context.Canceled), fault.Died},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fault.KindOf(tt.err); got != tt.want {
				t.Errorf("KindOf(%v) = %v, want %v", tt.err, got, tt.want)
			}
		})
	}
}

func causeOf(err error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(err)
	return context.Cause(ctx)
}

func TestHint(t *testing.T) {
	hinted := fault.New(fault.Unavailable, "no engine").WithHint("Start %s.", "docker")
	bare := fault.New(fault.Internal, "outer: %w", hinted)
	tests := []struct {
		name string
		err  error
		want string
	}{
		{"nil", nil, ""},
		{"none", io.EOF, ""},
		{"own", hinted, "Start docker."},
		{"through fmt", fmt.Errorf("a: %w", fmt.Errorf("b: %w", hinted)), "Start docker."},
		{"through an Error without one", bare, "Start docker."},
		{"through both", fmt.Errorf("c: %w", bare), "Start docker."},
		{"outer first", fault.New(fault.Busy, "x: %w", hinted).WithHint("Wait."), "Wait."},
		{"second branch of a join", errors.Join(io.EOF, fault.New(fault.Busy, "no hint"), hinted), "Start docker."},
		{"join inside a join", errors.Join(errors.Join(io.EOF), fmt.Errorf("d: %w", errors.Join(bare))), "Start docker."},
		{"two %w", fmt.Errorf("%w and %w", io.EOF, hinted), "Start docker."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := fault.Hint(tt.err); got != tt.want {
				t.Errorf("Hint(%v) = %q, want %q", tt.err, got, tt.want)
			}
		})
	}
}

func TestHintWithout(t *testing.T) {
	tools := regexp.MustCompile(`\btool\b`)
	for hint, want := range map[string]string{
		"": "", "wait": "wait", "call a tool": "", "wait; call a tool; or give up": "wait; or give up", "toolbox; tool": "toolbox",
	} {
		if got := fault.HintWithout(hint, tools); got != want {
			t.Errorf("%q: %q, want %q", hint, got, want)
		}
	}
}

func TestText(t *testing.T) {
	hinted := fault.New(fault.NotFound, "no session %q", "a").WithHint("Call list_sessions.")
	for want, err := range map[string]error{
		"EOF": io.EOF,
		"no session \"a\"\nHint: Call list_sessions.":      hinted,
		"run: no session \"a\"\nHint: Call list_sessions.": fmt.Errorf("run: %w", hinted),
	} {
		if got := fault.Text(err); got != want {
			t.Errorf("Text = %q, want %q", got, want)
		}
	}
}

func TestNewKeepsItsCause(t *testing.T) {
	err := fault.New(fault.Unavailable, "read %s: %w", "key.pem", io.ErrUnexpectedEOF)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error("the cause is lost")
	}
	if want := "read key.pem: unexpected EOF"; err.Error() != want {
		t.Errorf("Error() = %q, want %q", err.Error(), want)
	}
	if errors.Unwrap(fault.New(fault.Busy, "alone")) != nil {
		t.Error("an error without a cause unwraps to something")
	}
}
