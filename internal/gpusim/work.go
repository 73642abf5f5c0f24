package gpusim

import (
	"maps"
	"slices"

	"github.com/warpline-ml/warpline/internal/cards"
	"github.com/warpline-ml/warpline/internal/estimate"
	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/gpusim/warp"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Line is what a line of the PTX did, of all blocks.
type Line struct {
	Line             int
	Source           string // "file:line", empty without .loc
	Inst             string // the instruction; of several in a line the last
	Instructions     uint64 // executed by warps
	LaneInstructions uint64
	Divergent        uint64 // how often the lanes of a warp parted there
	GlobalRequests   uint64
	GlobalSectors    uint64
	GlobalBytes      uint64 // that lanes asked for, as if no guard had kept one from it
	SharedRequests   uint64
	SharedWavefronts uint64
	SharedConflicts  uint64
}

// tallied is what was counted of a form of a kernel's code.
type tallied struct {
	*warp.Tally
	code *warp.Code
}

// blockWork is what the instructions of a basic block are to the model of time, for one warp.
type blockWork struct {
	pipes           [ptx.Pipes]uint32
	tensor          [cards.Types]uint32
	groups          [cards.Types]uint32 // the same of wgmma, which reaches the whole rate
	global, shared  bool                // whether a load is waited for
	barriers        uint32
	bytes           uint32 // of global memory that a lane accesses
	wavefronts      uint32 // that its accesses to shared memory need
	first, pastLast int    // instructions, of Sites
}

// typeOf is the kind of tensor core that an element type goes to.
var typeOf = map[ptx.Type]cards.Type{ptx.F16: cards.Float16, ptx.BF16: cards.BFloat16, ptx.TF32: cards.TF32, ptx.S8: cards.Int8, ptx.U8: cards.Int8, ptx.F64: cards.Float64,
	ptx.E4M3: cards.Float8, ptx.E5M2: cards.Float8}

// workOf is that of all blocks of a code, found once.
func (k *Kernel) workOf(c *warp.Code) []blockWork {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.works[c]; w != nil {
		return w
	}
	list := make([]blockWork, len(c.Blocks))
	for i := range list {
		w := &list[i]
		w.first, w.pastLast = c.Blocks[i].First, len(c.Sites)
		if i+1 < len(list) {
			w.pastLast = c.Blocks[i+1].First
		}
		for _, s := range c.Sites[w.first:w.pastLast] {
			w.add(s.Inst)
		}
	}
	k.works[c] = list
	return list
}

// add adds an instruction.
func (w *blockWork) add(in *ptx.Inst) {
	p, n := in.Pipe()
	w.pipes[p] += n
	if ops, t := in.Tensor(); ops > 0 && in.Warpgroup() {
		w.groups[typeOf[t]] += uint32(ops)
	} else if ops > 0 {
		w.tensor[typeOf[t]] += uint32(ops)
	}
	w.access(in)
	switch space := in.Space(); {
	case in.Op == "bar" || in.Op == "barrier":
		w.barriers++
	case in.Op == "ldmatrix", in.Op == "ld" && (space == ptx.Shared || space == ptx.SharedCluster):
		w.shared = true
	case in.Op == "ld" && space != ptx.Param, in.Op == "ldu", in.Op == "atom":
		w.global = true
	}
}

// access adds what an access moves where nothing counts it: as if lanes used all that they touch, and without conflicts.
func (w *blockWork) access(in *ptx.Inst) {
	size := in.Type().Size() * in.VecLen()
	switch space := in.Space(); in.Op {
	case "ldmatrix":
		w.wavefronts += 4
	case "ld", "ldu", "st", "atom", "red":
		switch space {
		case ptx.Param, ptx.Local, ptx.ConstSpace:
		case ptx.Shared, ptx.SharedCluster:
			w.wavefronts += uint32(max(size/4, 1))
		default:
			w.bytes += uint32(size)
		}
	case "cp":
		if n, ok := copied(in); ok {
			w.bytes, w.wavefronts = w.bytes+n, w.wavefronts+n/4
		}
	}
}

// accessed is the bytes that a lane accesses.
func accessed(in *ptx.Inst) uint32 {
	if n, ok := copied(in); in.Op == "cp" && ok {
		return n
	}
	return uint32(in.Type().Size() * in.VecLen())
}

// copied is the bytes that a lane copies by cp.async.
func copied(in *ptx.Inst) (n uint32, ok bool) {
	if len(in.Args) < 3 {
		return 0, false
	}
	size, ok := in.Args[2].(*ptx.Imm)
	if !ok {
		return 0, false
	}
	return uint32(size.Int()), true
}

// count fills in the counters of a report, and what the model of time goes by.
func (g *grid) count(rep *Report, workers []*warp.Worker, counted []tallied, o Options) {
	scale, executed := 1.0, 1.0 // of transactions, of instructions
	if len(counted) > 0 && !g.faulted() {
		scale = g.scale()
		if o.Skip {
			executed = scale
		}
	}
	for _, t := range counted {
		t.Spread(t.code)
		addTally(t, &rep.Counters, executed)
		for i := range t.Sites {
			rep.Counters.addMemory(&t.Sites[i])
		}
	}
	rep.Counters.scaleMemory(scale)
	if !g.faulted() {
		rep.Work = g.modelled(&rep.Counters, workers, counted, executed, o.Counters)
	}
	if !o.Counters {
		return
	}
	rep.Counted = g.Total
	if g.only != nil {
		rep.Counted = len(g.only)
		if !g.faulted() && !g.Stopped.Load() {
			rep.Sampled = g.uncertainty()
		}
	}
	rep.lines = func() []Line { return g.lines(counted, scale, executed) }
}

func (g *grid) faulted() bool { return g.firstFault() != nil }

// modelled is what the model of time goes by.
func (g *grid) modelled(c *Counters, workers []*warp.Worker, counted []tallied, executed float64, exact bool) estimate.Launch {
	l := estimate.Launch{Blocks: g.Total, Threads: g.Threads, Registers: g.Code.Pressure, Shared: g.Shared}
	for _, t := range counted {
		works := g.kernel.workOf(t.code)
		for b, n := range t.Execs {
			if n > 0 {
				works[b].addTo(&l, float64(n), g.dev.Card.SM.Sync)
				l.Wavefronts += float64(n) * float64(works[b].wavefronts)
				l.Requested += float64(t.Lanes[b]) * float64(works[b].bytes) / estimate.SectorBytes
			}
		}
	}
	scaleWork(&l, executed)
	if l.Unique, l.Own = l.Requested, l.Requested/float64(g.Total); !exact {
		return l
	}
	l.Wavefronts, l.Requested = float64(c.SharedWavefronts), float64(c.GlobalSectors)
	var all warp.Traffic
	for _, wk := range workers {
		all.Add(&wk.Traffic)
	}
	g.touched(&all, &l)
	l.Unique = min(l.Unique, l.Requested)
	hits, blocks := all.Hottest()
	if l.Hottest = float64(hits); blocks > 1 {
		l.Hottest *= g.scale()
	}
	return l
}

// scaleWork makes what the blocks that ran executed that of all: at the end, so that sums are of whole numbers.
func scaleWork(l *estimate.Launch, by float64) {
	for p := range l.Instructions {
		l.Instructions[p] *= by
	}
	for t := range l.Tensor {
		l.Tensor[t] *= by
	}
	l.GlobalWaits *= by
	l.SharedWaits *= by
	l.Barriers *= by
}

// addTo adds what warps do that come to the block so many times, in operations of mma.sync, which reaches a share of the tensor cores'
// rate.
func (w *blockWork) addTo(l *estimate.Launch, times, sync float64) {
	for p, n := range w.pipes {
		l.Instructions[p] += times * float64(n)
	}
	for t, n := range w.tensor {
		l.Tensor[t] += times * (float64(n) + float64(w.groups[t])*sync)
	}
	l.GlobalWaits += times * float64(simt.Bit(w.global))
	l.SharedWaits += times * float64(simt.Bit(w.shared))
	l.Barriers += times * float64(w.barriers)
}

// Lines are the counts by line of the PTX, in its order; none without Counters.
func (r *Report) Lines() []Line {
	if r.lines == nil {
		return nil
	}
	return r.lines()
}

// lines puts the counts together by line of the PTX.
func (g *grid) lines(counted []tallied, scale, executed float64) []Line {
	by := map[int]*Line{}
	at := func(s *check.Site) *Line {
		l := by[s.Inst.Pos.Line]
		if l == nil {
			l = &Line{Line: s.Inst.Pos.Line}
			by[s.Inst.Pos.Line] = l
		}
		l.Source, l.Inst = s.Source(), s.Inst.Name()
		return l
	}
	for _, t := range counted {
		for b, w := range g.kernel.workOf(t.code) {
			if t.Execs[b] == 0 {
				continue
			}
			for i, s := range t.code.Sites[w.first:w.pastLast] {
				l := at(s)
				l.Instructions += scaled(t.Execs[b], executed)
				l.LaneInstructions += scaled(t.Lanes[b], executed)
				if i == w.pastLast-w.first-1 {
					l.Divergent += scaled(t.Parted[b], executed)
				}
				if int(s.Id) < len(t.Sites) {
					m := &t.Sites[s.Id]
					if l.addMemory(m, scale); m.GlobalRequests > 0 {
						l.GlobalBytes += scaled(t.Lanes[b], scale) * uint64(accessed(s.Inst))
					}
				}
			}
		}
	}
	list := make([]Line, 0, len(by))
	for _, line := range slices.Sorted(maps.Keys(by)) {
		list = append(list, *by[line])
	}
	return list
}

func (l *Line) addMemory(m *warp.MemoryCounts, scale float64) {
	l.GlobalRequests += scaled(m.GlobalRequests, scale)
	l.GlobalSectors += scaled(m.Sectors, scale)
	l.SharedRequests += scaled(m.SharedRequests, scale)
	l.SharedWavefronts += scaled(m.Wavefronts, scale)
	l.SharedConflicts += scaled(m.SharedConflicts, scale)
}

// addTally adds a tally, spread over blocks, to the counters; by is the blocks of the grid over those that ran.
func addTally(t tallied, c *Counters, by float64) {
	var classes [ptx.Classes]uint64
	for b, n := range t.Execs {
		x := &t.code.Blocks[b]
		n, lanes := scaled(n, by), scaled(t.Lanes[b], by)
		c.Instructions += n * uint64(x.N)
		c.LaneInstructions += lanes * uint64(x.N)
		for i, m := range x.Classes {
			classes[i] += n * uint64(m)
		}
		c.Divergent += scaled(t.Parted[b], by)
	}
	for i, n := range classes {
		if n > 0 {
			c.ByClass[ptx.Class(i).String()] += n
		}
	}
	c.Branches += scaled(t.Branches, by)
}

func (c *Counters) addMemory(m *warp.MemoryCounts) {
	c.GlobalRequests += m.GlobalRequests
	c.GlobalSectors += m.Sectors
	c.SharedRequests += m.SharedRequests
	c.SharedWavefronts += m.Wavefronts
	c.SharedConflicts += m.SharedConflicts
}

// scaleMemory makes the counts of the counted blocks those of all.
func (c *Counters) scaleMemory(by float64) {
	for _, n := range []*uint64{&c.GlobalRequests, &c.GlobalSectors, &c.SharedRequests, &c.SharedWavefronts, &c.SharedConflicts} {
		*n = scaled(*n, by)
	}
}
