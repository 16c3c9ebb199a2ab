package sessions

import (
	"context"

	"cellblock/internal/fault"
)

// TakeBack takes a cell back that still waits, by its number, for a caller (Request.Caller), of whom is told whoever waits for the
// cell: it never runs. The error is Conflict when it runs or has ended, NotFound when there is no such cell.
func (m *Manager) TakeBack(ctx context.Context, o Owner, id string, number int, caller string) error {
	e, err := m.Execution(ctx, o, id, number)
	if err != nil {
		return err
	}
	if e.session == nil || !e.session.unqueue(e) {
		return fault.New(fault.Conflict, "cell %d does not wait any more: it %s", number, e.fate()).
			WithHint("Interrupt stops one that runs")
	}
	who := "another client"
	switch caller {
	case Person:
		who = Person
	case e.caller:
		who = "its caller"
	}
	e.session.drop(e, Result{}, fault.New(fault.Cancelled, "%s took this cell back before it ran", who))
	return nil
}

// fate is what became of a cell that does not wait, as the end of a sentence.
func (e *Execution) fate() string {
	if phase, _ := e.Phase(); phase == PhaseEnded {
		return "has ended"
	}
	return "runs"
}
