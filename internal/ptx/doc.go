// Package ptx reads, checks and prints PTX, the assembly language of NVIDIA GPUs, as clang, Triton and people write it.
//
// Parse turns text into a Module whose registers, labels and variables are resolved; Check compares every instruction
// with a table generated from ptxas (which forms exist, from which PTX version and which target on); Print writes a
// Module back, so that parsing the result gives the same Module but for positions. The package does no I/O.
//
// The grammar follows NVIDIA's "PTX ISA" document; where ptxas accepts less or more, ptxas is followed.
package ptx

import (
	"fmt"
	"strconv"
)

// Pos is a place in the source text; both numbers count from 1, the column in bytes. The zero Pos means "not from a source".
type Pos struct {
	Line, Col int
}

func (p Pos) String() string { return strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col) }

// Error is a finding of Parse or Check.
type Error struct {
	Pos  Pos
	Text string // the offending text, as written; may be empty
	Msg  string // what is wrong
	Want string // what was expected instead; may be empty

	Newer bool // it may be right: the module is of a later PTX version than Check knows
}

// Error returns one line: place, finding, offending text, expectation.
func (e *Error) Error() string {
	s := "ptx:" + e.Pos.String() + ": " + e.Msg
	if e.Text != "" {
		s += fmt.Sprintf(" %q", clip(e.Text))
	}
	if e.Want != "" {
		s += ", expected " + e.Want
	}
	return s
}

// clip bounds the text that an error quotes.
func clip(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}
