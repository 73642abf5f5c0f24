// Package advice is the error that tells a person at a terminal what happened and, apart from it, what to do.
package advice

import (
	"errors"
	"fmt"
)

// Error is why something could not be done.
type Error struct {
	Text string // what happened, to which values; one line
	Hint string // what to do
	Err  error  // the cause, or nil
}

// Error is the text; the hint is apart.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Failf makes an Error with a hint. The cause is the first operand of the format that is an error, whatever its verb.
func Failf(hint, format string, args ...any) *Error {
	e := &Error{Text: fmt.Sprintf(format, args...), Hint: hint}
	for _, a := range args {
		if err, ok := a.(error); ok {
			e.Err = err
			break
		}
	}
	return e
}

// Explain gives err a hint, unless it has one, and keeps its whole text.
func Explain(err error, hint string) error {
	var known *Error
	if err == nil {
		return nil
	}
	if errors.As(err, &known) {
		if err == error(known) {
			return err
		}
		hint = known.Hint
	}
	return &Error{Text: err.Error(), Hint: hint, Err: err}
}

// HintOf is what to do about err, empty where nobody says.
func HintOf(err error) string {
	var known *Error
	if errors.As(err, &known) {
		return known.Hint
	}
	return ""
}
