package mcpserver

import (
	"time"

	"cellblock/internal/words"
	"cellblock/sessions"
)

// nearEnd is how long before the end of its kernel a result tells of it.
const nearEnd = 5 * time.Minute

// endsIn says when a kernel is to be stopped: "stops in 12 min unless a cell runs". Reading is use, too, and does not put that off.
func endsIn(end sessions.End) string {
	in := words.Span(time.Until(end.At))
	if end.Unused {
		return "stops in " + in + " unless a cell runs"
	}
	return "stops in " + in
}

// endsSoon is a line for the result of a cell whose kernel has not much time left. A session that has just been minted
// never has, and its footer says what to do.
func endsSoon(e *sessions.Execution) string {
	end := e.KernelEnds()
	if end.At.IsZero() || time.Until(end.At) >= nearEnd || e.Minted() || e.Once() {
		return ""
	}
	variables := "its variables go with it"
	if e.VariablesSaved() {
		variables = "its variables are saved, as far as they can be"
	}
	return "Note: this session's kernel " + endsIn(end) + "; " + variables + ", its files stay."
}
