// Package fault gives every error that crosses a boundary of cellblock a kind, for machines, and a hint, for the reader.
//
// A kind decides the HTTP status, the MCP form and the exit code (see table.go); the message says what happened;
// the hint says what to do about it. Models and operators read both, so they are written for them.
// Errors that carry no kind are Internal.
package fault

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Kind classifies an error by who can do something about it.
type Kind int

const (
	// Internal is a defect or an unforeseen condition of the server itself.
	Internal Kind = iota
	// Invalid is an argument that breaks a stated rule; the caller can correct it.
	Invalid
	// NotFound is a thing that does not exist, or not for this caller.
	NotFound
	// Conflict is a request that contradicts the state of the thing it names.
	Conflict
	// Busy is a bound that is reached now and will free itself: a queue, a pool, a limit on sessions.
	Busy
	// Unauthenticated is a call without a token that verifies.
	Unauthenticated
	// Forbidden is a call whose token verifies but lacks a scope.
	Forbidden
	// Unavailable is something the server depends on that is missing or does not answer: an engine, an image, a disk.
	Unavailable
	// Timeout is work that did not end in its time.
	Timeout
	// Cancelled is work that its own caller gave up.
	Cancelled
	// Died is a kernel that ended while somebody waited for it.
	Died
)

// Error is an error with a kind and, where there is something to do about it, a hint.
type Error struct {
	Kind Kind
	// Message says what happened, in one sentence without a final stop.
	Message string
	// Hint says what the reader can do, as one imperative sentence; empty when there is nothing to do.
	Hint string
	// Err is the cause, if any. Its text is part of Error().
	Err error
}

// New returns an error of a kind. The format's arguments may hold one %w.
func New(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// WithHint sets what the reader can do and returns the same error.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

// Error returns the message alone; Text returns message and hint.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// KindOf returns the kind of the first *Error in err's tree. Without one, a context's end is Cancelled or Timeout, and
// everything else Internal.
func KindOf(err error) Kind {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Kind
	case errors.Is(err, context.Canceled):
		return Cancelled
	case errors.Is(err, context.DeadlineExceeded):
		return Timeout
	}
	return Internal
}

// Hint returns the first hint in err's tree, depth first as errors.As walks it, or "".
func Hint(err error) string {
	if e, ok := err.(*Error); ok && e.Hint != "" { //nolint:errorlint // this is what walks the tree
		return e.Hint
	}
	switch e := err.(type) { //nolint:errorlint // and so does this
	case interface{ Unwrap() error }:
		return Hint(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, branch := range e.Unwrap() {
			if hint := Hint(branch); hint != "" {
				return hint
			}
		}
	}
	return ""
}

// HintWithout returns a hint without those of its clauses, which "; " parts, that hold what is unwanted.
func HintWithout(hint string, unwanted *regexp.Regexp) string {
	return strings.Join(slices.DeleteFunc(strings.Split(hint, "; "), unwanted.MatchString), "; ")
}

// Text returns what a person or a model should read: the error's text, and its hint on a line of its own.
func Text(err error) string {
	if hint := Hint(err); hint != "" {
		return err.Error() + "\nHint: " + hint
	}
	return err.Error()
}
