package compile

import (
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/tensormap"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// cp.async.bulk: copies of many bytes by one thread, see package warp for when they act.

// lanewise reads an operand for a lane.
type lanewise func(w *warp.Warp, lane int) uint64

// bulk compiles what begins with cp.async.bulk and cp.reduce.async.bulk.
func (e *emitter) bulk() warp.Op {
	switch {
	case e.in.Has("commit_group"):
		e.check("async bulk commit_group")
		e.arity(0, 0)
		return func(w *warp.Warp) { w.CommitBulk() }
	case e.in.Has("wait_group"):
		return e.bulkWait()
	case e.in.Has("prefetch"):
		return e.prefetchBulk()
	case e.in.Has("tensor"):
		return e.tensor()
	}
	e.check("reduce async bulk global shared::cta shared::cluster mbarrier::complete_tx::bytes bulk_group multicast::cluster L2::cache_hint noftz " +
		"and or xor add inc dec min max")
	if e.err != nil {
		return nil
	}
	return e.bulkCopy()
}

func (e *emitter) bulkWait() warp.Op {
	e.check("async bulk wait_group read")
	n, ok := e.arg(0).(*ptx.Imm)
	if !ok || n.Int() < 0 {
		e.fail("wants a number")
		return nil
	}
	keep, read := n.Int(), e.in.Has("read")
	return func(w *warp.Warp) { w.WaitBulk(keep, read) }
}

// prefetchBulk only concerns caches; its operands must be there.
func (e *emitter) prefetchBulk() warp.Op {
	e.check("async bulk prefetch tensor 1d 2d 3d 4d 5d L2 global tile im2col L2::cache_hint")
	for _, o := range e.in.Args {
		e.touch(o)
	}
	return e.nothing()
}

// touch makes an operand one that the instruction uses.
func (e *emitter) touch(o ptx.Operand) {
	switch o := o.(type) {
	case *ptx.Reg:
		e.reg(o)
	case *ptx.Addr:
		e.touch(o.Base)
		for _, r := range o.Rest {
			e.touch(r)
		}
	case *ptx.Vec:
		for _, r := range o.Elems {
			e.touch(r)
		}
	}
}

// place reads the address in operand i, in a space, without the window of generic addresses.
func (e *emitter) place(i int, space ptx.Space) lanewise {
	at := space
	if at == ptx.SharedCluster {
		at = ptx.Shared
	}
	if e.address(e.arg(i), &at) == nil {
		return nil
	}
	s, off := e.addr, e.addrOff
	if s.Bank == simt.Bank32 {
		return func(w *warp.Warp, lane int) uint64 { return uint64(w.R32[s.I][lane] + uint32(off)) }
	}
	return func(w *warp.Warp, lane int) uint64 { return w.R64[s.I][lane] + off }
}

// value reads operand i as a type.
func (e *emitter) value(i int, t ptx.Type) lanewise {
	s := e.src(e.arg(i), t)
	return func(w *warp.Warp, lane int) uint64 { return w.Get(s, lane) }
}

// spaces are those of a copy's destination and source.
func (e *emitter) spaces() (dst, src ptx.Space) {
	var list []ptx.Space
	for _, m := range e.in.Mods {
		switch m {
		case "global":
			list = append(list, ptx.Global)
		case "shared::cta":
			list = append(list, ptx.Shared)
		case "shared::cluster":
			list = append(list, ptx.SharedCluster)
		}
	}
	if len(list) != 2 {
		e.fail("wants two state spaces")
		return ptx.Generic, ptx.Generic
	}
	return list[0], list[1]
}

// mask reads the blocks of a multicast in operand i, where the form has it. Without, it is 0.
func (e *emitter) multicast(i int) lanewise {
	if !e.in.Has("multicast::cluster") {
		return func(*warp.Warp, int) uint64 { return 0 }
	}
	return e.value(i, ptx.U16)
}

// bulkCopy compiles a copy of a run of bytes, or a reduction.
func (e *emitter) bulkCopy() warp.Op {
	dst, src := e.spaces()
	if e.err != nil {
		return nil
	}
	to := e.place(0, dst)
	toAt := warp.Touch{Addr: e.addr, Off: e.addrOff}
	from := e.place(1, src)
	fromAt := warp.Touch{Addr: e.addr, Off: e.addrOff}
	n, length := e.value(2, ptx.U32), e.src(e.arg(2), ptx.U32)
	b := &warp.Bulk{Site: e.site}
	var bar, blocks lanewise
	if e.in.Has("mbarrier::complete_tx::bytes") {
		bar = e.place(3, ptx.Shared)
		blocks = e.multicast(4)
		b.Bar = &check.Access{Site: e.site, Space: ptx.Shared, Size: 8}
	}
	combine := e.combination()
	if e.err != nil {
		return nil
	}
	switch {
	case src == ptx.Global:
		b.Global, b.Shared = e.bulkAccess(ptx.Global, false), e.bulkAccess(ptx.Shared, true)
		e.copies(b.Global, fromAt, length)
		e.copies(b.Shared, toAt, length)
		return e.each(func(w *warp.Warp, lane int) {
			w.LoadBulk(b, lane, to(w, lane), from(w, lane), n(w, lane), bar(w, lane), uint32(blocks(w, lane)))
		})
	case dst == ptx.Global:
		b.Global, b.Shared = e.bulkAccess(ptx.Global, true), e.bulkAccess(ptx.Shared, false)
		e.reducing(b.Global)
		e.copies(b.Global, toAt, length)
		e.copies(b.Shared, fromAt, length)
		return e.each(func(w *warp.Warp, lane int) {
			w.StoreBulk(b, lane, to(w, lane), from(w, lane), n(w, lane), combine)
		})
	}
	b.Shared = e.bulkAccess(ptx.Shared, true)
	return e.each(func(w *warp.Warp, lane int) {
		w.SendBulk(b, lane, to(w, lane), from(w, lane), n(w, lane), bar(w, lane), combine)
	})
}

// each runs f for the active lanes until the kernel is stopped.
func (e *emitter) each(f func(w *warp.Warp, lane int)) warp.Op {
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0 && w.CTA.Fault == nil; m &= m - 1 {
			f(w, simt.Lowest(m))
		}
	}
}

// reducing marks the access of a reduction: PTX takes it for relaxed atomics of the device's scope, each of an element.
func (e *emitter) reducing(a *check.Access) {
	if e.in.Has("reduce") {
		a.Atomic, a.Strong, a.Scope = true, true, check.OfDevice
	}
}

// combination is how what is copied meets what is there: it replaces it, or each element is the result of an operation.
func (e *emitter) combination() func(to, from []byte) {
	if !e.in.Has("reduce") {
		return func(to, from []byte) { copy(to, from) }
	}
	return e.reduction(e.in.Type())
}

// reduction is the operation of the instruction on elements of a type.
func (e *emitter) reduction(t ptx.Type) func(to, from []byte) {
	f := e.reduce(t)
	if f == nil {
		return nil
	}
	size := t.Size()
	return func(to, from []byte) {
		for i := 0; i+size <= len(to); i += size {
			numbers.Put(to[i:], size, f(numbers.Get(to[i:], size), numbers.Get(from[i:], size)))
		}
	}
}

// reduce is the operation on two elements, that of red.
func (e *emitter) reduce(t ptx.Type) func(old, v uint64) uint64 {
	op := ""
	for _, name := range []string{"and", "or", "xor", "add", "inc", "dec", "min", "max"} {
		if e.in.Has(name) {
			op = name
		}
	}
	switch {
	case slices.Contains(strings.Fields(atomTypes[op]), t.String()):
		f, err := atomLane(op, t, false)
		if err != nil {
			e.fail("%s of .%s", op, t)
			return nil
		}
		return func(old, v uint64) uint64 { return f(old, v, 0, 0) }
	case (op == "min" || op == "max") && t.Bits() == 16 && t.Kind() == ptx.KindFloat:
		fm, err := arith.FormOf(&ptx.Inst{Pos: e.in.Pos, Op: op, Mods: []string{t.String()}})
		if err == nil {
			return func(old, v uint64) uint64 { return fm.F(old, v, 0, 0) }
		}
	}
	e.fail("%s of .%s", op, t)
	return nil
}

// tensor compiles a copy of a box of a tensor.
func (e *emitter) tensor() warp.Op {
	e.check("reduce async bulk tensor 1d 2d 3d 4d 5d global shared::cta shared::cluster tile im2col im2col_no_offs " +
		"mbarrier::complete_tx::bytes bulk_group multicast::cluster L2::cache_hint and or xor add inc dec min max")
	dst, src := e.spaces()
	if e.err != nil {
		return nil
	}
	if dst == ptx.Global {
		return e.storeTensor()
	}
	if src != ptx.Global {
		e.fail("copies between global and shared memory")
		return nil
	}
	to, box, bar := e.place(0, dst), e.box(1), e.place(2, ptx.Shared)
	next := 3
	if e.in.Has("im2col") {
		box.offsets = e.offsets(3, box.dims-2)
		next++
	}
	blocks := e.multicast(next)
	if e.err != nil {
		return nil
	}
	b := &warp.Bulk{Site: e.site, Global: e.bulkAccess(ptx.Global, false), Shared: e.bulkAccess(ptx.Shared, true),
		Bar: &check.Access{Site: e.site, Space: ptx.Shared, Size: 8}}
	return e.each(func(w *warp.Warp, lane int) {
		w.LoadTensor(b, lane, to(w, lane), box.of(w, lane), bar(w, lane), uint32(blocks(w, lane)))
	})
}

func (e *emitter) storeTensor() warp.Op {
	box, from := e.box(0), e.place(1, ptx.Shared)
	var combine [tensormap.Elems]func(to, from []byte)
	if e.in.Has("reduce") {
		for t := range combine {
			combine[t] = e.tensorReduction(tensormap.Elem(t))
		}
	} else {
		for t := range combine {
			combine[t] = func(to, from []byte) { copy(to, from) }
		}
	}
	if e.err != nil {
		return nil
	}
	b := &warp.Bulk{Site: e.site, Global: e.bulkAccess(ptx.Global, true), Shared: e.bulkAccess(ptx.Shared, false)}
	e.reducing(b.Global)
	return e.each(func(w *warp.Warp, lane int) { w.StoreTensor(b, lane, box.of(w, lane), from(w, lane), &combine) })
}

// elemTypes are the types of PTX that those of tensor maps are.
var elemTypes = [tensormap.Elems]ptx.Type{ptx.U8, ptx.U16, ptx.U32, ptx.S32, ptx.U64, ptx.S64, ptx.F16, ptx.F32, ptx.F64, ptx.BF16, ptx.F32, ptx.F32, ptx.F32}

// tensorReduction is the operation on elements of a map's type; nil where it has none, which is told when a map has it.
func (e *emitter) tensorReduction(t tensormap.Elem) func(to, from []byte) {
	if t.Bytes() == 1 {
		return nil
	}
	of := elemTypes[t]
	if (e.in.Has("and") || e.in.Has("or") || e.in.Has("xor")) && of.Bits() >= 32 && of.Kind() != ptx.KindFloat {
		of = map[int]ptx.Type{32: ptx.B32, 64: ptx.B64}[of.Bits()]
	}
	before := e.err
	f := e.reduction(of)
	e.err = before
	return f
}

// boxOperand is a tensor map with its coordinates.
type boxOperand struct {
	at      lanewise
	dims    int
	coords  []lanewise
	offsets []lanewise
	im2col  bool
}

func (e *emitter) box(i int) *boxOperand {
	b := &boxOperand{im2col: e.in.Has("im2col") || e.in.Has("im2col_no_offs")}
	a, ok := e.arg(i).(*ptx.Addr)
	if !ok || len(a.Rest) != 1 {
		e.fail("wants a tensor map with coordinates")
		return b
	}
	v, ok := a.Rest[0].(*ptx.Vec)
	if !ok || len(v.Elems) > tensormap.MaxRank {
		e.fail("wants a tensor map with coordinates")
		return b
	}
	b.dims = len(v.Elems)
	for _, o := range v.Elems {
		s := e.src(o, ptx.B32)
		b.coords = append(b.coords, func(w *warp.Warp, lane int) uint64 { return w.Get(s, lane) })
	}
	space := ptx.Generic
	if e.address(&ptx.Addr{Pos: a.Pos, Base: a.Base, Off: a.Off}, &space) == nil {
		return b
	}
	s, off := e.addr, e.addrOff
	b.at = func(w *warp.Warp, lane int) uint64 { return w.Get(s, lane) + off }
	return b
}

func (e *emitter) offsets(i, n int) (list []lanewise) {
	for _, o := range e.list(e.arg(i), n) {
		s := e.src(o, ptx.U16)
		list = append(list, func(w *warp.Warp, lane int) uint64 { return w.Get(s, lane) })
	}
	return list
}

// of reads the operand for a lane.
func (b *boxOperand) of(w *warp.Warp, lane int) warp.Box {
	x := warp.Box{Map: b.at(w, lane), Rank: b.dims, Im2col: b.im2col}
	for i, c := range b.coords {
		x.At[i] = int32(c(w, lane))
	}
	for i, o := range b.offsets {
		x.Offsets[i] = uint16(o(w, lane))
	}
	return x
}

// tensormap compiles what changes an encoded map.
func (e *emitter) tensormap() warp.Op {
	if e.in.Has("cp_fenceproxy") {
		return e.publishMap()
	}
	e.check("replace tile global shared::cta b1024 global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode fill_mode")
	field := ""
	for _, m := range e.in.Mods {
		if strings.Contains(m, "_") || m == "rank" || m == "elemtype" {
			field = m
		}
	}
	a, addr := e.memory(e.arg(0), 16, true)
	a.Strong = false
	last := len(e.in.Args) - 1
	ord := lanewise(func(*warp.Warp, int) uint64 { return 0 })
	if last == 2 {
		ord = e.value(1, ptx.U32)
	}
	t := ptx.U32
	if e.in.Has("b64") {
		t = ptx.U64
	}
	v, units := e.value(last, t), uint64(1)
	if field == "global_stride" && e.f.Prog.Ptx.Version.Less(ptx.Version{Major: 8, Minor: 5}) {
		units = 16 // as CUDA has it before 12.5
	}
	if e.err != nil {
		return nil
	}
	return e.eachLane(addr, func(w *warp.Warp, lane int) {
		w.ReplaceInMap(a, lane, field, int(ord(w, lane)), v(w, lane)*units)
	})
}

// publishMap copies a map from shared to global memory, for the proxy that reads maps.
func (e *emitter) publishMap() warp.Op {
	e.check("cp_fenceproxy global shared::cta tensormap::generic release cta cluster gpu sys sync aligned")
	e.arity(3, 3)
	to, from := e.place(0, ptx.Global), e.place(1, ptx.Shared)
	if e.err != nil {
		return nil
	}
	write, read := e.bulkAccess(ptx.Global, true), e.bulkAccess(ptx.Shared, false)
	return func(w *warp.Warp) {
		lane := simt.Lowest(w.Mask)
		w.PublishMap(write, read, lane, to(w, lane), from(w, lane))
	}
}

// fenceMap compiles fence.proxy.tensormap::generic.
func (e *emitter) fenceMap() warp.Op {
	e.check("proxy tensormap::generic release acquire cta cluster gpu sys")
	if e.in.Has("release") {
		e.arity(0, 0)
		return e.nothing()
	}
	e.arity(2, 2)
	space := ptx.Generic
	if e.err != nil || e.address(e.in.Args[0], &space) == nil {
		return nil
	}
	s, off := e.addr, e.addrOff
	return e.each(func(w *warp.Warp, lane int) { w.AcquireMap(w.Get(s, lane) + off) })
}
