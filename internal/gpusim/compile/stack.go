package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// alloca takes memory from a part of the thread's local memory that kernels with it have beside their variables.

func (e *emitter) stackType() ptx.Type {
	t := e.in.Type()
	if t.Bits() != 32 && t.Bits() != 64 {
		e.fail("wants .u32 or .u64")
		return ptx.U64
	}
	return t
}

// alloca gives the local address of bytes on an alignment of 8, or the one given.
func (e *emitter) alloca() warp.Op {
	e.check("")
	e.arity(2, 3)
	t := e.stackType()
	size, on := e.src(e.arg(1), t), int64(8)
	if len(e.in.Args) == 3 {
		imm, ok := e.in.Args[2].(*ptx.Imm)
		if !ok || imm.Int() < 1 || imm.Int() > flow.StackBytes || imm.Int()&(imm.Int()-1) != 0 {
			e.fail("wants an alignment that is a power of two, and at most the stack")
			return nil
		}
		on = imm.Int()
	}
	d, s, start := e.dst(e.arg(0), t), e.site, e.f.Stack
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			at, n := simt.Align(start+int64(w.Stack[i]), on), w.Get(size, i)
			if n > flow.StackBytes || at+int64(n) > start+flow.StackBytes {
				w.CTA.Stop(w, s, i, memory.LaunchFailed, check.Memcheck, "the stack overflows: %d bytes taken, %d asked of %d", w.Stack[i], n, flow.StackBytes)
				return
			}
			w.Stack[i] = uint32(at + int64(n) - start)
			w.Set(d, i, uint64(at))
		}
	}
}

func (e *emitter) stacksave() warp.Op {
	e.check("")
	e.arity(1, 1)
	d, start := e.dst(e.arg(0), e.stackType()), e.f.Stack
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			w.Set(d, i, uint64(start)+uint64(w.Stack[i]))
		}
	}
}

func (e *emitter) stackrestore() warp.Op {
	e.check("")
	e.arity(1, 1)
	from, start, s := e.src(e.arg(0), e.stackType()), e.f.Stack, e.site
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			v := w.Get(from, i) - uint64(start)
			if v > uint64(w.Stack[i]) {
				w.CTA.Stop(w, s, i, memory.LaunchFailed, check.Memcheck, "stackrestore of what no stacksave gave")
				return
			}
			w.Stack[i] = uint32(v)
		}
	}
}
