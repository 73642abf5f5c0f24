package check

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Shared memory that other blocks of a cluster reach. Race looks at what threads of one block do to it; what threads of two blocks
// do is a race by the rules of global memory. Bytes are named by what mapa makes of their address, which has the block's rank.

// NewNear is for the clusters of a launch.
func NewNear(accesses []*Access) *Races {
	r := NewRaces(Globalcheck, accesses, true, nil)
	r.Cluster, r.near = func(uint32) int { return 0 }, true
	return r
}

// Reach makes the block part of a cluster, where its shared memory begins at base; near is nil where no block reaches another's.
func (o *Order) Reach(near *Global, base uint64) { o.near, o.base = near, base }

// Restart forgets the cluster before.
func (g *Global) Restart() {
	for _, p := range g.pages {
		g.recycle(p)
	}
	clear(g.pages)
	clear(g.recent[:])
	clear(g.places)
	clear(g.relaxed)
	clear(g.visits)
	g.used, g.beyond, g.fenced, g.found, g.leave = 0, nil, nil, map[pair]*race{}, 0
}

// Keep adds what was found in the cluster of that index, and what was left out there.
func (r *Races) Keep(index int, g *Global) {
	if len(g.found) == 0 && g.leave == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.clusters = append(r.clusters, found{index, g.found, g.leave})
}

// found is what was found in a cluster, and left out.
type found struct {
	index int
	races map[pair]*race
	leave Omission
}

// In gives the findings in clusters up to an index.
func (r *Races) In(last int, about func(first, second Access, by [2]Party, at uint64) Finding) ([]Finding, Omission) {
	if r == nil {
		return nil, 0
	}
	for _, c := range r.clusters {
		if c.index <= last {
			r.merge(&Global{found: c.races, leave: c.leave})
		}
	}
	return r.Findings(nil, about)
}

// meet looks at an access of a lane to shared memory of the cluster.
func (o *Order) meet(w uint32, a *Access, lane int, at uint64) {
	g := o.near
	if !g.follows(a) {
		return
	}
	g.lane(o, w, lane, a, at)
	if a.Strong && a.Atomic {
		g.talk(o, w, lane, a, g.record(o, w, lane, a), at, true)
	}
}

// Remote looks at an access of a lane to the shared memory of another block.
func (o *Order) Remote(of *Order, w uint32, a *Access, lane, addr int) {
	if o.near == nil {
		return
	}
	o.Visit(of, w, a, lane)
	o.meet(w, a, lane, of.base+uint64(addr))
	if a.Write && !a.Atomic {
		delete(of.published, addr)
	}
}

// Remote looks at an access of a lane to the shared memory of another block.
func (r *Race) Remote(of *Race, w uint32, a *Access, lane, addr int) {
	if of.fly != nil && r.near != nil {
		r.checkFlights(of, w, a, lane, addr)
	}
	r.Order.Remote(of.Order, w, a, lane, addr)
}

// visit is what a warp of a block did last to the shared memory of another.
type visit struct{ of, block, warp uint32 }

// Visit notes that a lane uses the shared memory of another block.
func (o *Order) Visit(of *Order, w uint32, a *Access, lane int) {
	if g := o.near; g != nil && g.follows(a) {
		g.visits[visit{of.block, o.block, w}] = g.record(o, w, lane, a)
	}
}

// arrived is that a thread has read what another block wrote: that access is over.
func (g *Global) arrived(o *Order, by record) {
	if v := (visit{o.block, by.block, uint32(by.thread()) / simt.WarpSize}); g.launch.near && g.visits[v] == by {
		delete(g.visits, v)
	}
}

// Unseen is the last access of a warp to the shared memory of another block that no thread of that knew of at its end, and the lane;
// nil where it knew.
func (o *Order) Unseen(of *Order, w uint32) (s *Site, lane int) {
	r, ok := o.near.visits[visit{of.block, o.block, w}]
	if !ok || of.knew(r) {
		return nil, 0
	}
	return o.near.launch.accesses[r.access()].Site, int(r.thread() % simt.WarpSize)
}

// knew is whether a thread of the block has acquired what one of another did.
func (o *Order) knew(r record) bool {
	knows := func(s *state) bool {
		return s.known != nil && s.known.far.get(r.block, o.levels).of(r.thread()) >= r.clock
	}
	return knows(&o.talk.base) || slices.ContainsFunc(o.dirty, func(t uint16) bool { return knows(o.own[t]) })
}

// overwrite looks at n bytes that a bulk copy of a lane writes, of which nothing that was done before counts any longer.
func (g *Global) overwrite(o *Order, w uint32, lane int, a *Access, at uint64, n int) {
	now := g.record(o, w, lane, a)
	for end := at + uint64(n); at < end; {
		r := g.row(at, shiftOf(VectorSize))
		if r == nil {
			return
		}
		c := r.cell(at)
		for _, then := range [...]record{c.write, c.read, c.before} {
			if then.clock != 0 {
				g.against(o, w, lane, a, now, then, at)
			}
		}
		*c = cell{}
		at += 1 << r.shift
	}
}

// relaxedArrival is that threads of a block arrived at the barrier of the cluster and released nothing: by warp the clock of the last one.
type relaxedArrival struct {
	site  *Site
	clock []uint32
}

// ArriveRelaxed publishes to the barrier of the cluster what lanes knew at their last fence.
func (o *Order) ArriveRelaxed(w, lanes uint32, s *Site) {
	if g := o.near; g != nil {
		r := g.relaxed[o.block]
		if r == nil {
			r = &relaxedArrival{s, make([]uint32, len(o.clock))}
			g.relaxed[o.block] = r
		}
		r.clock[w] = o.clock[w][w]
	}
	var at state
	if s := o.atBar[ClusterBarrier]; s != nil {
		at = *s
	}
	for m := lanes; m != 0; m &= m - 1 {
		at.known = union(at.known, o.at(w, simt.Lowest(m)).told[OfCluster])
	}
	o.atBar[ClusterBarrier] = &at
	o.fly.arrive(w, ClusterBarrier)
	o.tick(w)
}

// whyNear is what is missing between blocks of a cluster that have not heard from each other.
func (g *Global) whyNear(then record) string {
	if r := g.relaxed[then.block]; r != nil && r.clock[then.thread()/simt.WarpSize] >= then.clock {
		return r.site.at() + ", behind the other access, releases nothing: without .relaxed it does"
	}
	return "no barrier of the cluster, arrival at an mbarrier or flag orders the two threads"
}
