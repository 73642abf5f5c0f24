package train

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/warpline-ml/warpline/tensor"
)

// Error is why a run could not start or go on.
type Error struct {
	Text string // what happened, to which values
	Hint string // what to do
	Err  error  // the cause, or nil
}

// Error is the cause in one line; the hint is apart.
func (e *Error) Error() string { return e.Text }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrInterrupted ends a run whose context was cancelled, after its checkpoint was written.
var ErrInterrupted = errors.New("interrupted")

func fail(hint, format string, args ...any) *Error {
	return &Error{Text: fmt.Sprintf(format, args...), Hint: hint}
}

// explain gives err a hint, unless it has one.
func explain(err error, hint string) error {
	var e *Error
	if err == nil || errors.As(err, &e) {
		return err
	}
	return &Error{err.Error(), hint, err}
}

// recovered turns panics about tensors and memory into errors. Others go on: they are mistakes of the library.
func recovered(err *error) {
	switch v := recover().(type) {
	case nil:
	case *tensor.Error:
		*err = &Error{v.Op + ": " + v.Text, cmp.Or(v.Hint, "check the data and the sizes of the model"), v}
	case *tensor.OOMError:
		*err = &Error{v.Error(), "give a smaller --batch, or --amp or --recompute", v}
	default:
		panic(v)
	}
}
