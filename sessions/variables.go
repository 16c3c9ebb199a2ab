package sessions

import (
	"cmp"
	"context"
	"errors"
	"io"
	"time"

	"cellblock/internal/fault"
	"cellblock/internal/words"
	"cellblock/kernels"
)

// Variables are what the user has defined in a session's kernel, in the order in which he did.
type Variables struct {
	Variables []Variable `json:"variables"`
	// More is how many there are beside these.
	More int `json:"more"`
}

// Variable is one name with what is known of its value, from the kernel: not to be trusted.
type Variable struct {
	Name string `json:"name"`
	// Type is the type's name, with its library's where it has one: "int", "pandas.DataFrame".
	Type string `json:"type"`
	// Length is how many items it has, Shape its dimensions, DType the type of its elements, Bytes its size in memory
	// without what it refers to; absent where they are not known.
	Length *int64  `json:"length,omitempty"`
	Shape  []int64 `json:"shape,omitempty"`
	DType  string  `json:"dtype,omitempty"`
	Bytes  *int64  `json:"bytes,omitempty"`
	// Columns are a table's, the first of them.
	Columns []Column `json:"columns,omitempty"`
	// Preview is a beginning of the value, where that can be had without running users' code.
	Preview string `json:"preview,omitempty"`
}

// Column is one column of a table.
type Column struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
}

const (
	// inspectTimeout is how long a kernel may take to describe its variables.
	inspectTimeout = 2 * time.Second
	// maxDescription bounds the description that is read, in bytes.
	maxDescription = 1 << 20
)

// Variables describes what the user has defined in a session. It is Busy while the session starts or runs a cell,
// Invalid for a language that cannot tell, Timeout when the kernel takes longer than two seconds. Of a session without a
// kernel there are none. The kernel's variables, execution count and last results stay as they are.
func (m *Manager) Variables(ctx context.Context, o Owner, id string) (Variables, error) {
	s, err := m.use(ctx, o, id)
	if err != nil {
		return Variables{}, err
	}
	if language := m.cfg.Runtimes[s.choice.Language]; language.Variables == "" {
		return Variables{}, fault.New(fault.Invalid, "the variables of %s sessions cannot be inspected", cmp.Or(language.Title, s.choice.Language)).
			WithHint("print what you want to know")
	}
	return askIdle(ctx, s, func() (Variables, error) {
		if !looks(ctx) {
			s.touch()
		}
		return s.inspect()
	})
}

// inspect asks the kernel for its variables. The runner calls it while no cell runs.
func (s *session) inspect() (Variables, error) {
	if s.kernel == nil || s.kernelGone() {
		return Variables{Variables: []Variable{}}, nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, inspectTimeout)
	defer cancel()
	running, err := s.evaluate(ctx, s.manager.cfg.Runtimes[s.choice.Language].Variables, s.addToLast)
	if err != nil {
		return Variables{}, fault.New(fault.Unavailable, "the variables could not be inspected: %w", err)
	}
	select {
	case <-running.Done():
		return readVariables(running.Result())
	case <-ctx.Done():
	}
	s.stopSilent(running)
	return Variables{}, fault.New(fault.Timeout, "the kernel did not describe its variables within %s", words.Length(inspectTimeout)).
		WithHint("print what you want to know")
}

// addToLast takes what comes while the kernel evaluates an expression. That prints nothing itself: where the kernel does
// not know better, this is the background work of the last cell.
func (s *session) addToLast(out kernels.Output) {
	s.mu.Lock()
	var last string
	if n := len(s.records); n > 0 {
		last = s.records[n-1].msgID
	}
	s.mu.Unlock()
	s.addLate(out, last)
}

// drain reads what comes while the kernel evaluates an expression, and puts it somewhere.
func drain(ctx context.Context, running cell, put func(kernels.Output)) {
	for {
		out, err := running.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			_, _ = running.Next(ctx) // tells that the end was dealt with
			return
		case err != nil:
			return
		}
		put(out)
	}
}

// readVariables reads a kernel's description of its variables.
func readVariables(result kernels.Result) (v Variables, err error) {
	if result.Status == kernels.StatusDied && result.Death != nil {
		return v, fault.New(fault.Died, "the kernel died while it was inspected: %s", clip(result.Death.Cause, 200)).
			WithHint("variables are lost; the next cell runs on a new kernel")
	}
	if err := readAnswer(result, &v); err != nil {
		return Variables{}, fault.New(fault.Unavailable, "the kernel could not describe its variables: %s", clip(err.Error(), 200)).
			WithHint("print what you want to know")
	}
	if v.Variables == nil {
		v.Variables = []Variable{}
	}
	return v, nil
}
