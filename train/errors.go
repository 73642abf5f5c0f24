package train

import (
	"errors"

	"github.com/warpline-ml/warpline/internal/advice"
)

// Error is why a run could not start or go on: Text says what happened, to which values, Hint what to do, and Err is the
// cause, or nil. The text of Error is Text alone.
type Error = advice.Error

// ErrInterrupted ends a run whose context was cancelled, after its checkpoint was written.
var ErrInterrupted = errors.New("interrupted")

// fail is advice.Failf, which a package that makes most of its errors by it calls by a short name.
func fail(hint, format string, args ...any) *Error { return advice.Failf(hint, format, args...) }

// explain is advice.Explain, likewise.
func explain(err error, hint string) error { return advice.Explain(err, hint) }
