package compile

import (
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/numbers"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// clusterBarrier compiles barrier.cluster.arrive and barrier.cluster.wait.
func (e *emitter) clusterBarrier() warp.Op {
	e.check("cluster arrive wait release relaxed acquire aligned")
	e.arity(0, 0)
	s := e.site
	if e.in.Has("wait") {
		e.term = &warp.Terminator{Kind: warp.TermCluster, P: -1, Site: s}
		return nil
	}
	relaxed := e.in.Has("relaxed")
	arrive := func(w *warp.Warp) { w.ArriveAtCluster(s, relaxed) }
	if e.in.Has("aligned") {
		return e.waitAll(arrive)
	}
	return arrive
}

// mapa is the address of a place in another block's shared memory.
func (e *emitter) mapa() warp.Op {
	e.check("shared::cluster")
	e.arity(3, 3)
	t := e.in.Type()
	if e.err != nil || t.Bits() < 32 {
		e.fail("wants .u32 or .u64")
		return nil
	}
	base := e.sharedBase()
	from, rank, d := e.src(e.in.Args[1], t), e.src(e.in.Args[2], ptx.U32), e.dst(e.in.Args[0], t)
	var at uint64 // of a variable, which src gives without the window
	if _, ok := e.in.Args[1].(*ptx.Sym); !ok {
		at = base
	}
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			w.Set(d, i, base+warp.MapRank(w.Get(from, i)-at, w.Get(rank, i)))
		}
	}
}

// sharedBase is what generic addresses of shared memory have more than those in .shared::cluster.
func (e *emitter) sharedBase() uint64 {
	if e.in.Has("shared::cluster") {
		return 0
	}
	return memory.Window(ptx.Shared)
}

// getctarank is the block whose shared memory an address is in.
func (e *emitter) getctarank() warp.Op {
	e.check("shared::cluster")
	e.arity(2, 2)
	t := e.in.Type()
	if e.err != nil || t.Bits() < 32 {
		e.fail("wants .u32 or .u64")
		return nil
	}
	base := e.sharedBase()
	if _, ok := e.in.Args[1].(*ptx.Sym); ok {
		base = 0
	}
	from, d := e.src(e.in.Args[1], t), e.dst(e.in.Args[0], ptx.B32)
	return func(w *warp.Warp) {
		for m := w.Mask; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			w.Set(d, i, w.CTA.RankOf(w.Get(from, i)-base))
		}
	}
}

// setmaxnreg changes how many registers the threads of a warp have. Nothing depends on it but whether there are so many.
func (e *emitter) setmaxnreg() warp.Op {
	e.check("inc dec sync aligned")
	e.arity(1, 1)
	n, ok := e.arg(0).(*ptx.Imm)
	if !ok || e.err != nil {
		e.fail("wants a number of registers")
		return nil
	}
	s, more := e.site, e.in.Has("inc")
	return e.waitAll(func(w *warp.Warp) { w.SetRegisters(s, int(n.Int()), more) })
}

// griddepcontrol orders a launch and the one that may begin before it ends.
func (e *emitter) griddepcontrol() warp.Op {
	e.check("launch_dependents wait")
	e.arity(0, 0)
	if e.in.Has("wait") {
		return func(w *warp.Warp) { w.Depends() }
	}
	return e.nothing()
}

// fenceOf compiles fences: those of the memory model, those between proxies, and that of mbarriers that were just made.
func (e *emitter) fenceOf() warp.Op {
	switch {
	case e.in.Has("mbarrier_init"):
		e.check("mbarrier_init release cluster")
		return func(w *warp.Warp) { w.FenceInit() }
	case !e.in.Has("proxy"):
		return e.fence()
	case e.in.Has("alias"):
		e.fail(".alias, of memory that is mapped at two addresses")
		return nil
	case e.in.Has("tensormap::generic"):
		return e.fenceMap()
	}
	e.check("proxy async async.global async.shared::cta global shared shared::cta shared::cluster tensormap")
	if e.in.Has("global") { // what is followed is shared memory
		return e.nothing()
	}
	return func(w *warp.Warp) { w.FenceProxy() }
}

// stmatrix stores 8×8 matrices, which lie in the lanes as those of ldmatrix.
func (e *emitter) stmatrix() warp.Op {
	n := e.matrices()
	if n == 0 {
		return nil
	}
	a, addr := e.memory(e.in.Args[0], 16, true)
	var from []warp.Slot
	for _, o := range e.list(e.in.Args[1], n) {
		from = append(from, e.src(o, ptx.B32))
	}
	trans := e.in.Has("trans")
	if a.Space != ptx.Shared && a.Space != ptx.Generic || e.err != nil {
		e.fail("writes shared memory")
		return nil
	}
	return e.waitAll(func(w *warp.Warp) {
		addr(w)
		countMatrix(w, a, n)
		for i := range 8 * n {
			row := matrixRow(&w.R32[from[i/8].I], i%8, trans)
			p := w.Ref(a, i, w.Addr[i])
			if p == nil {
				return
			}
			copy(p, row[:])
		}
	})
}

// matrixRow is a row of an 8×8 matrix that lies in the lanes: of the transposed one, a column.
func matrixRow(v *simt.Vec32, row int, trans bool) (b [16]byte) {
	for i := range 8 {
		at, half := 4*row+i/2, i%2
		if trans {
			at, half = 4*i+row/2, row%2
		}
		numbers.Put(b[2*i:], 2, uint64(v[at]>>(16*half)&0xffff))
	}
	return b
}

// bulkAccess is one side of a bulk copy.
func (e *emitter) bulkAccess(space ptx.Space, write bool) *check.Access {
	a := &check.Access{Site: e.site, Space: space, Size: 16, Write: write, Bulk: true}
	e.code.Watch(a)
	return a
}
