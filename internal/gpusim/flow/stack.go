package flow

import (
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// StackBytes is what a thread may take.
const StackBytes = 16 << 10

// reserveStack makes room behind the variables if the kernel uses alloca.
func (f *Flat) reserveStack() {
	for i := range f.Code {
		if f.Code[i].Op == "alloca" {
			f.Stack = simt.Align(f.Locals, 16)
			f.Locals = f.Stack + StackBytes
			return
		}
	}
}

// takesStack is whether a function has an alloca of its own.
func takesStack(fn *ptx.Func) bool {
	for in := range fn.Insts() {
		if in.Op == "alloca" {
			return true
		}
	}
	return false
}

// keepStack emits the start of an inlined call that gives back at its end what its alloca took; the result emits the end.
func (f *Flat) keepStack(pos ptx.Pos, fr *frame) (giveBack func()) {
	r := &ptx.Reg{Pos: pos, Name: "%stack", ID: len(f.Regs) - fr.Reg}
	f.Regs = append(f.Regs, ptx.RegInfo{Name: r.Name, Type: ptx.B64})
	f.emit(&ptx.Inst{Pos: pos, Op: "stacksave", Mods: []string{"u64"}, Args: []ptx.Operand{r}}, fr)
	return func() {
		f.emit(&ptx.Inst{Pos: pos, Op: "stackrestore", Mods: []string{"u64"}, Args: []ptx.Operand{r}}, fr)
	}
}
