package warp

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Debugger looks at a launch while it runs: its code is compiled so that it comes by at each instruction. The launch waits for
// as long as a method takes; meanwhile all of the device, its blocks and warps may be looked at.
type Debugger interface {
	At(w *Warp, p *Point)           // before an instruction, which the lanes in w.Mask run for which its predicate holds
	Found(c *CTA, f *check.Finding) // at a finding, also the one that ends the kernel
}

// Point is an instruction as a Debugger sees it.
type Point struct {
	Site    *check.Site
	Stack   []flow.Call // the function that it is in, and its callers; the kernel is the first
	Guard   int32       // its predicate; -1 without
	Neg     bool
	Touches []Touch
}

// Touch is an access that an instruction is about to make, at a slot's values plus an offset.
type Touch struct {
	Access *check.Access
	Addr   Slot
	Off    uint64
	Length Slot // of a bulk copy, in bytes
}

// Symbols are the names of a kernel that is compiled for a Debugger.
type Symbols struct {
	Points    []*Point // by Site.Id
	Registers []Register
	Variables map[*ptx.Var]flow.Home
}

// Register is a register of the kernel, or of a function inlined; by its number.
type Register struct {
	Name string
	Type ptx.Type
	Slot Slot
}

// Active is the lanes that are about to run an instruction.
func (p *Point) Active(w *Warp) uint32 {
	if p.Guard < 0 {
		return w.Mask
	}
	return w.Mask & w.Pred(p.Guard, p.Neg)
}

// At is a lane's address.
func (t *Touch) At(w *Warp, lane int) uint64 {
	v := w.Get(t.Addr, lane) + t.Off
	if t.Addr.Bank == simt.Bank32 {
		v &= 1<<32 - 1
	}
	return v
}

// Bytes is how many a lane accesses.
func (t *Touch) Bytes(w *Warp, lane int) int {
	if t.Access.Bulk {
		return int(w.Get(t.Length, lane))
	}
	return t.Access.Size
}

// Counts are the transactions of an access that lanes are about to make, as counters have them, and the space that it is in. A bulk copy
// has none: it is not the lanes' own.
func (t *Touch) Counts(w *Warp, lanes uint32) (m MemoryCounts, space ptx.Space) {
	space = t.Access.Space
	if lanes == 0 || t.Access.Bulk {
		return m, space
	}
	var addr simt.Vec64
	for left := lanes; left != 0; left &= left - 1 {
		lane := simt.Lowest(left)
		addr[lane] = t.At(w, int(lane))
	}
	if space == ptx.Generic {
		space = memory.SpaceAt(addr[simt.Lowest(lanes)])
	}
	switch space {
	case ptx.Global:
		var seen [2 * simt.WarpSize]uint64
		m.GlobalRequests, m.Sectors = 1, uint64(sectors(&addr, lanes, t.Access.Size, &seen))
	case ptx.Shared:
		m.countShared(&addr, lanes, t.Access.Size)
	}
	return m, space
}

// Part is lanes of a warp that run together, or wait.
type Part struct {
	Mask  uint32
	Point *Point // that comes next
	State string // "ready", "waits for lanes", "waits at barrier 0"
	Bar   int    // that is waited for; -1 for none
}

// Parts are those of a warp, but for lanes that have come to where others of their warp are to meet them.
func (w *Warp) Parts() []Part {
	var all []Part
	for _, sp := range w.splits {
		if sp.pc >= len(w.Code.Blocks) {
			continue
		}
		b := &w.Code.Blocks[sp.pc]
		x := Part{Mask: sp.mask, State: "ready", Bar: -1}
		if b.First < len(w.Code.Symbols.Points) {
			x.Point = w.Code.Symbols.Points[b.First]
		}
		if sp.state != ready && b.Term.Site != nil {
			x.Point = w.Code.Symbols.Points[b.Term.Site.Id]
			x.State = "waits for lanes"
		}
		if sp.state == atBar {
			x.State, x.Bar = "waits at a barrier", int(sp.bar)
		}
		all = append(all, x)
	}
	return all
}

// Live is the lanes that have not exited, and Born those that there ever were.
func (w *Warp) Live() uint32 { return w.live }

// Born is the lanes that there ever were.
func (w *Warp) Born() uint32 { return w.born }

// Warps are those of the block.
func (c *CTA) Warps() []*Warp { return c.warps }

// SharedMemory is the block's, with the gaps between arrays that checks put there.
func (c *CTA) SharedMemory() []byte { return c.shared }

// tellFault tells the debugger of what has ended the kernel, once all is known of it.
func (c *CTA) tellFault() {
	if c.Fault != nil && c.told != c.Fault {
		c.told = c.Fault
		c.found(&c.Fault.Finding)
	}
}

// found tells the debugger of a finding.
func (c *CTA) found(f *check.Finding) {
	if d := c.Launch.Debug; d != nil {
		d.Found(c, f)
	}
}
