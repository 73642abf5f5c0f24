package compile

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/flow"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

const memMods = "global shared shared::cta shared::cluster local const param param::entry param::func nc volatile weak relaxed acquire release mmio " +
	"cta gpu sys cluster ca cg cs lu cv wb wt v2 v4 L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last " +
	"L1::no_allocate L2::64B L2::128B L2::256B L2::cache_hint L2::evict_first L2::evict_last L2::evict_normal noftz"

// address compiles a memory operand: it fills w.Addr.
func (e *emitter) address(o ptx.Operand, space *ptx.Space) warp.Op {
	a, ok := o.(*ptx.Addr)
	if !ok || len(a.Rest) > 0 {
		e.fail("wants an address in brackets")
		return nil
	}
	off := uint64(a.Off)
	e.paramAt = -1
	var s warp.Slot
	switch b := a.Base.(type) {
	case *ptx.Reg:
		t := ptx.U64
		if simt.BankOf(e.f.Regs[e.in.Frame.Reg+b.ID].Type) == simt.Bank32 {
			t = ptx.U32
		}
		s = e.src(b, t)
		if *space == ptx.Param && (e.in.Frame.End >= 0 || !e.f.Fn.Entry) && !e.in.Has("param::entry") {
			*space = ptx.Local // where a parameter of a function is whose address was taken
		}
	case *ptx.Imm:
		s = e.constant(uint64(b.Int()), ptx.U64)
	case *ptx.Sym:
		off += e.symbol(b, space)
		if *space == ptx.Param {
			e.paramAt = int(off)
		}
		s = e.constant(off, ptx.U64)
		off = 0
	default:
		e.fail("an address of this kind")
		return nil
	}
	e.addr, e.addrOff = s, off
	return addressing(s, off)
}

// addressing fills w.Addr with a slot's values plus an offset; those of 32 bits wrap around.
func addressing(s warp.Slot, off uint64) warp.Op {
	if s.Bank == simt.Bank32 {
		return func(w *warp.Warp) {
			for i, v := range &w.R32[s.I] {
				w.Addr[i] = uint64(v + uint32(off))
			}
		}
	}
	return func(w *warp.Warp) {
		for i, v := range &w.R64[s.I] {
			w.Addr[i] = v + off
		}
	}
}

// symbol is the address of a variable in the space of the access. Parameters of inlined functions live in local memory,
// and a generic access wants the address in the window.
func (e *emitter) symbol(b *ptx.Sym, space *ptx.Space) uint64 {
	p, ok := flow.Home{}, false
	if b.Var != nil {
		p, ok = e.f.Find(b.Var, e.in.Frame)
	}
	if !ok {
		e.fail("the address of %s", b.Name)
		return 0
	}
	at := uint64(e.offset(p) + b.Off)
	switch {
	case *space == ptx.Param:
		*space = p.Space
	case *space == ptx.Generic:
		at += memory.Window(p.Space)
	case *space != p.Space:
		e.fail("%s is in .%s", b.Name, p.Space)
	}
	return at
}

// memory reads what ld, st, atom and red have in common.
func (e *emitter) memory(o ptx.Operand, size int, write bool) (*check.Access, warp.Op) {
	a := &check.Access{Site: e.site, Space: e.in.Space(), Size: size, Write: write, Used: e.in.Used}
	a.Strong, a.Nc = flow.Talking(e.in.Inst), e.in.Has("nc") || e.in.Op == "ldu"
	a.Acquire, a.Release, a.Polled = e.in.Has("acquire") || e.in.Has("acq_rel"), e.in.Has("release") || e.in.Has("acq_rel"), e.polled[e.in]
	a.Scope, a.Elem = e.scope(), size/e.in.VecLen()
	a.Exchange = e.in.Has("cas")
	addr := e.address(o, &a.Space)
	if a.Space == ptx.SharedCluster {
		a.Space, e.remote = ptx.Shared, true
	}
	e.code.Signals = e.code.Signals || a.Strong && (a.Space == ptx.Shared || a.Space == ptx.Generic)
	e.code.Watch(a)
	e.access = a
	e.accesses(a)
	return a, addr
}

// list is an operand that may be a vector of n.
func (e *emitter) list(o ptx.Operand, n int) []ptx.Operand {
	v, ok := o.(*ptx.Vec)
	switch {
	case !ok && n == 1:
		return []ptx.Operand{o}
	case ok && len(v.Elems) == n:
		return v.Elems
	}
	e.fail("wants %d values", n)
	return nil
}

// memType checks the type of a load or store.
func (e *emitter) memType() ptx.Type {
	t := e.in.Type()
	if t == ptx.NoType || t == ptx.Pred || t.Bits() < 8 || t.Bits() > 64 || len(e.in.Types()) != 1 || t.Size()*e.in.VecLen() > 16 {
		e.fail("an access of this type")
		return ptx.B32
	}
	return t
}

func (e *emitter) load() warp.Op {
	e.check(memMods)
	e.arity(2, 3)
	if e.err != nil {
		return nil
	}
	t, n := e.memType(), e.in.VecLen()
	a, addr := e.memory(e.in.Args[1], t.Size()*n, false)
	var d []warp.Slot
	for _, o := range e.list(e.in.Args[0], n) {
		d = append(d, e.dst(o, t))
	}
	if e.err != nil {
		return nil
	}
	if a.Space == ptx.Param && e.paramAt >= 0 {
		return e.loadParam(d, t)
	}
	if t.Kind() == ptx.KindInt && slices.ContainsFunc(d, func(x warp.Slot) bool { return int(x.Bits) > t.Bits() }) {
		return loadOp(a, addr, d, t.Size(), arith.Extend(t))
	}
	e.encodeLoad(a, t, d)
	if a.Size == check.VectorSize && n == 4 {
		e.reviewer(a, simt.WarpSize)
	} else {
		e.watcher(a, addr, simt.Full, nil)
	}
	return loadOp(a, addr, d, t.Size(), nil)
}

// loadOp loads a value of so many bytes for each slot; ext extends its sign, nil where it has none.
func loadOp(a *check.Access, addr warp.Op, d []warp.Slot, size int, ext func(uint64) uint64) warp.Op {
	whole := size == 4 && ext == nil
	return func(w *warp.Warp) {
		addr(w)
		w.CountAccess(a)
		if mem := w.Area(a, whole); mem != nil && whole {
			if w.Row && len(d) == 1 && d[0].Bank == simt.Bank32 {
				warp.LoadRow(&w.R32[d[0].I], mem[w.Off[0]:])
				return
			}
			for j, x := range d {
				w.LoadWords(x, mem[4*j:])
			}
			return
		}
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			p := w.Ref(a, i, w.Addr[i])
			if p == nil {
				return
			}
			for j, x := range d {
				v := numbers.Get(p[j*size:], size)
				if ext != nil {
					v = ext(v)
				}
				w.Set(x, i, v)
			}
		}
	}
}

// loadParam copies a parameter of the kernel, which is the same in all lanes of the launch.
func (e *emitter) loadParam(d []warp.Slot, t ptx.Type) warp.Op {
	at := e.paramAt
	if at < 0 || at+len(d)*t.Size() > int(e.f.Params) || at%t.Size() != 0 {
		e.fail("reads past the end of the parameters, or across their alignment")
		return nil
	}
	var ops []warp.Op
	for j, x := range d {
		s := e.paramSlot(at+j*t.Size(), t, x.Bank, x.Bits)
		if len(d) == 1 {
			return e.copy(x, s)
		}
		ops = append(ops, copyOp(x, s))
	}
	return func(w *warp.Warp) {
		for _, f := range ops {
			f(w)
		}
	}
}

// paramSlot holds the bytes of the parameters from an offset on, as a register of a bank and a width has them.
func (e *emitter) paramSlot(from int, t ptx.Type, b simt.Bank, width uint8) warp.Slot {
	key := fmt.Sprint("param", from, t, b, width)
	s, ok := e.specials[key]
	if !ok {
		ext := arith.Extend(t)
		s = e.fresh(b)
		s.Bits = width
		e.specials[key] = s
		e.code.Launched = append(e.code.Launched, warp.Special{Slot: s, Read: func(w *warp.Warp, _ uint32) uint64 {
			return ext(numbers.Get(w.CTA.Launch.Params[from:], t.Size()))
		}, Uniform: true})
	}
	return s
}

func (e *emitter) store() warp.Op {
	e.check(memMods)
	e.arity(2, 3)
	if e.err != nil {
		return nil
	}
	t, n := e.memType(), e.in.VecLen()
	a, addr := e.memory(e.in.Args[0], t.Size()*n, true)
	var s []warp.Slot
	for _, o := range e.list(e.in.Args[1], n) {
		s = append(s, e.src(o, t))
	}
	if a.Space == ptx.Param || a.Space == ptx.ConstSpace {
		e.fail("a store to memory that cannot be written")
	}
	if e.err != nil {
		return nil
	}
	size := t.Size()
	a.Plain = true
	fill := func(w *warp.Warp, lane int) {
		for j, x := range s {
			numbers.Put(w.Data[j*size:], size, w.Get(x, lane))
		}
	}
	e.encodeStore(a, t, s)
	e.watcher(a, addr, simt.Full, fill)
	return storeOp(a, addr, s, size, fill)
}

// storeOp stores the values of slots, of so many bytes each.
func storeOp(a *check.Access, addr warp.Op, s []warp.Slot, size int, fill func(w *warp.Warp, lane int)) warp.Op {
	whole := size == 4
	return func(w *warp.Warp) {
		addr(w)
		w.CountAccess(a)
		if mem := w.Area(a, whole); mem != nil && whole {
			if w.Row && len(s) == 1 && s[0].Bank == simt.Bank32 {
				warp.StoreRow(mem[w.Off[0]:], &w.R32[s[0].I])
				return
			}
			for j, x := range s {
				w.StoreWords(x, mem[4*j:])
			}
			return
		}
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			fill(w, i)
			p := w.Ref(a, i, w.Addr[i])
			if p == nil {
				return
			}
			copy(p, w.Data[:])
		}
	}
}
