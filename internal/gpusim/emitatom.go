package gpusim

import (
	"fmt"

	"github.com/warpline-ml/warpline/internal/ptx"
)

const atomMods = "global shared shared::cta relaxed acquire release acq_rel cta gpu sys cluster noftz L2::cache_hint " +
	"add min max inc dec cas exch and or xor"

// atomTypes are the types of each operation.
var atomTypes = map[string]string{
	"add": "u32 s32 u64 s64 f32 f64 f16 f16x2 bf16 bf16x2", "min": "u32 s32 u64 s64", "max": "u32 s32 u64 s64", "inc": "u32", "dec": "u32",
	"cas": "b16 b32 b64", "exch": "b32 b64", "and": "b32 b64", "or": "b32 b64", "xor": "b32 b64",
}

// atomic reads the operation and the type of an atom or red and checks the number of operands.
func (e *emitter) atomic() (f lane, t ptx.Type, operands int) {
	name := ""
	for _, m := range e.in.Mods {
		if atomTypes[m] != "" {
			name = m
		}
	}
	t, e.err = typed(e.in.Inst, atomMods, atomTypes[name])
	if e.err != nil {
		return nil, t, 0
	}
	operands = 1
	if name == "cas" {
		operands = 2
	}
	n := 1 + operands + int(b2u(e.in.Op == "atom"))
	if hint := e.in.Has("L2::cache_hint"); len(e.in.Args) != n+int(b2u(hint)) {
		e.fail("wants %d operands", n)
		return nil, t, 0
	}
	f, e.err = atomLane(name, t, false)
	return f, t, operands
}

// atom compiles atom and red: lanes act one after the other.
func (e *emitter) atom() op {
	f, t, operands := e.atomic()
	if e.err != nil {
		return nil
	}
	args, d := e.in.Args, slot{i: -1}
	if e.in.Op == "atom" {
		args = args[1:]
	}
	a, addr := e.memory(args[0], t.Size(), true)
	a.atomic, a.strong = true, true
	b := e.src(args[1], t)
	c := b
	if operands == 2 {
		c = e.src(args[2], t)
	}
	if e.in.Op == "atom" {
		d = e.dst(e.in.Args[0], t)
	}
	if a.space != ptx.Global && a.space != ptx.Shared && a.space != ptx.Generic {
		e.fail("an atomic on .%s", a.space)
	}
	x := atomics{a: a, size: t.Size(), f: f, global: f, d: d, b: b, c: c}
	if t == ptx.F32 && e.in.Has("add") {
		x.global, e.err = atomLane("add", t, true)
	}
	return func(w *warp) {
		addr(w)
		x.run(w)
	}
}

// atomics is one atom or red.
type atomics struct {
	a         *access
	size      int
	f, global lane // the new value, and that in global memory
	d, b, c   slot // the old value, where the instruction gives it (d.i < 0: nowhere), and the operands
}

// run acts on w.addr in the order of the lanes.
func (x *atomics) run(w *warp) {
	w.countAccess(x.a)
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		p := w.ref(x.a, i, w.addr[i])
		if p == nil {
			return
		}
		old, f := decode(p, x.size), x.f
		if x.a.space == ptx.Global || x.a.space == ptx.Generic && spaceAt(w.addr[i]) == ptx.Global {
			f = x.global
		}
		encode(p, x.size, f(old, w.get(x.b, i), w.get(x.c, i), 0))
		if x.d.i >= 0 {
			w.set(x.d, i, old)
		}
	}
}

// atomLane is the new value from the old one and the operands; arithmetic is that of the plain instructions. On global
// memory the sum of two f32 flushes subnormals.
func atomLane(name string, t ptx.Type, flush bool) (lane, error) {
	ext := extend(t)
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
	fm, err := formOf(&ptx.Inst{Op: name, Mods: mods})
	if err != nil {
		return nil, fmt.Errorf("atomic %s: %w", name, err)
	}
	return fm.f, nil
}

func (e *emitter) cp() op {
	switch {
	case !e.in.Has("async"):
		e.fail("only cp.async")
	case e.in.Has("mbarrier"):
		return e.asyncArrive()
	case e.in.Has("commit_group"):
		e.check("async commit_group")
		e.encode(lanesCommit)
		return func(w *warp) { w.commitAsync(w.mask) }
	case e.in.Has("wait_all"):
		e.check("async wait_all")
		return func(w *warp) {
			w.commitAsync(w.mask)
			w.finishAsync(w.mask, 0)
		}
	case e.in.Has("wait_group"):
		e.check("async wait_group")
		return e.waitGroup()
	default:
		return e.asyncCopy()
	}
	return nil
}

func (e *emitter) waitGroup() op {
	n, ok := e.arg(0).(*ptx.Imm)
	if !ok || n.Int() < 0 || n.Int() > 1<<20 {
		e.fail("wants a number")
		return nil
	}
	keep := n.Int()
	if !e.v.watched {
		e.encode(lanesWait)[atImm] = uint32(keep)
	}
	return func(w *warp) { w.finishAsync(w.mask, keep) }
}

// asyncCopy issues copies, see async.go for when they act.
func (e *emitter) asyncCopy() op {
	e.check("async ca cg shared shared::cta global L2::64B L2::128B L2::256B L2::cache_hint")
	e.arity(3, 5)
	if e.err != nil {
		return nil
	}
	size := e.copySize()
	to := &access{site: e.site, space: ptx.Shared, size: size, write: true}
	from := &access{site: e.site, space: ptx.Global, size: size}
	dst := e.address(e.in.Args[0], &to.space)
	target, targetOff := e.addr, e.addrOff
	src := e.address(e.in.Args[1], &from.space)
	n := e.copyLength(size)
	if e.err != nil {
		return nil
	}
	e.code.watch(to)
	plain := size == 16 && n.whole()
	if plain {
		e.encodeCopy(to, from, target, targetOff)
		e.review = func(w *warp) { w.reviewCopy(to, from) }
	}
	return func(w *warp) {
		dst(w)
		w.countAccess(to)
		targets := w.addr
		src(w)
		n.countReads(w, from)
		if plain {
			w.area(from) // for its memory of the allocation
		}
		for m := w.mask; m != 0 && w.cta.fault == nil; m &= m - 1 {
			i := lowest(m)
			w.issueAsync(to, from, i, targets[i], n.of(w, i))
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
	count   slot  // i is -1 without
	ignored int32 // -1 without
	negated bool
}

// copyLength reads the operand behind the size.
func (e *emitter) copyLength(size int) copyLength {
	n := copyLength{size: size, count: slot{i: -1}, ignored: -1}
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
	return ok && e.bank[e.in.fr.reg+r.ID] == bankPred
}

func (n *copyLength) whole() bool { return n.count.i < 0 && n.ignored < 0 }

func (n *copyLength) of(w *warp, lane int) int {
	switch {
	case n.ignored >= 0 && w.pred(n.ignored, n.negated)>>lane&1 == 1:
		return 0
	case n.count.i >= 0:
		return int(w.get(n.count, lane))
	}
	return n.size
}

// countReads counts the transactions of the lanes that read anything.
func (n *copyLength) countReads(w *warp, from *access) {
	all := w.mask
	for m := all; m != 0 && !n.whole(); m &= m - 1 {
		if i := lowest(m); n.of(w, i) == 0 {
			w.mask &^= 1 << i
		}
	}
	if w.mask != 0 {
		w.countAccess(from)
	}
	w.mask = all
}

// issueAsync starts a copy of n bytes, followed by zeros up to the size of the destination.
func (w *warp) issueAsync(to, from *access, lane int, target uint64, n int) {
	if n > to.size {
		w.badAccess(from, lane, ptx.Global, w.addr[lane], LaunchFailed, "cp.async with more source bytes than it copies", "")
		return
	}
	var data [16]byte
	if !w.readAsync(from, lane, data[:n]) {
		return
	}
	if w.ref(to, lane, target) == nil {
		return
	}
	if w.cta.race != nil {
		w.cta.race.markAsync(int(target), to.size)
		if n > 0 {
			w.cta.watchSource(w.addr[lane], n)
		}
	}
	w.pendAsync(to, lane, target, w.addr[lane], n, &data)
	w.landSome(lane)
}

// readAsync reads the source of a copy, which is aligned to the whole size even where only a part of it is read.
func (w *warp) readAsync(from *access, lane int, data []byte) bool {
	at, part := w.addr[lane], *from
	if len(data) < from.size {
		part.size = 1
	}
	if len(data) > 0 && at&uint64(from.size-1) != 0 {
		w.badAccess(from, lane, ptx.Global, at, MisalignedAddress, "misaligned read", "")
		return false
	}
	for i := 0; i < len(data); i += part.size {
		p := w.ref(&part, lane, at+uint64(i))
		if p == nil {
			return false
		}
		copy(data[i:], p)
	}
	return true
}
