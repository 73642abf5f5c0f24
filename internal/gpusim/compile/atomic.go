package compile

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/lanes"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

const atomMods = "global shared shared::cta shared::cluster relaxed acquire release acq_rel cta gpu sys cluster noftz L2::cache_hint " +
	"add min max inc dec cas exch and or xor"

// atomTypes are the types of each operation.
var atomTypes = map[string]string{
	"add": "u32 s32 u64 s64 f32 f64 f16 f16x2 bf16 bf16x2", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "inc": "u32", "dec": "u32",
	"cas": "b16 b32 b64", "exch": "b32 b64", "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64",
}

// atomic reads the operation and the type of an atom or red and checks the number of operands.
func (e *emitter) atomic() (f arith.Lane, t ptx.Type, operands int) {
	name := ""
	for _, m := range e.in.Mods {
		if atomTypes[m] != "" {
			name = m
		}
	}
	t, e.err = arith.Typed(e.in.Inst, atomMods, atomTypes[name])
	if e.err != nil {
		return nil, t, 0
	}
	operands = 1
	if name == "cas" {
		operands = 2
	}
	n := 1 + operands + int(simt.Bit(e.in.Op == "atom"))
	if hint := e.in.Has("L2::cache_hint"); len(e.in.Args) != n+int(simt.Bit(hint)) {
		e.fail("wants %d operands", n)
		return nil, t, 0
	}
	f, e.err = atomLane(name, t, false)
	return f, t, operands
}

// atom compiles atom and red: lanes act one after the other.
func (e *emitter) atom() warp.Op {
	f, t, operands := e.atomic()
	if e.err != nil {
		return nil
	}
	args, d := e.in.Args, warp.Slot{I: -1}
	if e.in.Op == "atom" {
		args = args[1:]
	}
	a, addr := e.memory(args[0], t.Size(), true)
	a.Atomic, a.Strong = true, true
	b := e.src(args[1], t)
	c := b
	if operands == 2 {
		c = e.src(args[2], t)
	}
	if e.in.Op == "atom" {
		d = e.dst(e.in.Args[0], t)
	}
	if a.Space != ptx.Global && a.Space != ptx.Shared && a.Space != ptx.Generic {
		e.fail("an atomic on .%s", a.Space)
	}
	x := atomics{a: a, size: t.Size(), f: f, global: f, d: d, b: b, c: c}
	if t == ptx.F32 && e.in.Has("add") {
		x.global, e.err = atomLane("add", t, true)
	}
	return func(w *warp.Warp) {
		addr(w)
		x.run(w)
	}
}

// atomics is one atom or red.
type atomics struct {
	a         *check.Access
	size      int
	f, global arith.Lane // the new value, and that in global memory
	d, b, c   warp.Slot  // the old value, where the instruction gives it (d.i < 0: nowhere), and the operands
}

// run acts on w.Addr in the order of the lanes.
func (x *atomics) run(w *warp.Warp) {
	w.CountAccess(x.a)
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		p := w.Ref(x.a, i, w.Addr[i])
		if p == nil {
			return
		}
		old, f := numbers.Get(p, x.size), x.f
		if x.a.Space == ptx.Global || x.a.Space == ptx.Generic && memory.SpaceAt(w.Addr[i]) == ptx.Global {
			f = x.global
		}
		numbers.Put(p, x.size, f(old, w.Get(x.b, i), w.Get(x.c, i), 0))
		w.Atomic(x.a, i, old, numbers.Get(p, x.size) != old)
		if x.d.I >= 0 {
			w.Set(x.d, i, old)
		}
	}
}

// atomLane is the new value from the old one and the operands; arithmetic is that of the plain instructions. On global
// memory the sum of two f32 flushes subnormals.
func atomLane(name string, t ptx.Type, flush bool) (arith.Lane, error) {
	ext := arith.Extend(t)
	switch name {
	case "inc":
		return func(old, b, _, _ uint64) uint64 {
			if old >= ext(b) {
				return 0
			}
			return old + 1
		}, nil
	case "dec":
		return func(old, b, _, _ uint64) uint64 {
			if old == 0 || old > ext(b) {
				return b
			}
			return old - 1
		}, nil
	case "cas":
		return func(old, b, c, _ uint64) uint64 {
			if old == ext(b) {
				return c
			}
			return old
		}, nil
	case "exch":
		return func(_, b, _, _ uint64) uint64 { return b }, nil
	}
	mods := []string{t.String()}
	if t.Kind() == ptx.KindFloat {
		mods = []string{"rn", t.String()}
	}
	if flush {
		mods = append(mods, "ftz")
	}
	fm, err := arith.FormOf(&ptx.Inst{Op: name, Mods: mods})
	if err != nil {
		return nil, fmt.Errorf("atomic %s: %w", name, err)
	}
	return fm.F, nil
}

func (e *emitter) cp() warp.Op {
	switch {
	case e.in.Has("bulk"):
		return e.bulk()
	case !e.in.Has("async"):
		e.fail("only cp.async")
	case e.in.Has("mbarrier"):
		return e.asyncArrive()
	case e.in.Has("commit_group"):
		e.check("async commit_group")
		e.encode(lanes.Commit)
		return func(w *warp.Warp) { w.CommitAsync(w.Mask) }
	case e.in.Has("wait_all"):
		e.check("async wait_all")
		return func(w *warp.Warp) {
			w.CommitAsync(w.Mask)
			w.FinishAsync(w.Mask, 0)
		}
	case e.in.Has("wait_group"):
		e.check("async wait_group")
		return e.waitGroup()
	default:
		return e.asyncCopy()
	}
	return nil
}

func (e *emitter) waitGroup() warp.Op {
	n, ok := e.arg(0).(*ptx.Imm)
	if !ok || n.Int() < 0 || n.Int() > 1<<20 {
		e.fail("wants a number")
		return nil
	}
	keep := n.Int()
	if !e.v.Watched {
		e.encode(lanes.Wait)[lanes.AtImm] = uint32(keep)
	}
	return func(w *warp.Warp) { w.FinishAsync(w.Mask, keep) }
}

// asyncCopy issues copies, see async.go for when they act.
func (e *emitter) asyncCopy() warp.Op {
	e.check("async ca cg shared shared::cta global L2::64B L2::128B L2::256B L2::cache_hint")
	e.arity(3, 5)
	if e.err != nil {
		return nil
	}
	size := e.copySize()
	to := &check.Access{Site: e.site, Space: ptx.Shared, Size: size, Write: true}
	from := &check.Access{Site: e.site, Space: ptx.Global, Size: size, Elem: size}
	dst := e.address(e.in.Args[0], &to.Space)
	target, targetOff := e.addr, e.addrOff
	e.accesses(to)
	src := e.address(e.in.Args[1], &from.Space)
	e.accesses(from)
	n := e.copyLength(size)
	if e.err != nil {
		return nil
	}
	e.code.Watch(to)
	e.code.Watch(from)
	plain := size == 16 && n.whole()
	if plain {
		e.encodeCopy(to, from, target, targetOff)
		e.review = func(w *warp.Warp) { w.ReviewCopy(to, from) }
	}
	return func(w *warp.Warp) {
		dst(w)
		w.CountAccess(to)
		targets := w.Addr
		src(w)
		n.countReads(w, from)
		if plain {
			w.Area(from, false) // for its memory of the allocation
		}
		for m := w.Mask; m != 0 && w.CTA.Fault == nil; m &= m - 1 {
			i := simt.Lowest(m)
			w.IssueAsync(to, from, i, targets[i], n.of(w, i))
		}
	}
}

// copySize is the bytes that each lane writes.
func (e *emitter) copySize() (size int) {
	if n, ok := e.in.Args[2].(*ptx.Imm); ok {
		size = int(n.Int())
	}
	if size != 16 && (e.in.Has("cg") || size != 4 && size != 8) {
		e.fail("copies 4, 8 or 16 bytes, .cg only 16")
	}
	return size
}

// copyLength is how many bytes each lane of a copy reads: size, or what a register says, or none where a predicate holds.
type copyLength struct {
	size    int
	count   warp.Slot // i is -1 without
	ignored int32     // -1 without
	negated bool
}

// copyLength reads the operand behind the size.
func (e *emitter) copyLength(size int) copyLength {
	n := copyLength{size: size, count: warp.Slot{I: -1}, ignored: -1}
	if len(e.in.Args) > 3 && !e.in.Has("L2::cache_hint") || len(e.in.Args) > 4 {
		if e.isPred(e.in.Args[3]) {
			n.ignored, n.negated = e.pred(e.in.Args[3])
		} else {
			n.count = e.src(e.in.Args[3], ptx.U32)
		}
	}
	return n
}

// isPred is whether an operand is a predicate register, which may be negated.
func (e *emitter) isPred(o ptx.Operand) bool {
	if n, ok := o.(*ptx.Not); ok {
		o = n.X
	}
	r, ok := o.(*ptx.Reg)
	return ok && e.bank[e.in.Frame.Reg+r.ID] == simt.BankPred
}

func (n *copyLength) whole() bool { return n.count.I < 0 && n.ignored < 0 }

func (n *copyLength) of(w *warp.Warp, lane int) int {
	switch {
	case n.ignored >= 0 && w.Pred(n.ignored, n.negated)>>lane&1 == 1:
		return 0
	case n.count.I >= 0:
		return int(w.Get(n.count, lane))
	}
	return n.size
}

// countReads counts the transactions of the lanes that read anything.
func (n *copyLength) countReads(w *warp.Warp, from *check.Access) {
	all := w.Mask
	for m := all; m != 0 && !n.whole(); m &= m - 1 {
		if i := simt.Lowest(m); n.of(w, i) == 0 {
			w.Mask &^= 1 << i
		}
	}
	if w.Mask != 0 {
		w.CountAccess(from)
	}
	w.Mask = all
}
