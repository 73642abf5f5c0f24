package compile

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/arith"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// waitFor makes the instruction wait for the lanes of a member mask, then run for all lanes that gave the same mask. A lane
// that names a mask without itself is a finding.
func (e *emitter) waitFor(mask warp.Slot, run warp.Op) warp.Op {
	e.term = &warp.Terminator{Kind: warp.TermSync, P: -1, Site: e.site, Run: run, Mask: mask, All: e.always(mask, simt.Full)}
	return nil
}

// always is whether a slot holds a number.
func (e *emitter) always(s warp.Slot, v uint32) bool {
	x, ok := e.constantOf(s)
	return ok && x == v
}

// waitAll makes the instruction wait for all lanes of the warp that have not exited.
func (e *emitter) waitAll(run warp.Op) warp.Op {
	s := e.site
	e.term = &warp.Terminator{Kind: warp.TermSync, P: -1, Site: s, All: true, Whole: true, Run: func(w *warp.Warp) {
		if w.Mask != simt.Full {
			w.CTA.Note(w, s, w.Mask, check.Synccheck, "lanes have exited before an instruction of the whole warp")
		}
		run(w)
	}}
	return nil
}

// destPair is a destination d or d|p; p is -1 where absent.
func (e *emitter) destPair(o ptx.Operand, t ptx.Type) (d warp.Slot, p int32) {
	if pair, ok := o.(*ptx.Pair); ok {
		return e.dst(pair.A, t), e.dst(pair.B, ptx.Pred).I
	}
	return e.dst(o, t), -1
}

// shuffleSource is the lane that each mode reads for lane i, by the formulas of the manual.
var shuffleSource = map[string]func(i, b, clamp, seg int) (j int, ok bool){
	"up":   func(i, b, clamp, seg int) (int, bool) { return i - b, i-b >= i&seg|clamp&^seg },
	"down": func(i, b, clamp, seg int) (int, bool) { return i + b, i+b <= i&seg|clamp&^seg },
	"bfly": func(i, b, clamp, seg int) (int, bool) { return i ^ b, i^b <= i&seg|clamp&^seg },
	"idx":  func(i, b, clamp, seg int) (int, bool) { j := i&seg | b&^seg; return j, j <= i&seg|clamp&^seg },
}

func (e *emitter) shfl() warp.Op {
	e.check("sync up down bfly idx")
	e.arity(5, 5)
	var from func(i, b, clamp, seg int) (int, bool)
	for _, m := range e.in.Mods {
		if f := shuffleSource[m]; f != nil {
			from = f
		}
	}
	if e.err != nil || from == nil || !e.in.Has("sync") {
		e.fail("wants .sync and a mode")
		return nil
	}
	a, b, c := e.src(e.in.Args[1], ptx.B32), e.src(e.in.Args[2], ptx.B32), e.src(e.in.Args[3], ptx.B32)
	mask := e.src(e.in.Args[4], ptx.B32)
	d, p := e.destPair(e.in.Args[0], ptx.B32)
	s := e.site
	sources, valid, fixed := e.fixedShuffle(from, b, c)
	return e.waitFor(mask, e.passing(func(w *warp.Warp) {
		if fixed && w.Mask == simt.Full {
			in, out := w.R32[a.I], &w.R32[d.I]
			for i, j := range &sources {
				out[i] = in[j&31]
			}
			w.From = &sources
			if p >= 0 {
				w.Preds[p] = valid
			}
			return
		}
		ok := shuffle(w, s, from, d, a, b, c)
		if p >= 0 {
			w.SetPred(p, ok)
		}
	}))
}

// shuffle gives each lane the value of the lane that it names, and returns the lanes whose source was in range.
func shuffle(w *warp.Warp, s *check.Site, from func(i, b, clamp, seg int) (int, bool), d, a, b, c warp.Slot) (ok uint32) {
	in := w.R32[a.I] // lanes read what others had before any writes
	w.From = &w.FromAny
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		bv, cv := int(w.R32[b.I][i]&31), int(w.R32[c.I][i])
		j, inRange := from(i, bv, cv&31, cv>>8&31)
		if inRange {
			ok |= 1 << i
		} else {
			j = i
		}
		if w.Mask>>(j&31)&1 == 0 {
			w.CTA.Note(w, s, 1<<i, check.Synccheck, "a shuffle reads a lane that takes no part")
		}
		w.R32[d.I][i], w.From[i] = in[j&31], uint8(j&31)
	}
	return ok
}

// passing makes a shuffle pass on what is undefined as well.
func (e *emitter) passing(run warp.Op) warp.Op {
	from, to := e.shuffled()
	if !e.v.Poison || to < 0 {
		return run
	}
	return func(w *warp.Warp) {
		var bad uint32
		var p *warp.ByByte
		if from >= 0 {
			if bad = w.Undef[from]; w.UndefBytes[from] != nil {
				p = new(*w.UndefBytes[from])
			}
		}
		run(w)
		w.PassUndef(to, bad, p, w.From)
	}
}

// fixedShuffle is where each lane reads, and which lanes read within bounds, if b and c are constants.
func (e *emitter) fixedShuffle(from func(i, b, clamp, seg int) (int, bool), b, c warp.Slot) (sources [simt.WarpSize]uint8, valid uint32, ok bool) {
	bv, okB := e.constantOf(b)
	cv, okC := e.constantOf(c)
	for i := range sources {
		j, in := from(i, int(bv&31), int(cv&31), int(cv>>8&31))
		if !in {
			j = i
		} else {
			valid |= 1 << i
		}
		sources[i] = uint8(j & 31)
	}
	return sources, valid, okB && okC
}

// constantOf is the number that a slot always holds.
func (e *emitter) constantOf(s warp.Slot) (uint32, bool) {
	i := slices.IndexFunc(e.code.Const32, func(c warp.Constant) bool { return c.I == s.I })
	if i < 0 || s.Bank != simt.Bank32 {
		return 0, false
	}
	return uint32(e.code.Const32[i].Bits), true
}

func (e *emitter) vote() warp.Op {
	e.check("sync all any uni ballot")
	e.arity(3, 3)
	if e.err != nil || !e.in.Has("sync") {
		e.fail("wants .sync")
		return nil
	}
	a, neg := e.pred(e.in.Args[1])
	mask := e.src(e.in.Args[2], ptx.B32)
	if e.in.Has("ballot") {
		d := e.dst(e.in.Args[0], ptx.B32)
		return e.waitFor(mask, func(w *warp.Warp) { putAll(w, d, w.Pred(a, neg)&company(w, mask)) })
	}
	d := e.dst(e.in.Args[0], ptx.Pred).I
	all, any := e.in.Has("all"), e.in.Has("any")
	return e.waitFor(mask, func(w *warp.Warp) {
		in := company(w, mask)
		v := w.Pred(a, neg) & in
		if any && v != 0 || all && v == in || !any && !all && (v == 0 || v == in) {
			w.SetPred(d, simt.Full)
		} else {
			w.SetPred(d, 0)
		}
	})
}

// company is the lanes of the mask that are here; all that are here gave the same.
func company(w *warp.Warp, mask warp.Slot) uint32 {
	return uint32(w.Get(mask, simt.Lowest(w.Mask))) & w.Mask
}

// putAll writes one value to all active lanes.
func putAll(w *warp.Warp, d warp.Slot, v uint32) {
	for m := w.Mask; m != 0; m &= m - 1 {
		w.Set(d, simt.Lowest(m), uint64(v))
	}
}

func (e *emitter) activemask() warp.Op {
	e.check("")
	e.arity(1, 1)
	if e.err != nil {
		return nil
	}
	d := e.dst(e.in.Args[0], ptx.B32)
	return func(w *warp.Warp) { putAll(w, d, w.Mask) }
}

// elect chooses the lowest lane.
func (e *emitter) elect() warp.Op {
	e.check("sync")
	e.arity(2, 2)
	if e.err != nil {
		return nil
	}
	mask := e.src(e.in.Args[1], ptx.B32)
	d, p := e.destPair(e.in.Args[0], ptx.B32)
	return e.waitFor(mask, func(w *warp.Warp) {
		leader := simt.Lowest(company(w, mask))
		putAll(w, d, uint32(leader))
		if p >= 0 {
			w.SetPred(p, 1<<leader)
		}
	})
}

func (e *emitter) match() warp.Op {
	e.check("any all sync")
	e.arity(3, 3)
	t := e.in.Type()
	if e.err != nil || t != ptx.B32 && t != ptx.B64 {
		e.fail("wants .b32 or .b64")
		return nil
	}
	a, mask := e.src(e.in.Args[1], t), e.src(e.in.Args[2], ptx.B32)
	d, p := e.destPair(e.in.Args[0], ptx.B32)
	all := e.in.Has("all")
	return e.waitFor(mask, func(w *warp.Warp) {
		v := *w.Wide(a, 0)
		in := company(w, mask)
		if all {
			matchAll(w, d, p, &v, in)
			return
		}
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			w.Set(d, i, uint64(equalLanes(&v, in, v[i])))
		}
	})
}

func equalLanes(v *simt.Vec64, in uint32, x uint64) (same uint32) {
	for ; in != 0; in &= in - 1 {
		if j := simt.Lowest(in); v[j] == x {
			same |= 1 << j
		}
	}
	return same
}

func matchAll(w *warp.Warp, d warp.Slot, p int32, v *simt.Vec64, in uint32) {
	var r, ok uint32
	if equalLanes(v, in, v[simt.Lowest(in)]) == in {
		r, ok = in, simt.Full
	}
	putAll(w, d, r)
	if p >= 0 {
		w.SetPred(p, ok)
	}
}

func (e *emitter) redux() warp.Op {
	e.check("sync add min max and or xor")
	e.arity(3, 3)
	t := e.in.Type()
	if e.err != nil || t.Bits() != 32 || t.Kind() == ptx.KindFloat {
		e.fail("wants 32-bit integers")
		return nil
	}
	var f arith.Lane
	for _, name := range []string{"add", "min", "max", "and", "or", "xor"} {
		if e.in.Has(name) {
			fm, err := arith.FormOf(&ptx.Inst{Pos: e.in.Pos, Op: name, Mods: []string{t.String()}})
			if err != nil {
				e.err = err
				return nil
			}
			f = fm.F
		}
	}
	if f == nil {
		e.fail("wants an operation")
		return nil
	}
	a, mask := e.src(e.in.Args[1], t), e.src(e.in.Args[2], ptx.B32)
	d := e.dst(e.in.Args[0], t)
	return e.waitFor(mask, func(w *warp.Warp) {
		m := company(w, mask)
		r := w.Get(a, simt.Lowest(m))
		for m &= m - 1; m != 0; m &= m - 1 {
			r = f(r, w.Get(a, simt.Lowest(m)), 0, 0)
		}
		putAll(w, d, uint32(r))
	})
}

// bar compiles bar and barrier: those of the block, and bar.warp.sync.
func (e *emitter) bar() warp.Op {
	if e.in.Has("cluster") {
		return e.clusterBarrier()
	}
	if e.in.Has("warp") {
		e.check("warp sync")
		e.arity(1, 1)
		if e.err != nil {
			return nil
		}
		mask := e.src(e.in.Args[0], ptx.B32)
		e.waitFor(mask, func(w *warp.Warp) {
			if w.CTA.Order != nil {
				w.CTA.Order.Meet(w.Id, w.Mask)
			}
		})
		e.term.Warp = true
		return nil
	}
	e.check("cta sync aligned arrive red popc and or")
	e.arity(0, 4)
	if e.err != nil {
		return nil
	}
	b := &warp.BarOp{Arrive: e.in.Has("arrive"), Aligned: e.in.Op == "bar" || e.in.Has("aligned")}
	args := e.in.Args
	if e.in.Has("red") {
		args = e.barReduction(b)
	}
	b.Id = e.constant(0, ptx.U32)
	if len(args) > 0 {
		b.Id = e.src(args[0], ptx.U32)
	}
	if b.HasCount = len(args) > 1; b.HasCount {
		b.Count = e.src(args[1], ptx.U32)
	}
	if len(args) > 2 || b.Arrive && !b.HasCount {
		e.fail("wants a barrier and a number of threads")
	}
	_, id := e.constantOf(b.Id)
	_, count := e.constantOf(b.Count)
	b.Fixed = id && (count || !b.HasCount)
	e.term = &warp.Terminator{Kind: warp.TermBar, P: -1, Site: e.site, Bar: b}
	return nil
}

// barReduction reads the operands of bar.red around the barrier and the count, which it returns.
func (e *emitter) barReduction(b *warp.BarOp) []ptx.Operand {
	args := e.in.Args
	if len(args) < 3 {
		e.fail("wants a result, a barrier and a predicate")
		return nil
	}
	p, neg := e.pred(args[len(args)-1])
	b.Reduce = func(w *warp.Warp, lanes uint32) uint32 { return w.Pred(p, neg) & lanes }
	if e.in.Has("popc") {
		d := e.dst(args[0], ptx.U32)
		b.Result = func(w *warp.Warp, holds, _ int) { putAll(w, d, uint32(holds)) }
		return args[1 : len(args)-1]
	}
	d, and := e.dst(args[0], ptx.Pred).I, e.in.Has("and")
	b.Result = func(w *warp.Warp, holds, threads int) {
		var v uint32
		if and && holds == threads || !and && holds > 0 {
			v = simt.Full
		}
		w.SetPred(d, v)
	}
	return args[1 : len(args)-1]
}

// matrices is how many 8×8 matrices of 16-bit elements an instruction moves; 0, and an error, where its form is another.
func (e *emitter) matrices() (n int) {
	e.check("sync aligned m8n8 x1 x2 x4 trans shared shared::cta")
	e.arity(2, 2)
	for _, m := range e.in.Mods {
		if len(m) == 2 && m[0] == 'x' {
			n = int(m[1] - '0')
		}
	}
	if e.err != nil || n == 0 || !e.in.Has("m8n8") || e.in.Type() != ptx.B16 {
		e.fail("wants .m8n8, .x1, .x2 or .x4, .b16")
		return 0
	}
	return n
}

// ldmatrix loads 8×8 matrices of 16-bit elements: lane l has the address of row l%8 of matrix l/8, and gets elements
// (l/4, 2(l%4)) and the next, or those of the transpose.
func (e *emitter) ldmatrix() warp.Op {
	n := e.matrices()
	if n == 0 {
		return nil
	}
	a, addr := e.memory(e.in.Args[1], 16, false)
	var d []warp.Slot
	for _, o := range e.list(e.in.Args[0], n) {
		d = append(d, e.dst(o, ptx.B32))
	}
	trans := e.in.Has("trans")
	if a.Space != ptx.Shared && a.Space != ptx.Generic || e.err != nil {
		e.fail("reads shared memory")
		return nil
	}
	if ops := matrixOps[n]; ops != nil {
		i := 2 * int(simt.Bit(trans))
		e.encodeAccess(a, ops[i], ops[i+1], d...)
		e.reviewer(a, 8*n)
	}
	return e.waitAll(func(w *warp.Warp) {
		addr(w)
		var rows [simt.WarpSize][]byte
		for i := range 8 * n {
			if rows[i] = w.Ref(a, i, w.Addr[i]); rows[i] == nil {
				return
			}
		}
		countMatrix(w, a, n)
		for j, x := range d {
			var out simt.Vec64
			for l := range out {
				out[l] = matrixPair(rows[8*j:8*j+8], l, trans)
			}
			w.Put(x, &out)
		}
	})
}

// countMatrix counts one access of 16 bytes for the lanes that give addresses.
func countMatrix(w *warp.Warp, a *check.Access, n int) {
	all := w.Mask
	w.Mask &= uint32(uint64(1)<<(8*n) - 1)
	w.CountAccess(a)
	w.Mask = all
}

// matrixPair is what lane l holds of an 8×8 matrix.
func matrixPair(rows [][]byte, l int, trans bool) uint64 {
	g, q := l/4, l%4
	if !trans {
		return numbers.Get(rows[g][4*q:], 4)
	}
	return numbers.Get(rows[2*q][2*g:], 2) | numbers.Get(rows[2*q+1][2*g:], 2)<<16
}

// movmatrix transposes an 8×8 matrix of 16-bit elements across the warp.
func (e *emitter) movmatrix() warp.Op {
	e.check("sync aligned m8n8 trans")
	e.arity(2, 2)
	if e.err != nil || e.in.Type() != ptx.B16 {
		e.fail("wants .b16")
		return nil
	}
	s, d := e.src(e.in.Args[1], ptx.B32), e.dst(e.in.Args[0], ptx.B32)
	return e.waitAll(func(w *warp.Warp) {
		in := w.R32[s.I]
		element := func(row, col int) uint64 { return uint64(in[4*row+col/2] >> (16 * (col % 2)) & 0xffff) }
		var out simt.Vec64
		for l := range out {
			g, q := l/4, l%4
			out[l] = element(2*q, g) | element(2*q+1, g)<<16
		}
		w.Put(d, &out)
	})
}
