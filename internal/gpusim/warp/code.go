package warp

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Constant is a slot and the bits it holds.
type Constant struct {
	I    int32
	Bits uint64
}

// Code is a compiled kernel.
type Code struct {
	Name                  string
	Local                 int // bytes of local memory of a thread
	Blocks                []Basic
	Slots                 [simt.Banks]int
	Const32               []Constant
	Const64               []Constant
	ConstPred             []Constant
	Fixed                 []Special     // set once for each warp
	Launched              []Special     // set anew for each launch
	Specials              []Special     // set anew for each block of the grid
	Engine                *lanes.Engine // nil without assembly
	Prog                  []lanes.Inst  // the code of all blocks, for the engine
	Steps                 []Step        // by instruction of prog: the same in Go
	Regions               int
	Regs                  int             // virtual registers, for poison
	Dynamic               int             // offset of dynamic shared memory, without gaps
	Extra                 int             // bytes of gaps in shared memory
	SharedGaps, LocalGaps []simt.Gap      // that nothing may access
	Waits                 bool            // threads may wait for each other: it talks, or has mbarriers
	Clusters              bool            // has the barrier of a cluster
	Far                   bool            // reaches the shared memory of other blocks
	Bulk                  bool            // has cp.async.bulk or wgmma, hence what the asynchronous proxy does
	Talks                 bool            // has atomics, fences or strong accesses: other threads may wait for it, or it for them
	Signals               bool            // has atomics or strong accesses that may be to shared memory
	Async                 bool            // has cp.async
	Nc                    bool            // has ld.global.nc
	Accesses              []*check.Access // by their ID
	Sites                 []*check.Site   // by their ID
	Pressure              int
	PredSlot              map[int]int32 // of predicate registers, for poison
	Symbols               *Symbols      // nil but for a Debugger
}

// Basic is a basic block. The terminator decides what comes next; block len(blocks) is the exit.
type Basic struct {
	Ops     []Op
	Term    Terminator
	Next    int
	Targets []int
	Ipdom   int
	N       int64 // instructions
	Classes [ptx.Classes]uint32
	Memory  bool
	First   int   // of its instructions in Sites; those that need no code are in no block
	Writes  bool  // memory, or has other effects
	Reads   bool  // memory that other blocks may write
	Local   bool  // may access local memory, whose poison chains do not follow
	Clock   bool  // reads a clock
	Leaves  bool  // does nothing but exit, or go where nothing else is done
	Chain   Chain // the blocks that follow without a choice
}

type termKind uint8

// The ends of a block.
const (
	TermNext   termKind = iota
	TermJump            // to targets[0]
	TermBranch          // to targets[0] where the predicate holds, else to next
	TermIndex           // to targets[index]
	TermExit
	TermSync     // wait for lanes of the warp, then run
	TermBar      // wait for warps of the block
	TermCluster  // wait for threads of the cluster
	TermProducts // wait for products, of which the four warps have each a part
)

// Terminator ends a basic block.
type Terminator struct {
	Kind   termKind
	P      int32 // the predicate of a branch or exit, -1 without
	Neg    bool
	Index  Slot
	Mask   Slot // of the lanes to wait for, by lane
	Whole  bool // waits for all lanes that have not exited instead
	Run    Op
	Warp   bool // bar.warp.sync: meets its like anywhere in the code
	All    bool // needs all lanes of the warp, and runs at once where they are here
	Bar    *BarOp
	Keep   int64 // of TermProducts: so many groups may still be under way
	Site   *check.Site
	Poison Op // checks what it reads; nil without
}

// Op is a compiled instruction: it acts on the lanes in w.Mask.
type Op func(w *Warp)

// Slot is a register of a warp; bits is the width of what it holds.
type Slot struct {
	Bank simt.Bank
	I    int32
	Bits uint8
}

// Special is a register that the hardware sets.
type Special struct {
	Slot    Slot
	Read    func(w *Warp, lane uint32) uint64
	Uniform bool // the same in all lanes
}

// Offset is the place of a slot in its bank, in bytes.
func (s Slot) Offset() uint32 {
	return uint32(s.I) * [simt.Banks]uint32{4 * simt.WarpSize, 8 * simt.WarpSize, 4}[s.Bank]
}

// Watch numbers an access of a kernel for marks.
func (c *Code) Watch(a *check.Access) {
	a.Id = len(c.Accesses)
	c.Accesses = append(c.Accesses, a)
	c.Nc = c.Nc || a.Nc
}
