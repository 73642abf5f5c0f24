package gpusim

import "github.com/warpline-ml/warpline/internal/ptx"

// alloca takes memory from a part of the thread's local memory that kernels with it have beside their variables.

// stackBytes is what a thread may take.
const stackBytes = 16 << 10

// reserveStack makes room behind the variables if the kernel uses alloca.
func (f *flat) reserveStack() {
	for i := range f.code {
		if f.code[i].Op == "alloca" {
			f.stack = align(f.locals, 16)
			f.locals = f.stack + stackBytes
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
func (f *flat) keepStack(pos ptx.Pos, fr *frame) (giveBack func()) {
	r := &ptx.Reg{Pos: pos, Name: "%stack", ID: len(f.regs) - fr.reg}
	f.regs = append(f.regs, ptx.RegInfo{Name: r.Name, Type: ptx.B64})
	f.emit(&ptx.Inst{Pos: pos, Op: "stacksave", Mods: []string{"u64"}, Args: []ptx.Operand{r}}, fr)
	return func() {
		f.emit(&ptx.Inst{Pos: pos, Op: "stackrestore", Mods: []string{"u64"}, Args: []ptx.Operand{r}}, fr)
	}
}

func (e *emitter) stackType() ptx.Type {
	t := e.in.Type()
	if t.Bits() != 32 && t.Bits() != 64 {
		e.fail("wants .u32 or .u64")
		return ptx.U64
	}
	return t
}

// alloca gives the local address of bytes on an alignment of 8, or the one given.
func (e *emitter) alloca() op {
	e.check("")
	e.arity(2, 3)
	t := e.stackType()
	size, on := e.src(e.arg(1), t), int64(8)
	if len(e.in.Args) == 3 {
		imm, ok := e.in.Args[2].(*ptx.Imm)
		if !ok || imm.Int() < 1 || imm.Int() > stackBytes || imm.Int()&(imm.Int()-1) != 0 {
			e.fail("wants an alignment that is a power of two, and at most the stack")
			return nil
		}
		on = imm.Int()
	}
	d, s, start := e.dst(e.arg(0), t), e.site, e.f.stack
	return func(w *warp) {
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			at, n := align(start+int64(w.stack[i]), on), w.get(size, i)
			if n > stackBytes || at+int64(n) > start+stackBytes {
				w.cta.stop(w, s, i, LaunchFailed, Memcheck, "the stack overflows: %d bytes taken, %d asked of %d", w.stack[i], n, stackBytes)
				return
			}
			w.stack[i] = uint32(at + int64(n) - start)
			w.set(d, i, uint64(at))
		}
	}
}

func (e *emitter) stacksave() op {
	e.check("")
	e.arity(1, 1)
	d, start := e.dst(e.arg(0), e.stackType()), e.f.stack
	return func(w *warp) {
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			w.set(d, i, uint64(start)+uint64(w.stack[i]))
		}
	}
}

func (e *emitter) stackrestore() op {
	e.check("")
	e.arity(1, 1)
	from, start, s := e.src(e.arg(0), e.stackType()), e.f.stack, e.site
	return func(w *warp) {
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			v := w.get(from, i) - uint64(start)
			if v > uint64(w.stack[i]) {
				w.cta.stop(w, s, i, LaunchFailed, Memcheck, "stackrestore of what no stacksave gave")
				return
			}
			w.stack[i] = uint32(v)
		}
	}
}
