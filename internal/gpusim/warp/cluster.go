package warp

import (
	"fmt"
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/check"
	"github.com/warpline-ml/warpline/internal/gpusim/memory"
	"github.com/warpline-ml/warpline/internal/gpusim/simt"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Cluster is blocks that run together, reach each other's shared memory and have a barrier. A block without others is one
// of its own.
type Cluster struct {
	CTAs  []*CTA        // by rank
	Index int           // in the order of the grid's clusters
	phase uint32        // of the barrier, from 1 on
	near  *check.Global // of the check of their shared memory; nil without
}

// RankShift is where in an address of shared memory the block is named: rank r as r+1, the own block as 0.
const RankShift = 24

// Clusters is how many clusters the grid has.
func (g *Launch) Clusters() int { return g.Total / g.ClusterSize() }

// ClusterSize is the blocks of a cluster.
func (g *Launch) ClusterSize() int {
	return int(g.Cluster[0] * g.Cluster[1] * g.Cluster[2])
}

// TakeCluster gives a cluster to start again and again.
func (g *Launch) TakeCluster(wk *Worker) *Cluster {
	u := &Cluster{CTAs: make([]*CTA, g.ClusterSize())}
	for i := range u.CTAs {
		u.CTAs[i] = g.TakeCTA(wk)
	}
	u.near = g.Near.On()
	return u
}

// Retire keeps the blocks for a later launch.
func (u *Cluster) Retire() {
	for _, c := range u.CTAs {
		c.Retire()
	}
}

// Start readies the blocks for their places in the grid.
func (u *Cluster) Start(index int) {
	if u.Index, u.phase = index, 1; u.near != nil {
		u.near.Restart()
	}
	g := u.CTAs[0].Launch
	var at, n [3]uint32
	for i, rest := 0, uint32(index); i < 3; i++ {
		n[i] = g.Dims[i] / g.Cluster[i]
		at[i], rest = rest%n[i], rest/n[i]
	}
	for rank, c := range u.CTAs {
		c.cluster, c.Rank = u, uint32(rank)
		in := g.CTAInCluster(uint32(rank))
		id := [3]uint32{at[0]*g.Cluster[0] + in[0], at[1]*g.Cluster[1] + in[1], at[2]*g.Cluster[2] + in[2]}
		c.Start(int(id[0] + g.Dims[0]*(id[1]+g.Dims[1]*id[2])))
	}
}

// ClusterOf is the cluster of a block, in no order.
func (g *Launch) ClusterOf(block uint32) int {
	id, n := g.BlockID(int(block)), 0
	for i := range id {
		n = n*int(g.Dims[i]) + int(id[i]/g.Cluster[i])
	}
	return n
}

// CTAInCluster is the three-dimensional index of a block in its cluster.
func (g *Launch) CTAInCluster(rank uint32) [3]uint32 {
	return [3]uint32{rank % g.Cluster[0], rank / g.Cluster[0] % g.Cluster[1], rank / g.Cluster[0] / g.Cluster[1]}
}

// Alive is whether any thread has not exited.
func (u *Cluster) Alive() bool {
	return slices.ContainsFunc(u.CTAs, func(c *CTA) bool { return c.Alive > 0 })
}

// Keep keeps what the check of their shared memory has found.
func (u *Cluster) Keep() {
	if u.near == nil {
		return
	}
	u.CTAs[0].Launch.Near.Keep(u.Index, u.near)
	if u.Faulted() != nil {
		return
	}
	for _, c := range u.CTAs {
		for _, w := range c.warps {
			for _, of := range u.CTAs {
				if s, lane := c.Order.Unseen(of.Order, w.Id); s != nil {
					c.Note(w, s, 1<<lane, check.Synccheck, "access to shared memory of another block of the cluster, which may have exited: nothing tells its threads of the access before they end")
				}
			}
		}
	}
}

// Faulted is the block that stopped the kernel; nil without.
func (u *Cluster) Faulted() *CTA {
	for _, c := range u.CTAs {
		if c.Fault != nil {
			return c
		}
	}
	return nil
}

// Pass gives each warp of each block a turn. It reports whether any ran out its quantum; a cluster in which nothing can run
// is stopped.
func (u *Cluster) Pass() (spun bool) {
	if len(u.CTAs) == 1 {
		return u.CTAs[0].Pass()
	}
	progress := false
	g := u.CTAs[0].Launch
	for i := range u.CTAs {
		c := u.CTAs[g.Order(i, len(u.CTAs))]
		if c.Alive == 0 {
			continue
		}
		p, s := c.turns()
		progress, spun = progress || p, spun || s
		if c.Fault != nil || g.Stopped.Load() {
			return spun
		}
	}
	switch {
	case !u.Alive():
	case !progress:
		u.deadlock()
	case spun:
		u.turnOver()
	}
	return spun
}

// deadlock stops a cluster whose warps all wait.
func (u *Cluster) deadlock() {
	for _, c := range u.CTAs {
		if c.Alive > 0 {
			c.deadlock()
			return
		}
	}
}

// turnOver looks whether all blocks are in endless loops that no other block can end.
func (u *Cluster) turnOver() {
	var left []*CTA
	reads := false
	for _, c := range u.CTAs {
		if c.Alive > 0 {
			c.lookBack()
			left, reads = append(left, c), reads || c.moment.reads
		}
	}
	if AllEndless(left) && (!reads || len(u.CTAs) == left[0].Launch.Total) {
		left[0].Endless("an endless loop: the blocks of the cluster are where they were before and wrote nothing in between", left)
	}
}

// Running are the blocks of clusters that have threads left.
func Running(list []*Cluster) (ctas []*CTA) {
	for _, u := range list {
		for _, c := range u.CTAs {
			if c.Alive > 0 {
				ctas = append(ctas, c)
			}
		}
	}
	return ctas
}

// The barrier of a cluster. A thread arrives and later waits, and does something else in between.

// ArriveAtCluster counts lanes in at the barrier of the cluster.
func (w *Warp) ArriveAtCluster(s *check.Site, relaxed bool) {
	u := w.CTA.cluster
	if again := w.arrivedIn(u.phase) & w.Mask; again != 0 {
		w.CTA.Note(w, s, again, check.Synccheck, "barrier.cluster.arrive again without a barrier.cluster.wait in between")
	}
	for m := w.Mask; m != 0; m &= m - 1 {
		w.arrived[simt.Lowest(m)] = u.phase
	}
	switch o := w.CTA.Order; {
	case o == nil:
	case relaxed:
		o.ArriveRelaxed(w.Id, w.Mask, s)
	default:
		o.Arrive(w.Id, w.Mask, check.ClusterBarrier)
	}
	u.complete()
}

// arrivedIn is the lanes that have arrived in a phase.
func (w *Warp) arrivedIn(phase uint32) (lanes uint32) {
	for i, p := range &w.arrived {
		lanes |= uint32(simt.Bit(p == phase)) << i
	}
	return lanes
}

// complete ends the phase when all threads that have not exited have arrived.
func (u *Cluster) complete() {
	any := false
	for _, c := range u.CTAs {
		for _, w := range c.warps {
			lanes := w.arrivedIn(u.phase)
			if w.live&^lanes != 0 {
				return
			}
			any = any || lanes != 0
		}
	}
	if !any {
		return
	}
	u.phase++
	u.shareOrder()
	for _, c := range u.CTAs {
		for _, w := range c.warps {
			for i := range w.splits {
				if sp := &w.splits[i]; sp.state == atCluster {
					w.passCluster(sp.mask)
					sp.state, sp.pc = ready, w.Code.Blocks[sp.pc].Next
				}
			}
			w.merge()
		}
	}
}

// shareOrder lets the blocks of the cluster know what each of them has done.
func (u *Cluster) shareOrder() {
	var orders []*check.Order
	for _, c := range u.CTAs {
		if c.Order != nil {
			orders = append(orders, c.Order)
		}
	}
	check.ClusterPassed(orders)
}

// waitForCluster brings split s to the wait of the cluster's barrier.
func (w *Warp) waitForCluster(s int, b *Basic) (int, bool) {
	u := w.CTA.cluster
	var waits, stray uint32
	for m := w.Mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		waits |= uint32(simt.Bit(w.arrived[i] == u.phase)) << i
		stray |= uint32(simt.Bit(w.arrived[i] == 0)) << i
	}
	if stray != 0 {
		w.CTA.Note(w, b.Term.Site, stray, check.Synccheck, "barrier.cluster.wait by threads that have not arrived")
	}
	if waits == 0 {
		w.passCluster(w.Mask)
		return b.Next, true
	}
	w.splits[s].state = atCluster
	return 0, false
}

// passCluster is what waiting tells some lanes.
func (w *Warp) passCluster(lanes uint32) {
	w.CTA.joined = true
	if o := w.CTA.Order; o != nil {
		o.Leave(w.Id, lanes, check.ClusterPast, false)
	}
	for m := lanes; m != 0; m &= m - 1 {
		w.arrived[simt.Lowest(m)] = 0
	}
}

// awaited is why the barrier of the cluster never completes.
func (u *Cluster) awaited() string {
	threads, here := 0, 0
	for _, c := range u.CTAs {
		for _, w := range c.warps {
			threads += simt.Popcount(w.live)
			here += simt.Popcount(w.live & w.arrivedIn(u.phase))
		}
	}
	return fmt.Sprintf("the barrier of the cluster, where %d of %d threads have arrived and the others never do", here, threads)
}

// MapRank is the address of a place in the shared memory of a block of the cluster.
func MapRank(addr, rank uint64) uint64 { return addr&(memory.WindowSize-1) | (rank+1)<<RankShift }

// RankOf is the block that an address of shared memory is in.
func (c *CTA) RankOf(addr uint64) uint64 {
	if r := addr >> RankShift & 0xff; r > 0 {
		return r - 1
	}
	return uint64(c.Rank)
}

// inCluster is the block of the cluster that an address of shared memory is in, and the offset there. A block that is not
// there, or whose threads have all exited, stops the kernel.
func (w *Warp) inCluster(a *check.Access, lane int, addr uint64) (c *CTA, off uint64) {
	c, off = w.CTA, addr
	if addr < memory.WindowSize {
		return c, off
	}
	off = addr & (memory.WindowSize - 1)
	rank := c.RankOf(addr)
	u := c.cluster
	if u == nil || addr>>RankShift > 0xff || rank >= uint64(len(u.CTAs)) {
		w.badAccess(a, lane, ptx.Shared, addr, memory.LaunchFailed, "out-of-bounds "+a.Verb(), "shared memory of a block that the cluster does not have")
		return nil, 0
	}
	if c = u.CTAs[rank]; c.Alive == 0 {
		w.badAccess(a, lane, ptx.Shared, off, memory.LaunchFailed, a.Verb()+" of shared memory of a block that has exited", fmt.Sprintf("block %d of the cluster", rank))
		return nil, 0
	}
	return c, off
}

// refRemote is an access to the shared memory of another block of the cluster.
func (w *Warp) refRemote(a *check.Access, lane int, addr uint64) []byte {
	c, off := w.inCluster(a, lane, addr)
	if c == nil {
		return nil
	}
	if c == w.CTA {
		return w.refShared(a, lane, off)
	}
	if off > uint64(len(c.shared)) || uint64(len(c.shared))-off < uint64(a.Size) {
		w.badAccess(a, lane, ptx.Shared, off, memory.LaunchFailed, "out-of-bounds "+a.Verb(), sharedSize(c)+fmt.Sprintf(" of block %d of the cluster", c.Rank))
		return nil
	}
	if c.written != nil {
		w.checkWrittenIn(c, a, lane, int(off))
	}
	w.begun(a, lane, c)
	if !w.Seen && w.CTA.Race != nil {
		w.CTA.Race.Remote(c.Race, w.Id, a, lane, int(off))
	} else if !w.Seen && w.CTA.Order != nil {
		w.CTA.Order.Remote(c.Order, w.Id, a, lane, int(off))
	}
	if a.Write {
		c.changed = true
	}
	return c.shared[off:][:a.Size]
}

// begun notes an access to the shared memory of a block that may not have begun: only the barrier of the cluster tells that all have.
func (w *Warp) begun(a *check.Access, lane int, c *CTA) {
	if c != w.CTA && !w.CTA.joined {
		w.CTA.Note(w, a.Site, 1<<lane, check.Synccheck, a.Verb()+" of shared memory of another block of the cluster, which may not have begun: no barrier of the cluster comes before")
	}
}
