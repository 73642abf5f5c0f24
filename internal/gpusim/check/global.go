package check

import (
	"math/bits"
	"slices"
	"sync"
	"unsafe"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Races in global memory. Two accesses to the same bytes, one of them a write, race if nothing orders them and they are not
// both strong, of the same bytes and of scopes that reach from each to the other. Within a block Order knows what is in
// order, and of other blocks what a thread has acquired.
//
// For each unit of memory the last write is kept and two reads: the last one, and one before by another block or, if there
// is none, by another warp. What is forgotten of many readers may hide a race and never makes one. As in FastTrack an access
// is a clock of its thread and not a vector.
//
// Blocks that do not talk may run on several cores. Each core keeps what its block does, and at the end of the block adds it
// to a summary of the launch: by unit the first and the last block that read and that wrote it. Any two blocks that differ
// race there, whatever the order in which they ran.

// Global is what is known of global memory on one core.
type Global struct {
	launch *Races
	pages  map[uint64]*page
	recent [256]*page // by the lowest bits of their numbers
	free   []*page
	spare  [maxShift][][]cell
	used   int // bytes
	places map[uint64]*place
	beyond *tree // what was told at places that are not kept
	found  map[pair]*race
	early  map[int]*early // by access
	// Of shared memory of a cluster, by block.
	relaxed map[uint32]*relaxedArrival
	visits  map[visit]record
	fenced  *tree // what fence.proxy.async came behind
	leave   Omission
}

// Races is a launch under the check.
type Races struct {
	Apart   bool                        // blocks do not talk: cores run them in no order
	Cluster func(block uint32) (in int) // which cluster a block is in; nil without clusters

	accesses []*Access
	ahead    *Ahead // nil for a launch that waits for the one ahead
	near     bool   // shared memory of clusters, where Race looks at pairs of one block

	mu       sync.Mutex
	summary  map[uint64]*summary
	used     int
	found    map[pair]*race
	clusters []found
	leave    Omission
}

// NewRaces is nil where the check is off.
func NewRaces(on Check, accesses []*Access, talks bool, ahead *Ahead) *Races {
	if on&Globalcheck == 0 {
		return nil
	}
	r := &Races{Apart: !talks, accesses: accesses, ahead: ahead, summary: map[uint64]*summary{}, found: map[pair]*race{}}
	if len(accesses) > maxAccesses {
		r.leave |= omitsPages
	}
	return r
}

// On makes what a core needs; nil without the check.
func (r *Races) On() *Global {
	if r == nil || r.leave != 0 {
		return nil
	}
	return &Global{launch: r, pages: map[uint64]*page{}, places: map[uint64]*place{}, found: map[pair]*race{}, relaxed: map[uint32]*relaxedArrival{}, visits: map[visit]record{}}
}

const (
	pageBits = 10
	pageSize = 1 << pageBits // bytes of memory that a page is about

	maxPages  = 1 << 30 // bytes that pages of a launch may take, and summaries again
	maxPlaces = 1 << 19 // by way of which threads talk
)

// page is some memory in rows.
type page struct {
	number uint64
	rows   [pageSize / rowSize]row
}

// row has a cell for each unit of some memory, of as many bytes as the smallest access had, or where neighbouring lanes
// follow each other as they have together: the records name the first of them.
type row struct {
	shift uint8
	whole cell   // with the widest units
	cells []cell // with others
}

const (
	maxShift = 7 // of the widest units: what a warp reads by words
	rowSize  = 1 << maxShift
)

// cell is the unit that has the byte at an address.
func (r *row) cell(at uint64) *cell {
	if r.shift == maxShift {
		return &r.whole
	}
	return &r.cells[at%rowSize>>r.shift]
}

// cell is the last accesses to a unit.
type cell struct{ write, read, before record }

// record is an access: block, clock of the thread's warp (0 for none), access and thread.
type record struct {
	block, clock uint32
	who          uint32
}

const (
	threadBits  = 10
	maxAccesses = 1 << (32 - threadBits)
)

func (r record) thread() uint16 { return uint16(r.who & (1<<threadBits - 1)) }

func (r record) access() uint32 { return r.who >> threadBits }

// follows is whether the access is in the kernel's list: texts for printf are not.
func (g *Global) follows(a *Access) bool {
	list := g.launch.accesses
	return a.Id < len(list) && list[a.Id].Site == a.Site
}

// Warp looks at the accesses of some lanes of a warp, those of neighbours that follow each other at once.
func (g *Global) Warp(o *Order, w, lanes uint32, a *Access, at *simt.Vec64) {
	if !g.follows(a) {
		return
	}
	if g.launch.ahead != nil && !o.depended {
		for m := lanes; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			g.tooEarly(o, w, i, a, at[i], a.Size)
		}
	}
	if a.Strong || a.Used != 0 || a.Write && len(g.places) > 0 {
		for m := lanes; m != 0; m &= m - 1 {
			i := simt.Lowest(m)
			g.lane(o, w, i, a, at[i])
		}
		return
	}
	size := uint64(a.Size)
	for m := lanes; m != 0; {
		first := simt.Lowest(m)
		i := first + 1
		for i < simt.WarpSize && m>>i&1 == 1 && at[i] == at[i-1]+size {
			i++
		}
		m &^= uint32(1<<i - 1)
		g.run(o, w, first, a, at[first], size*uint64(i-first))
	}
}

// run looks at the plain accesses of neighbouring lanes, which follow each other. A unit may hold those of several.
func (g *Global) run(o *Order, w uint32, lane int, a *Access, from, bytes uint64) {
	shift, base := shiftOf(a.Size), g.record(o, w, lane, a)
	for at := from; at < from+bytes; {
		wide := uint8(min(bits.TrailingZeros64(at), bits.Len64(from+bytes-at)-1, maxShift))
		r := g.row(at, wide)
		if r == nil {
			at += 1 << wide
			continue
		}
		now := base
		now.who += uint32((at - from) >> shift)
		switch c := r.cell(at); {
		case r.shift <= shift:
			g.touch(o, w, int(now.who%simt.WarpSize), a, now, c, at)
		case !g.past(o, w, now, c.write) || a.Write && !(g.past(o, w, now, c.read) && g.past(o, w, now, c.before)):
			g.refine(r, shift)
			continue
		case a.Write:
			c.write = now
		default:
			c.readBy(now)
		}
		at += 1 << r.shift
	}
}

// past is whether it is easily seen that what lanes did to a unit comes before what others, or they, do now.
func (g *Global) past(o *Order, w uint32, now, then record) bool {
	of := uint32(then.thread()) / simt.WarpSize
	switch {
	case then.clock == 0:
		return true
	case then.block != now.block:
		return o.knowsWarp(w, int(now.who%simt.WarpSize), then.block, of, then.clock)
	case of != w:
		return o.clock[w][of] >= then.clock
	}
	return o.met[w] >= then.clock || then.thread() == now.thread() && g.size(then) == g.size(now)
}

func (g *Global) size(r record) int { return g.launch.accesses[r.access()].Size }

func (g *Global) record(o *Order, w uint32, lane int, a *Access) record {
	return record{o.block, o.clock[w][w], uint32(a.Id)<<threadBits | w*simt.WarpSize + uint32(lane)}
}

// Lane looks at the access of one lane.
func (g *Global) Lane(o *Order, w uint32, lane int, a *Access, at uint64) {
	if !g.follows(a) {
		return
	}
	if g.launch.ahead != nil && !o.depended {
		g.tooEarly(o, w, lane, a, at, a.Size)
	}
	g.lane(o, w, lane, a, at)
}

func (g *Global) lane(o *Order, w uint32, lane int, a *Access, at uint64) {
	now := g.record(o, w, lane, a)
	if a.Used == 0 {
		g.span(o, w, lane, a, now, at, a.Size)
	} else {
		for i := range a.Size {
			if a.Used>>i&1 == 1 {
				g.span(o, w, lane, a, now, at+uint64(i), 1)
			}
		}
	}
	switch {
	case a.Strong && !a.Atomic:
		for i := 0; i < a.Size; i += a.Elem {
			g.talk(o, w, lane, a, now, at+uint64(i), a.Write)
		}
	case a.Write && !a.Atomic && len(g.places) > 0:
		for i := 0; i < a.Size; i += a.Elem {
			delete(g.places, at+uint64(i))
		}
	}
}

// Bulk looks at what a bulk copy of a lane reads or writes. It counts as done when it is issued: by whom and when it is over others learn
// from the thread that has waited, or by an mbarrier whose arrival came before the copy. So that these are no races, a read is as old as the
// block where blocks talk, and blocks of a cluster are not compared.
func (g *Global) Bulk(o *Order, w uint32, lane int, a *Access, at uint64, bytes int) {
	if !g.follows(a) {
		return
	}
	if g.launch.ahead != nil && !o.depended {
		g.tooEarly(o, w, lane, a, at, bytes)
	}
	now := g.record(o, w, lane, a)
	if !a.Write && !g.launch.Apart {
		now.clock = 1
	}
	for end := at + uint64(bytes); at < end; {
		wide := uint8(min(bits.TrailingZeros64(at), bits.Len64(end-at)-1, maxShift))
		size := uint64(1) << wide
		if r := g.row(at, wide); r != nil {
			size = 1 << r.shift
			g.touch(o, w, lane, a, now, r.cell(at), at)
		}
		at += size
	}
}

// span looks at the bytes of an access, which lie in one row.
func (g *Global) span(o *Order, w uint32, lane int, a *Access, now record, at uint64, size int) {
	r := g.row(at, shiftOf(size))
	if r == nil {
		return
	}
	for i := uint64(0); i < uint64(size); i += 1 << r.shift {
		g.touch(o, w, lane, a, now, r.cell(at+i), at)
	}
}

// touch looks at the access of a lane to a unit, all of which is its.
func (g *Global) touch(o *Order, w uint32, lane int, a *Access, now record, c *cell, at uint64) {
	if c.write.clock|c.read.clock == 0 {
		if a.Write {
			c.write = now
		} else {
			c.read = now
		}
		return
	}
	if c.write.clock != 0 {
		g.against(o, w, lane, a, now, c.write, at)
	}
	if !a.Write {
		if !g.weaker(c.read, now) {
			c.readBy(now)
		}
		return
	}
	if c.read.clock != 0 {
		g.against(o, w, lane, a, now, c.read, at)
		if c.before.clock != 0 {
			g.against(o, w, lane, a, now, c.before, at)
		}
	}
	if !g.weaker(c.write, now) {
		c.write = now
	}
}

// weaker is whether a thread's access before reaches less far than the one now, and is as new to others.
func (g *Global) weaker(then, now record) bool {
	return then.block == now.block && then.clock == now.clock && then.thread() == now.thread() && g.launch.accesses[then.access()].rank() < g.launch.accesses[now.access()].rank()
}

// readBy records a read.
func (c *cell) readBy(now record) {
	last := c.read
	if last.block != now.block || (last.who^now.who)&(1<<threadBits-simt.WarpSize) != 0 && (c.before.clock == 0 || c.before.block == now.block) {
		c.before = last
	}
	c.read = now
}

// against reports a race with an access before, if it is one.
func (g *Global) against(o *Order, w uint32, lane int, a *Access, now, then record, at uint64) {
	if then.block == now.block {
		if g.launch.near || o.Ordered(w, lane, then.thread(), then.clock) {
			return
		}
	} else if o.knowsFar(w, lane, then.block, then.thread(), then.clock) {
		return
	}
	b := g.launch.accesses[then.access()]
	if (a.Bulk || b.Bulk) && !g.launch.near && g.launch.together(now.block, then.block) {
		return
	}
	if a.Strong && b.Strong && a.alike(b) && g.reach(a.Scope, b.Scope, now.block, then.block) {
		return
	}
	g.note(o, w, lane, now, then, at)
}

// reach is whether two scopes reach from each block to the other.
func (g *Global) reach(a, b Scope, x, y uint32) bool { return min(a, b) >= g.launch.level(x, y) }

// level is the scope that two threads of blocks need.
func (r *Races) level(x, y uint32) Scope {
	switch {
	case x == y:
		return OfBlock
	case r.together(x, y):
		return OfCluster
	}
	return OfDevice
}

// together is whether two blocks are one, or of one cluster: barriers and mbarriers put what they do in order.
func (r *Races) together(x, y uint32) bool {
	return x == y || r.Cluster != nil && r.Cluster(x) == r.Cluster(y)
}

// row finds a row, with units of at most 1<<shift bytes. It is nil where there is no room for more.
func (g *Global) row(at uint64, shift uint8) *row {
	number := at >> pageBits
	recent := &g.recent[number%uint64(len(g.recent))]
	p := *recent
	if p == nil || p.number != number {
		if p = g.pages[number]; p == nil {
			if p = g.newPage(number); p == nil {
				return nil
			}
		}
		*recent = p
	}
	r := &p.rows[at%pageSize>>maxShift]
	if shift < r.shift {
		g.refine(r, shift)
	}
	return r
}

// shiftOf is the binary logarithm of a size.
func shiftOf(size int) uint8 { return uint8(bits.TrailingZeros(uint(size))) }

func (g *Global) newPage(number uint64) *page {
	if g.used > maxPages {
		g.leave |= omitsPages
		return nil
	}
	var p *page
	if last := len(g.free) - 1; last >= 0 {
		p = g.free[last]
		g.free = g.free[:last]
	} else {
		p = &page{}
	}
	g.used += int(unsafe.Sizeof(*p))
	p.number = number
	for i := range p.rows {
		p.rows[i] = row{shift: maxShift}
	}
	g.pages[number] = p
	return p
}

// recycle keeps what a page is made of.
func (g *Global) recycle(p *page) {
	g.free = append(g.free, p)
	for i := range p.rows {
		if r := &p.rows[i]; r.shift < maxShift {
			g.spare[r.shift] = append(g.spare[r.shift], r.cells)
		}
	}
}

// refine makes the units of a row smaller.
func (g *Global) refine(r *row, s uint8) {
	var cells []cell
	if last := len(g.spare[s]) - 1; last >= 0 {
		cells = g.spare[s][last]
		g.spare[s] = g.spare[s][:last]
	} else {
		cells = make([]cell, rowSize>>s)
	}
	g.used += len(cells) * int(unsafe.Sizeof(cell{}))
	if r.shift == maxShift && r.whole == (cell{}) {
		clear(cells)
		r.shift, r.cells = s, cells
		return
	}
	for i := range cells {
		c, off := r.cell(uint64(i)<<s), uint32(i)<<s&(1<<r.shift-1)
		cells[i] = cell{g.launch.at(c.write, off), g.launch.at(c.read, off), g.launch.at(c.before, off)}
	}
	r.shift, r.cells = s, cells
}

// at is the record of the lane that accessed the byte at an offset in a unit.
func (r *Races) at(x record, off uint32) record {
	if x.clock != 0 && !r.accesses[x.access()].Bulk {
		x.who += off >> shiftOf(r.accesses[x.access()].Size)
	}
	return x
}

// pair is two accesses that race.
type pair struct {
	then, now uint32 // accesses
	far       bool   // by two blocks
}

// race is the first of those between two accesses, and how many there were.
type race struct {
	pair
	first, second record
	at            uint64
	why           string
	count         int
}

func (g *Global) note(o *Order, w uint32, lane int, now, then record, at uint64) {
	k := pair{then.access(), now.access(), then.block != now.block}
	r := g.found[k]
	if r == nil {
		if len(g.found) == maxRaces {
			g.leave |= OmitsFindings
			return
		}
		r = &race{pair: k, first: then, second: now, at: at, why: g.why(o, w, lane, now, then)}
		g.found[k] = r
	} else if g.launch.Apart && now.block < r.second.block {
		*r = race{pair: k, first: then, second: now, at: at, why: r.why, count: r.count}
	}
	r.count++
}

const maxRaces = 1 << 10

// merge adds what a core found: of each two accesses the race of the lowest block stands for all.
func (r *Races) merge(g *Global) {
	r.leave |= g.leave
	for k, x := range g.found {
		y := r.found[k]
		if y == nil {
			r.found[k] = x
			continue
		}
		n := x.count + y.count
		if x.second.block < y.second.block {
			*y = *x
		}
		y.count = n
	}
}

// Findings are the races of a launch, all cores of which are given, in the order of blocks.
func (r *Races) Findings(cores []*Global, about func(first, second Access, by [2]Party, at uint64) Finding) (list []Finding, o Omission) {
	if r == nil {
		return nil, 0
	}
	for _, g := range cores {
		if g != nil {
			r.merge(g)
		}
	}
	r.summarise()
	races := make([]*race, 0, len(r.found))
	for _, x := range r.found {
		races = append(races, x)
	}
	slices.SortFunc(races, func(x, y *race) int { return x.compare(y) })
	for _, x := range races {
		a, b := r.accesses[x.then], r.accesses[x.now]
		f := about(*a, *b, [2]Party{{x.first.block, uint32(x.first.thread())}, {x.second.block, uint32(x.second.thread())}}, x.at)
		f.Msg += ": " + x.why
		f.Count = x.count
		list = append(list, f)
	}
	return list, r.leave
}

// Party is the block and the thread of an access.
type Party struct{ Block, Thread uint32 }
