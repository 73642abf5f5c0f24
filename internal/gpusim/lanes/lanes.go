// Package lanes is the assembly of the simulator: an interpreter of instructions of whole warps. Without it (other
// processors, -tags purego) package warp runs the same in Go.
package lanes

import (
	"unsafe"

	"github.com/warpline-ml/warpline/internal/cpufeat"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

//go:generate go run -C ../../_asm . lanes ../gpusim/lanes

// The assembly is an interpreter of its own: it runs instructions of whole warps, one handler jumping to the next, until
// it meets one that must be done in Go, which is any that has no handler, or a memory access that is not plain: it leaves
// its domain before the instruction has done anything. The forms in Go define what each handler does, bit for bit.

// Op is a handler; zz_lanes.go lists them.
type Op uint32

// Inst is an instruction of the assembly: an Op, then operands.
type Inst [8]uint32

// The places of operands, but for matrices.
const (
	AtD   = 1
	AtA   = 2
	AtB   = 3
	AtC   = 4
	AtE   = 5 // the region of a memory access
	AtX   = 6
	AtImm = 7
)

// The places in each half of a branch: where it goes, and what to count.
const (
	AtBlocks = 3
	AtStart  = 4 // of the target in prog, in bytes
	AtBlock  = 5 // the target
	AtSteps  = 6
)

// AtSkip is the place in a guard of the bytes of the program up to what follows the guarded instruction.
const AtSkip = 3

// Frame is what the assembly works on. What it points to others keep alive; the arrays stand on cache lines.
type Frame struct {
	R, Q, P uintptr // registers of the warp
	Regions uintptr // the first of a []Region
	Shared  uintptr
	Async   uintptr // an AsyncState
	Pc      uintptr // of the instruction that Go must do
	Prog    uintptr // the first instruction
	Chains  uintptr // how often each block's chain was begun
	Block   int64   // whose chain is under way
	Left    int64   // blocks before other lanes get a turn
	Steps   int64   // instructions, by the chains that the assembly began
	Jumps   int64   // branches that it took
	Tag     uint32  // of the mma instructions that tile serves, 0 for none
	_       [3]uint32
	Off     [simt.WarpSize]uint32
	tile    [256]float32 //lint:ignore U1000 the assembly keeps A of the last mma there, row by row
	columns [128]float32 //lint:ignore U1000 and B
}

// Region is memory that an instruction may access: addresses from lo on, less than limit from it, at data.
type Region struct {
	Lo, Limit uint64
	Data      unsafe.Pointer
	Alloc     *memory.Allocation // nil for shared memory
}

// SharedRegions are the regions of shared memory, by the logarithm of the size of an access. Those of instructions that
// access global memory follow.
const SharedRegions = 5

// Engine is the assembly of a level.
type Engine struct {
	Run func(f *Frame, pc *Inst)
	Has *[NumOps]bool
}

// EngineOf returns the assembly that may be used now, nil for none.
func EngineOf(l cpufeat.Level) *Engine { return engines[l] }
