package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
)

// apart gives every register a slot of its own, so that it keeps its value when nobody needs it any longer.
func (e *emitter) apart() (slots []int32, counts [simt.Banks]int) {
	for _, b := range e.bank {
		slots = append(slots, int32(counts[b]))
		counts[b]++
	}
	return slots, counts
}

// accesses tells a debugger of an access at the address last compiled.
func (e *emitter) accesses(a *check.Access) {
	if e.v.Debugged {
		e.touches = append(e.touches, warp.Touch{Access: a, Addr: e.addr, Off: e.addrOff})
	}
}

// copies tells a debugger of what a bulk copy reads or writes, whose address and length were compiled.
func (e *emitter) copies(a *check.Access, at warp.Touch, length warp.Slot) {
	if e.v.Debugged {
		at.Access, at.Length = a, length
		e.touches = append(e.touches, at)
	}
}

// point is the op that lets the debugger come by before an instruction, which has been compiled.
func (e *emitter) point(in *flow.Inst) warp.Op {
	p := &warp.Point{Site: e.site, Stack: in.Frame.Stack, Guard: -1, Touches: e.touches}
	if in.Guard != nil {
		p.Guard, p.Neg = e.guard()
	}
	e.code.Symbols.Points = append(e.code.Symbols.Points, p)
	return func(w *warp.Warp) { w.CTA.Launch.Debug.At(w, p) }
}

// symbols are the names of all registers and variables.
func (e *emitter) symbols() {
	s := e.code.Symbols
	for i, r := range e.f.Regs {
		s.Registers = append(s.Registers, warp.Register{Name: r.Name, Type: r.Type, Slot: warp.Slot{Bank: e.bank[i], I: e.slots[i], Bits: uint8(r.Type.Bits())}})
	}
	s.Variables = e.f.Variables()
}
