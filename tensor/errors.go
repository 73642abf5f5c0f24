package tensor

import (
	"errors"
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/callsite"
	"github.com/warpline-ml/warpline/internal/render"
)

// Error is a programmer's mistake on tensors: shape, dtype, device, a released value. Operations panic with it, and
// [Env.Try] turns it into an error.
type Error struct {
	Op   string // the operation
	Text string // what happened, to which values
	Hint string // what to do
	Line string // where in the user's program: "train.go:12"
}

// Error is one line: the operation, the mistake, the place and what to do.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.Op)
	b.WriteString(": ")
	b.WriteString(e.Text)
	if e.Line != "" {
		b.WriteString(" at ")
		b.WriteString(e.Line)
	}
	if e.Hint != "" {
		b.WriteString("; ")
		b.WriteString(e.Hint)
	}
	return b.String()
}

// OOMError says that memory ran out, after everything unreachable was reclaimed. Operations panic with it, and
// [Env.Try] turns it into an error. All figures are bytes.
type OOMError struct {
	Device    string
	Op        string // the operation that asked
	Line      string // where in the user's program
	Asked     int64
	Allocated int64
	Reserved  int64
	Limit     int64 // memory or the limit set; 0 when unknown
	Err       error
}

// Error is one line with the figures.
func (e *OOMError) Error() string {
	limit := ""
	if e.Limit > 0 {
		limit = " of " + render.Bytes(e.Limit)
	}
	return fmt.Sprintf("%s at %s: out of memory on %s: asked for %s with %s allocated and %s reserved%s; use a smaller batch (data.Split) or Recompute",
		e.Op, e.Line, e.Device, render.Bytes(e.Asked), render.Bytes(e.Allocated), render.Bytes(e.Reserved), limit)
}

// Unwrap returns the allocator's error.
func (e *OOMError) Unwrap() error { return e.Err }

// raise panics with an Error that names the user's line. It is the one place where tensors panic.
func raise(op, hint, format string, args ...any) {
	var site callsite.Site
	callsite.Capture(1, &site)
	panic(&Error{Op: op, Text: fmt.Sprintf(format, args...), Hint: hint, Line: site.String()})
}

// Raise panics with an Error that names the user's line, for packages that build on tensors.
func Raise(op, hint, format string, args ...any) { raise(op, hint, format, args...) }

// raiseErr panics with an error from below.
func raiseErr(op, hint string, err error) {
	var own *Error
	if errors.As(err, &own) {
		panic(own)
	}
	raise(op, hint, "%v", err)
}
