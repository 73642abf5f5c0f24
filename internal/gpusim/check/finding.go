// Package check is what the checks know and what they find: sites and accesses of a kernel, findings, who accessed shared and
// global memory in what order, and stores to what a launch reads by ld.global.nc. It knows warps and threads by their numbers.
package check

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/memory"
)

// Fault is an error of a running kernel. It is sticky: until Reset, every later operation on the device returns it.
type Fault struct {
	Code      memory.Code
	Finding   Finding
	StepLimit int64 // of Options, if that is what ended the kernel; else 0
}

// Error is the code and the finding.
func (f *Fault) Error() string { return "gpusim: " + f.Code.String() + ": " + f.Finding.String() }

// Check is a set of checks.
type Check uint8

// The checks. Memcheck is always on: an access outside an allocation stops the kernel, as hardware does at best.
const (
	Memcheck    Check = 1 << iota // out of bounds, misaligned, freed
	Initcheck                     // reads of memory or registers that nobody wrote
	Synccheck                     // barriers that some threads cannot reach, masks that lack the own lane
	Racecheck                     // shared memory accesses of two threads without a barrier between them; writes to what ld.global.nc or cp.async reads
	Globalcheck                   // accesses to global memory by two threads, one of them a write, that nothing orders
	AllChecks   = Memcheck | Initcheck | Synccheck | Racecheck | Globalcheck
)

var checkNames = []string{"memcheck", "initcheck", "synccheck", "racecheck", "global"}

// String lists the names, separated by commas.
func (c Check) String() string {
	var names []string
	for i, n := range checkNames {
		if c>>i&1 == 1 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ",")
}

// Finding is something that a check found.
type Finding struct {
	Check  Check // zero for a trap, an assertion or a limit
	Kernel string
	Block  [3]uint32
	Thread [3]uint32
	Line   int    // in the PTX file
	Source string // "file:line" by .loc, empty without
	Inst   string // the instruction's opcode
	Msg    string // what happened
	Space  string // of the access: global, shared, local, …; empty for other findings
	Addr   uint64 // the address, or the offset in shared and local memory
	Size   int    // of the access in bytes
	Alloc  string // the allocation concerned, or the nearest: address range and tag
	Count  int    // how often this check found something at this instruction
	Other  Place  // the access that this one collides with; zero for other findings
}

// Place is an instruction of a kernel.
type Place struct {
	Line   int    // in the PTX file
	Source string // "file:line" by .loc, empty without
	Inst   string // the opcode
}

// Message is what happened, with the other access.
func (f Finding) Message() string {
	if f.Other.Line == 0 {
		return f.Msg
	}
	return f.Msg + f.Other.aside()
}

func (p Place) aside() string {
	at := p.Source
	if at != "" {
		at = ", " + at
	}
	return fmt.Sprintf(" (the other is %s at PTX line %d%s)", p.Inst, p.Line, at)
}

// Who names a thread as findings do: thread 33,0,0 of block 0,0,0.
func Who(thread, block [3]uint32) string {
	return fmt.Sprintf("thread %d,%d,%d of block %d,%d,%d", thread[0], thread[1], thread[2], block[0], block[1], block[2])
}

// String is the finding in one line.
func (f Finding) String() string {
	var b strings.Builder
	if f.Check != 0 {
		b.WriteString(f.Check.String() + ": ")
	}
	b.WriteString(f.Message())
	if f.Space != "" {
		fmt.Fprintf(&b, " (%s address %#x, %d bytes)", f.Space, f.Addr, f.Size)
	}
	fmt.Fprintf(&b, " by %s in %s, %s at PTX line %d", Who(f.Thread, f.Block), f.Kernel, f.Inst, f.Line)
	if f.Source != "" {
		b.WriteString(", " + f.Source)
	}
	if f.Alloc != "" {
		b.WriteString("; " + f.Alloc)
	}
	return b.String()
}
