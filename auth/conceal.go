package auth

import (
	"errors"

	"cellblock/internal/fault"
)

// concealed is an error whose cause speaks of this machine: the caller is shown the one, and the log the other.
type concealed struct {
	error // a *fault.Error
	cause error
}

// Unwrap returns what the caller is shown.
func (e *concealed) Unwrap() error { return e.error }

// keyTrouble is the error of a development key that cannot be used now.
func keyTrouble(cause error) error {
	return &concealed{
		fault.New(fault.Unavailable, "tokens cannot be verified now: the key of dev mode cannot be read").
			WithHint("The server's log says why to its operator; a new start makes a key that is missing."),
		cause,
	}
}

// logged is what the log is told of an error.
func logged(err error) string {
	if hidden, ok := errors.AsType[*concealed](err); ok {
		return fault.Text(hidden.cause)
	}
	return err.Error()
}
