package check

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// What a thread knows of others beyond barriers, by the memory model of PTX. A thread publishes what it knew at its last
// fence with each strong store and atomic after it (or at the access itself, where that releases). A thread that reads the
// place by a strong load or atomic knows the same from its next fence on (or at once, where the access acquires).
// Volatile and relaxed accesses on their own order nothing. Scopes must reach from each of the two to the other.
//
// A barrier of the block hands all of it on: who waits there for threads that have a fence behind them, or that read
// something and have not yet, is as far as they are. PTX's text says so of the data alone, but cards do, and libraries
// rely on it (each thread fences, the block meets, one thread counts it in).

// Scope is how far a strong access or a fence reaches.
type Scope uint8

// The scopes. System reaches no further than Device here: launches of devices do not run at the same time.
const (
	OfBlock Scope = iota
	OfCluster
	OfDevice
	scopes = 3
)

// state is what a thread has learned and is about to tell.
type state struct {
	known  *view         // acquired
	read   [scopes]*view // published where it read; a fence of that scope or wider acquires it
	told   [scopes]*view // by scope what it knew at its last fence of that scope or wider
	fenced bool          // since the last barrier of the block
}

// reached is the state after a fence of a scope.
func (s *state) reached(scope Scope) {
	for i := range scope + 1 {
		s.known, s.read[i] = union(s.known, s.read[i]), nil
	}
}

func (s *state) tell(v *view, scope Scope) {
	s.fenced = true
	for i := range scope + 1 {
		s.told[i] = v
	}
}

// talk is the states of the threads of a block.
type talk struct {
	block  uint32
	levels int // of trees for so many blocks as the grid has
	talks  bool

	base  state    // of those threads that have none of their own
	own   []*state // by thread
	dirty []uint16 // threads that have one
	none  bool     // nothing has been said

	published map[int]*view // by address in shared memory
	atBar     [bars]*state  // what threads that arrived know
	heard     [8]hearing    // of other blocks, the last ones
	hearings  int
}

func newTalk(threads int, talks bool) talk {
	return talk{talks: talks, own: make([]*state, threads), published: map[int]*view{}}
}

func (k *talk) start(block uint32, blocks int) {
	k.block, k.levels, k.none, k.hearings = block, levelsFor(blocks), true, 0
	k.base, k.atBar = state{}, [bars]*state{}
	clear(k.published)
	for _, t := range k.dirty {
		k.own[t] = nil
	}
	k.dirty = k.dirty[:0]
}

// at is the state of a lane, to be read.
func (k *talk) at(w uint32, lane int) *state {
	if s := k.own[w*simt.WarpSize+uint32(lane)]; s != nil {
		return s
	}
	return &k.base
}

// of is the state of a lane, to be changed.
func (k *talk) of(w uint32, lane int) *state {
	t := w*simt.WarpSize + uint32(lane)
	if k.own[t] == nil {
		s := k.base
		k.own[t], k.none = &s, false
		k.dirty = append(k.dirty, uint16(t))
	}
	return k.own[t]
}

// settle is for a barrier of the whole block: all that was known of its threads is known to all, and the rest is handed on.
func (k *talk) settle(warps int) {
	if k.none {
		return
	}
	clear(k.published)
	if len(k.dirty) == 0 {
		return
	}
	k.base = k.together(warps, func(yield func(s *state)) {
		yield(&k.base)
		for _, t := range k.dirty {
			yield(k.own[t])
		}
	})
	for _, t := range k.dirty {
		k.own[t] = nil
	}
	k.base.fenced = false
	k.dirty = k.dirty[:0]
}

// together is what some threads know together, that is what each of them knows once they have met.
func (k *talk) together(warps int, each func(yield func(s *state))) (sum state) {
	part := func(of func(s *state) *view) *view {
		var first, last *view
		var own *gathering
		var far *tree
		each(func(s *state) {
			v := of(s)
			if v == nil || v == last {
				return
			}
			last = v
			if first == nil {
				first, far = v, v.far
				return
			}
			if own == nil {
				own = newGathering(warps)
				own.add(first.own)
			}
			own.add(v.own)
			far = far.joined(v.far)
		})
		if own == nil {
			return first
		}
		return &view{own: own.leaf(), far: far}
	}
	sum.known = part(func(s *state) *view { return s.known })
	for i := range scopes {
		sum.read[i] = part(func(s *state) *view { return s.read[i] })
		sum.told[i] = part(func(s *state) *view { return s.told[i] })
	}
	each(func(s *state) { sum.fenced = sum.fenced || s.fenced })
	return sum
}

// knows is whether a lane has acquired what a thread of its block did up to a clock.
func (k *talk) knows(w uint32, lane int, thread uint16, clock uint32) bool {
	if k.none {
		return false
	}
	v := k.at(w, lane).known
	return v != nil && v.own.of(thread) >= clock
}

// knowsFar is the same of a thread of another block.
func (k *talk) knowsFar(w uint32, lane int, block uint32, thread uint16, clock uint32) bool {
	if k.none {
		return false
	}
	v := k.at(w, lane).known
	return v != nil && v.far.get(block, k.levels).of(thread) >= clock
}

// knowsWarp is the same of all lanes of a warp of another block.
func (k *talk) knowsWarp(w uint32, lane int, block, warp, clock uint32) bool {
	if k.none {
		return false
	}
	v := k.at(w, lane).known
	if v == nil {
		return false
	}
	l := v.far.get(block, k.levels)
	return l != nil && l.warps[warp] >= clock
}

// fencedAt is the clock of a thread's last fence since the last barrier of the block, 0 without.
func (k *talk) fencedAt(thread uint16) uint32 {
	if s := k.own[thread]; s != nil && s.fenced && s.told[OfBlock] != nil {
		return s.told[OfBlock].own.of(thread)
	}
	return 0
}

// Fence is that of some lanes, each for itself. It matters only where threads talk.
func (o *Order) Fence(w uint32, lanes uint32, acquire, release bool, scope Scope) {
	if !o.talks {
		return
	}
	if acquire {
		o.toldOfFences(w)
		o.seeUnseen(w, lanes)
	}
	warps := o.toldByBarriers(w)
	for m := lanes; m != 0; m &= m - 1 {
		lane := simt.Lowest(m)
		s := o.of(w, lane)
		if acquire {
			s.reached(scope)
		}
		if release {
			s.tell(o.snapshot(w, lane, warps), scope)
		}
	}
	o.tick(w)
}

// signal is what a strong access of a lane takes from its address in shared memory and leaves there.
func (o *Order) signal(w uint32, a *Access, lane, addr int) {
	there := o.published[addr]
	if (!a.Write || a.Atomic) && there != nil {
		s := o.of(w, lane)
		if a.Acquire {
			o.toldOfFences(w)
			s.known = union(s.known, there)
		} else {
			s.read[OfBlock] = union(s.read[OfBlock], there)
		}
	}
	if !a.Write {
		return
	}
	left := o.leaves(w, a, lane)[OfBlock]
	if a.Atomic {
		left = union(there, left) // an atomic passes on what it found
	}
	if left != nil {
		o.published[addr], o.none = left, false
	} else if len(o.published) > 0 {
		delete(o.published, addr)
	}
}

// Talk is what a strong access to shared memory does to the order, for checks that look at nothing else there.
func (o *Order) Talk(w uint32, a *Access, lane, addr int) {
	if o.near != nil {
		o.meet(w, a, lane, o.base+uint64(addr))
	}
	if o.signal(w, a, lane, addr); a.Release {
		o.tick(w)
	}
}

// leaves is by scope what a strong write of a lane tells who reads it.
func (o *Order) leaves(w uint32, a *Access, lane int) (left [scopes]*view) {
	left = o.at(w, lane).told
	if a.Release {
		v := o.snapshot(w, lane, o.toldByBarriers(w))
		for i := range a.Scope + 1 {
			left[i] = v
		}
	}
	return left
}

// share lets lanes that met by bar.warp.sync have what any of them has.
func (o *Order) share(w uint32, lanes uint32) {
	if o.none || !o.anyOwn(w, lanes) {
		return
	}
	all := o.together(len(o.clock), func(yield func(s *state)) {
		for m := lanes; m != 0; m &= m - 1 {
			yield(o.at(w, simt.Lowest(m)))
		}
	})
	for m := lanes; m != 0; m &= m - 1 {
		*o.of(w, simt.Lowest(m)) = all
	}
}

// anyOwn is whether one of some lanes has a state of its own.
func (o *Order) anyOwn(w uint32, lanes uint32) bool {
	own := o.own[w*simt.WarpSize:][:simt.WarpSize]
	for m := lanes; m != 0; m &= m - 1 {
		if own[simt.Lowest(m)] != nil {
			return true
		}
	}
	return false
}

// ClusterPassed ends a phase of the barrier of a cluster, whose blocks are given: each knows what threads had done that arrived and released it.
func ClusterPassed(blocks []*Order) {
	var all *tree
	for _, o := range blocks {
		here := union(&view{own: &leaf{warps: slices.Clone(o.bars[ClusterBarrier])}}, o.talk.base.known)
		if at := o.atBar[ClusterBarrier]; at != nil {
			here = union(here, at.known)
		}
		all = all.joined(here.all(o.block, o.levels))
		join(o.bars[ClusterPast], o.bars[ClusterBarrier])
		clear(o.bars[ClusterBarrier])
	}
	fencesPassed(blocks)
	for _, o := range blocks {
		at := o.together(len(o.clock), func(yield func(s *state)) {
			for _, s := range []*state{o.atBar[ClusterPast], o.atBar[ClusterBarrier], {known: viewOf(all, o.block, o.levels)}} {
				if s != nil {
					yield(s)
				}
			}
		})
		o.atBar[ClusterPast], o.atBar[ClusterBarrier] = &at, nil
	}
}

// bring puts what lanes have acquired to a barrier, which is a fence for its block too.
func (o *Order) bring(w uint32, lanes, id uint32) {
	if o.none || !o.anyOwn(w, lanes) {
		return
	}
	scope := OfBlock
	if id == ClusterBarrier {
		scope = OfCluster
	}
	for m := lanes; m != 0; m &= m - 1 {
		if l := simt.Lowest(m); o.at(w, l).read[scope] != nil {
			o.of(w, l).reached(scope)
		}
	}
	at := o.together(len(o.clock), func(yield func(s *state)) {
		if s := o.atBar[id]; s != nil {
			yield(s)
		}
		for m := lanes; m != 0; m &= m - 1 {
			yield(o.at(w, simt.Lowest(m)))
		}
	})
	o.atBar[id] = &at
}

// take gives lanes that leave a barrier of a part of the block what was brought to it.
func (o *Order) take(w uint32, lanes, id uint32) {
	if at := o.atBar[id]; at != nil {
		for m := lanes; m != 0; m &= m - 1 {
			s := o.of(w, simt.Lowest(m))
			*s = o.together(len(o.clock), func(yield func(s *state)) {
				yield(s)
				yield(at)
			})
		}
	}
	if id != ClusterPast {
		o.Fence(w, lanes, true, true, OfBlock)
	}
}

// strength is how an access counts against others to the same bytes.
type strength uint8

const (
	weak      strength = iota // plain: races with all
	unordered                 // volatile or relaxed: which value is read or stays is left to chance, as with plain ones
	signalled                 // an atomic; a store that releases, or comes after a fence of its thread; a load that acquires or is polled
)

// strengthOf is that of an access of a lane.
func (o *Order) strengthOf(w uint32, a *Access, lane int) strength {
	switch {
	case !a.Strong:
		return weak
	case a.Atomic || a.Polled || a.Write && (a.Release || o.at(w, lane).fenced) || !a.Write && a.Acquire:
		return signalled
	}
	return unordered
}

// clash is whether two accesses may not be without order, if one of them writes.
func clash(a, b strength) bool { return a == weak || b == weak || a == unordered && b == unordered }
