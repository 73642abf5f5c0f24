package check

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Order is what comes before what, as the threads of a block know it: by barriers of the block, by bar.warp.sync between
// lanes, and by fences and strong accesses (talk.go).
//
// Warps have vector clocks, which barriers join; a warp's own clock advances with each barrier, bar.warp.sync and fence.
// Within a warp, order keeps for each two lanes the clock at which they last met.
type Order struct {
	clock    [][]uint32
	order    [][simt.WarpSize][simt.WarpSize]uint32
	met      []uint32 // clock of each warp at which all its lanes last met
	bars     [bars][]uint32
	epoch    uint32  // one more with each barrier that all threads passed: what is from before comes before
	depended bool    // the block has waited for the launch ahead
	near     *Global // where blocks of its cluster reach each other's shared memory; else nil
	base     uint64  // of the block's there
	talk
	fly *flights // nil where there is no asynchronous proxy
}

// NewOrder is for a block of so many warps. talks is whether threads may talk by strong accesses.
func NewOrder(warps int, talks bool) *Order {
	o := &Order{clock: make([][]uint32, warps), order: make([][simt.WarpSize][simt.WarpSize]uint32, warps), met: make([]uint32, warps),
		talk: newTalk(warps*simt.WarpSize, talks)}
	for i := range o.clock {
		o.clock[i] = make([]uint32, warps)
	}
	for i := range o.bars {
		o.bars[i] = make([]uint32, warps)
	}
	return o
}

// Start forgets the block before. The next has that index, of so many blocks.
func (o *Order) Start(index, blocks int) {
	o.epoch, o.depended = 1, false
	clear(o.order)
	clear(o.met)
	o.talk.start(uint32(index), blocks)
	o.fly.start()
	for i := range o.clock {
		clear(o.clock[i])
		o.clock[i][i] = 1
	}
	for i := range o.bars {
		clear(o.bars[i])
	}
}

// Arrive publishes what lanes of the warp have done to a barrier.
func (o *Order) Arrive(w uint32, lanes, id uint32) {
	o.seeUnseen(w, lanes)
	join(o.bars[id], o.clock[w])
	o.fly.arrive(w, id)
	o.bring(w, lanes, id)
	o.tick(w)
}

// Leave lets lanes of the warp see what those that arrived had done. They have met as well; lanes is full for all that
// have not exited.
func (o *Order) Leave(w uint32, lanes, id uint32, all bool) {
	join(o.clock[w], o.bars[id])
	o.fly.leave(w, id)
	o.Meet(w, lanes)
	if !all {
		o.take(w, lanes, id)
	}
}

// Reset empties a barrier that is over; all is whether all threads of the block waited there.
func (o *Order) Reset(id uint32, all bool) {
	clear(o.bars[id])
	o.fly.over(id)
	o.atBar[id] = nil
	if all {
		o.epoch++
		o.talk.settle(len(o.clock))
	}
}

// Depended is that the block has waited for the launch ahead.
func (o *Order) Depended() { o.depended = true }

// Now is the clock of a warp.
func (o *Order) Now(w uint32) uint32 { return o.clock[w][w] }

func (o *Order) tick(w uint32) { o.clock[w][w]++ }

func join(a, b []uint32) {
	for i, v := range b {
		a[i] = max(a[i], v)
	}
}

// Meet orders the lanes of a mask: what each knows of any lane, all know.
func (o *Order) Meet(w uint32, mask uint32) {
	o.share(w, mask)
	now := o.clock[w][w]
	if mask == simt.Full {
		o.met[w] = now
		o.tick(w)
		return
	}
	of := &o.order[w]
	var known [simt.WarpSize]uint32
	for m := mask; m != 0; m &= m - 1 {
		i := simt.Lowest(m)
		for j := range known {
			known[j] = max(known[j], of[i][j])
		}
		known[i] = now
	}
	for m := mask; m != 0; m &= m - 1 {
		of[simt.Lowest(m)] = known
	}
	o.tick(w)
}

// Ordered is whether an access of a thread of the block at a clock of its warp comes before what the lane does now.
func (o *Order) Ordered(w uint32, lane int, thread uint16, clock uint32) bool {
	other, l := int(thread)/simt.WarpSize, int(thread)%simt.WarpSize
	if other != int(w) {
		return o.clock[w][other] >= clock || o.knows(w, lane, thread, clock)
	}
	return l == lane || o.met[w] >= clock || o.order[w][lane][l] >= clock || o.knows(w, lane, thread, clock)
}

// snapshot is all that a lane knows now. warps is toldByBarriers.
func (o *Order) snapshot(w uint32, lane int, warps []uint32) *view {
	own, first := &leaf{warps: warps}, uint16(w*simt.WarpSize)
	for l, clock := range o.order[w][lane] {
		if l == lane {
			clock = o.clock[w][w]
		}
		if clock > o.met[w] {
			own.more = append(own.more, mark{first + uint16(l), clock})
		}
	}
	return union(o.at(w, lane).known, &view{own: own})
}

// toldByBarriers is what barriers tell a warp, of its own lanes what all of them know.
func (o *Order) toldByBarriers(w uint32) []uint32 {
	warps := slices.Clone(o.clock[w])
	warps[w] = o.met[w]
	return warps
}
