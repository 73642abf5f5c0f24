package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/warpline-ml/warpline/internal/advice"
)

// output is the standard output. Its first failure stops what is under way: nobody would see how it ends.
type output struct {
	w    io.Writer
	err  error
	stop func() // may be nil
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n, err := o.w.Write(b)
	if err != nil {
		o.fail(err)
	}
	return n, err
}

// fail keeps the first failure, and stops what writes.
func (o *output) fail(err error) {
	if o.err != nil {
		return
	}
	o.err = err
	if o.stop != nil {
		o.stop()
	}
}

// failure is the first failure with what to do, or nil.
func (o *output) failure(hint string) error {
	if o == nil || o.err == nil {
		return nil
	}
	if noRoom(o.err) {
		hint = "make room for it; " + hint
	}
	return &advice.Error{Text: fmt.Sprintf("the standard output cannot be written: %v", o.err), Hint: hint, Err: o.err}
}

// quoted is a path as a shell takes it.
func quoted(path string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+,:@%="
	if path != "" && strings.Trim(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
