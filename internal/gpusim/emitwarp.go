package gpusim

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// waitFor makes the instruction wait for the lanes of a member mask, then run for all lanes that gave the same mask. A lane
// that names a mask without itself is a finding.
func (e *emitter) waitFor(mask slot, run op) op {
	e.term = &terminator{kind: termSync, p: -1, site: e.site, run: run, mask: mask, all: e.always(mask, full)}
	return nil
}

// always is whether a slot holds a number.
func (e *emitter) always(s slot, v uint32) bool {
	x, ok := e.constantOf(s)
	return ok && x == v
}

// waitAll makes the instruction wait for all lanes of the warp that have not exited.
func (e *emitter) waitAll(run op) op {
	s := e.site
	e.term = &terminator{kind: termSync, p: -1, site: s, all: true, whole: true, run: func(w *warp) {
		if w.mask != full {
			w.cta.note(w, s, w.mask, Synccheck, "lanes have exited before an instruction of the whole warp")
		}
		run(w)
	}}
	return nil
}

// destPair is a destination d or d|p; p is -1 where absent.
func (e *emitter) destPair(o ptx.Operand, t ptx.Type) (d slot, p int32) {
	if pair, ok := o.(*ptx.Pair); ok {
		return e.dst(pair.A, t), e.dst(pair.B, ptx.Pred).i
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

func (e *emitter) shfl() op {
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
	return e.waitFor(mask, e.passing(func(w *warp) {
		if fixed && w.mask == full {
			in, out := w.r[a.i], &w.r[d.i]
			for i, j := range &sources {
				out[i] = in[j&31]
			}
			w.from = &sources
			if p >= 0 {
				w.p[p] = valid
			}
			return
		}
		ok := w.shuffle(s, from, d, a, b, c)
		if p >= 0 {
			w.setPred(p, ok)
		}
	}))
}

// shuffle gives each lane the value of the lane that it names, and returns the lanes whose source was in range.
func (w *warp) shuffle(s *site, from func(i, b, clamp, seg int) (int, bool), d, a, b, c slot) (ok uint32) {
	in := w.r[a.i] // lanes read what others had before any writes
	w.from = &w.fromAny
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		bv, cv := int(w.r[b.i][i]&31), int(w.r[c.i][i])
		j, inRange := from(i, bv, cv&31, cv>>8&31)
		if inRange {
			ok |= 1 << i
		} else {
			j = i
		}
		if w.mask>>(j&31)&1 == 0 {
			w.cta.note(w, s, 1<<i, Synccheck, "a shuffle reads a lane that takes no part")
		}
		w.r[d.i][i], w.from[i] = in[j&31], uint8(j&31)
	}
	return ok
}

// passing makes a shuffle pass on what is undefined as well.
func (e *emitter) passing(run op) op {
	from, to := e.shuffled()
	if !e.v.poison || to < 0 {
		return run
	}
	return func(w *warp) {
		var bad uint32
		var p *parts
		if from >= 0 {
			if bad = w.undef[from]; w.parts[from] != nil {
				p = new(*w.parts[from])
			}
		}
		run(w)
		w.passUndef(to, bad, p, w.from)
	}
}

// fixedShuffle is where each lane reads, and which lanes read within bounds, if b and c are constants.
func (e *emitter) fixedShuffle(from func(i, b, clamp, seg int) (int, bool), b, c slot) (sources [warpSize]uint8, valid uint32, ok bool) {
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
func (e *emitter) constantOf(s slot) (uint32, bool) {
	i := slices.IndexFunc(e.code.const32, func(c constant) bool { return c.i == s.i })
	if i < 0 || s.bank != bank32 {
		return 0, false
	}
	return uint32(e.code.const32[i].bits), true
}

func (e *emitter) vote() op {
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
		return e.waitFor(mask, func(w *warp) { w.putAll(d, w.pred(a, neg)&w.company(mask)) })
	}
	d := e.dst(e.in.Args[0], ptx.Pred).i
	all, any := e.in.Has("all"), e.in.Has("any")
	return e.waitFor(mask, func(w *warp) {
		in := w.company(mask)
		v := w.pred(a, neg) & in
		if any && v != 0 || all && v == in || !any && !all && (v == 0 || v == in) {
			w.setPred(d, full)
		} else {
			w.setPred(d, 0)
		}
	})
}

// company is the lanes of the mask that are here; all that are here gave the same.
func (w *warp) company(mask slot) uint32 { return uint32(w.get(mask, lowest(w.mask))) & w.mask }

// putAll writes one value to all active lanes.
func (w *warp) putAll(d slot, v uint32) {
	for m := w.mask; m != 0; m &= m - 1 {
		w.set(d, lowest(m), uint64(v))
	}
}

func (e *emitter) activemask() op {
	e.check("")
	e.arity(1, 1)
	if e.err != nil {
		return nil
	}
	d := e.dst(e.in.Args[0], ptx.B32)
	return func(w *warp) { w.putAll(d, w.mask) }
}

// elect chooses the lowest lane.
func (e *emitter) elect() op {
	e.check("sync")
	e.arity(2, 2)
	if e.err != nil {
		return nil
	}
	mask := e.src(e.in.Args[1], ptx.B32)
	d, p := e.destPair(e.in.Args[0], ptx.B32)
	return e.waitFor(mask, func(w *warp) {
		leader := lowest(w.company(mask))
		w.putAll(d, uint32(leader))
		if p >= 0 {
			w.setPred(p, 1<<leader)
		}
	})
}

func (e *emitter) match() op {
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
	return e.waitFor(mask, func(w *warp) {
		v := *w.wide(a, 0)
		in := w.company(mask)
		if all {
			w.matchAll(d, p, &v, in)
			return
		}
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			w.set(d, i, uint64(equalLanes(&v, in, v[i])))
		}
	})
}

func equalLanes(v *vec64, in uint32, x uint64) (same uint32) {
	for ; in != 0; in &= in - 1 {
		if j := lowest(in); v[j] == x {
			same |= 1 << j
		}
	}
	return same
}

func (w *warp) matchAll(d slot, p int32, v *vec64, in uint32) {
	var r, ok uint32
	if equalLanes(v, in, v[lowest(in)]) == in {
		r, ok = in, full
	}
	w.putAll(d, r)
	if p >= 0 {
		w.setPred(p, ok)
	}
}

func (e *emitter) redux() op {
	e.check("sync add min max and or xor")
	e.arity(3, 3)
	t := e.in.Type()
	if e.err != nil || t.Bits() != 32 || t.Kind() == ptx.KindFloat {
		e.fail("wants 32-bit integers")
		return nil
	}
	var f lane
	for _, name := range []string{"add", "min", "max", "and", "or", "xor"} {
		if e.in.Has(name) {
			fm, err := formOf(&ptx.Inst{Pos: e.in.Pos, Op: name, Mods: []string{t.String()}})
			if err != nil {
				e.err = err
				return nil
			}
			f = fm.f
		}
	}
	if f == nil {
		e.fail("wants an operation")
		return nil
	}
	a, mask := e.src(e.in.Args[1], t), e.src(e.in.Args[2], ptx.B32)
	d := e.dst(e.in.Args[0], t)
	return e.waitFor(mask, func(w *warp) {
		m := w.company(mask)
		r := w.get(a, lowest(m))
		for m &= m - 1; m != 0; m &= m - 1 {
			r = f(r, w.get(a, lowest(m)), 0, 0)
		}
		w.putAll(d, uint32(r))
	})
}

// bar compiles bar and barrier: those of the block, and bar.warp.sync.
func (e *emitter) bar() op {
	if e.in.Has("warp") {
		e.check("warp sync")
		e.arity(1, 1)
		if e.err != nil {
			return nil
		}
		mask := e.src(e.in.Args[0], ptx.B32)
		e.waitFor(mask, func(w *warp) {
			if w.cta.race != nil {
				w.cta.race.meet(w, w.mask)
			}
		})
		e.term.warp = true
		return nil
	}
	e.check("cta sync aligned arrive red popc and or")
	e.arity(0, 4)
	if e.err != nil {
		return nil
	}
	b := &barOp{arrive: e.in.Has("arrive"), aligned: e.in.Op == "bar" || e.in.Has("aligned")}
	args := e.in.Args
	if e.in.Has("red") {
		args = e.barReduction(b)
	}
	b.id = e.constant(0, ptx.U32)
	if len(args) > 0 {
		b.id = e.src(args[0], ptx.U32)
	}
	if b.hasCount = len(args) > 1; b.hasCount {
		b.count = e.src(args[1], ptx.U32)
	}
	if len(args) > 2 || b.arrive && !b.hasCount {
		e.fail("wants a barrier and a number of threads")
	}
	_, id := e.constantOf(b.id)
	_, count := e.constantOf(b.count)
	b.fixed = id && (count || !b.hasCount)
	e.term = &terminator{kind: termBar, p: -1, site: e.site, bar: b}
	return nil
}

// barReduction reads the operands of bar.red around the barrier and the count, which it returns.
func (e *emitter) barReduction(b *barOp) []ptx.Operand {
	args := e.in.Args
	if len(args) < 3 {
		e.fail("wants a result, a barrier and a predicate")
		return nil
	}
	p, neg := e.pred(args[len(args)-1])
	b.reduce = func(w *warp, lanes uint32) uint32 { return w.pred(p, neg) & lanes }
	if e.in.Has("popc") {
		d := e.dst(args[0], ptx.U32)
		b.result = func(w *warp, holds, _ int) { w.putAll(d, uint32(holds)) }
		return args[1 : len(args)-1]
	}
	d, and := e.dst(args[0], ptx.Pred).i, e.in.Has("and")
	b.result = func(w *warp, holds, threads int) {
		var v uint32
		if and && holds == threads || !and && holds > 0 {
			v = full
		}
		w.setPred(d, v)
	}
	return args[1 : len(args)-1]
}

// ldmatrix loads 8×8 matrices of 16-bit elements: lane l has the address of row l%8 of matrix l/8, and gets elements
// (l/4, 2(l%4)) and the next, or those of the transpose.
func (e *emitter) ldmatrix() op {
	e.check("sync aligned m8n8 x1 x2 x4 trans shared shared::cta")
	e.arity(2, 2)
	n := 0
	for _, m := range e.in.Mods {
		if len(m) == 2 && m[0] == 'x' {
			n = int(m[1] - '0')
		}
	}
	if e.err != nil || n == 0 || !e.in.Has("m8n8") || e.in.Type() != ptx.B16 {
		e.fail("wants .m8n8, .x1, .x2 or .x4, .b16")
		return nil
	}
	a, addr := e.memory(e.in.Args[1], 16, false)
	var d []slot
	for _, o := range e.list(e.in.Args[0], n) {
		d = append(d, e.dst(o, ptx.B32))
	}
	trans := e.in.Has("trans")
	if a.space != ptx.Shared && a.space != ptx.Generic || e.err != nil {
		e.fail("reads shared memory")
		return nil
	}
	if ops := matrixOps[n]; ops != nil {
		i := 2 * int(b2u(trans))
		e.encodeAccess(a, ops[i], ops[i+1], d...)
		e.reviewer(a, 8*n)
	}
	return e.waitAll(func(w *warp) {
		addr(w)
		var rows [warpSize][]byte
		for i := range 8 * n {
			if rows[i] = w.ref(a, i, w.addr[i]); rows[i] == nil {
				return
			}
		}
		w.countMatrix(a, n)
		for j, x := range d {
			var out vec64
			for l := range out {
				out[l] = matrixPair(rows[8*j:8*j+8], l, trans)
			}
			w.put(x, &out)
		}
	})
}

// countMatrix counts one access of 16 bytes for the lanes that give addresses.
func (w *warp) countMatrix(a *access, n int) {
	all := w.mask
	w.mask &= uint32(uint64(1)<<(8*n) - 1)
	w.countAccess(a)
	w.mask = all
}

// matrixPair is what lane l holds of an 8×8 matrix.
func matrixPair(rows [][]byte, l int, trans bool) uint64 {
	g, q := l/4, l%4
	if !trans {
		return decode(rows[g][4*q:], 4)
	}
	return decode(rows[2*q][2*g:], 2) | decode(rows[2*q+1][2*g:], 2)<<16
}

// movmatrix transposes an 8×8 matrix of 16-bit elements across the warp.
func (e *emitter) movmatrix() op {
	e.check("sync aligned m8n8 trans")
	e.arity(2, 2)
	if e.err != nil || e.in.Type() != ptx.B16 {
		e.fail("wants .b16")
		return nil
	}
	s, d := e.src(e.in.Args[1], ptx.B32), e.dst(e.in.Args[0], ptx.B32)
	return e.waitAll(func(w *warp) {
		in := w.r[s.i]
		element := func(row, col int) uint64 { return uint64(in[4*row+col/2] >> (16 * (col % 2)) & 0xffff) }
		var out vec64
		for l := range out {
			g, q := l/4, l%4
			out[l] = element(2*q, g) | element(2*q+1, g)<<16
		}
		w.put(d, &out)
	})
}
