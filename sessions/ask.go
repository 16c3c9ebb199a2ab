package sessions

import (
	"context"

	"cellblock/internal/fault"
)

// askIdle has the session's runner put a question to the kernel, which only an idle one can answer. It is Busy, at once, while
// the session starts or runs a cell. The question has its own bound in time; ctx only bounds this wait for it.
func askIdle[T any](ctx context.Context, s *session, question func() (T, error)) (T, error) {
	var none T
	switch s.info().State {
	case Starting, Restarting:
		return none, fault.New(fault.Busy, "the kernel of session %q is starting", s.key.id).WithHint("call again in a few seconds")
	}
	s.mu.Lock()
	running := s.running
	s.mu.Unlock()
	if running != nil {
		return none, s.busy(running)
	}
	answered := make(chan T, 1)
	a := s.send(ctx, order{kind: orderAsk, ask: func() error {
		v, err := question()
		answered <- v
		return err
	}})
	if a.err != nil {
		return none, s.orderError(a.err)
	}
	return <-answered, nil
}

// busy is the error of whoever wants the kernel while a cell runs.
func (s *session) busy(e *Execution) error {
	return fault.New(fault.Busy, "session %q is running cell %d, and only an idle kernel can be inspected", s.key.id, e.number).
		WithHint("call again when the cell has ended; get_execution waits for it")
}
