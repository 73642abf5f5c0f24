package check

import (
	"slices"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// The asynchronous proxy: bulk copies and wgmma access shared memory at any moment between their issue and the end that
// somebody waits for, and by another path than loads and stores. So of each 16 bytes it is known which of them may still be
// writing or reading there, and of each warp how far it knows of writes that fence.proxy.async came behind.

// Flight is accesses under way that end together: the copies of a phase of an mbarrier, of a group, or the products of one. An
// access comes behind them where it comes behind a thread's finding out that they have ended.
type Flight struct {
	Site *Site  // the first of them
	home uint32 // the block whose memory it is
	warp uint32
	seen []sight // by warp of the block
	far  []farSight
}

// farSight is of a warp of another block of the cluster.
type farSight struct {
	block, warp uint32
	sight
}

// sight is that lanes of a warp have found out, the first of them at a clock.
type sight struct {
	lanes, clock uint32
	first        uint8
}

// NewFlight is for something that a warp issues.
func (r *Order) NewFlight(s *Site, w uint32) *Flight {
	return &Flight{Site: s, home: r.block, warp: w, seen: make([]sight, len(r.clock))}
}

// See notes that lanes of a warp have found out that the flight has ended.
func (r *Order) See(f *Flight, w, lanes uint32) {
	if f == nil || lanes == 0 {
		return
	}
	s := f.sightOf(r.block, w)
	if s.lanes == 0 {
		s.clock, s.first = r.clock[w][w], uint8(simt.Lowest(lanes))
	}
	s.lanes |= lanes
}

// landed is whether a lane comes behind the end of a flight.
func (r *Order) landed(f *Flight, w uint32, lane int) bool {
	if r.block == f.home && f.seen[w].lanes>>lane&1 == 1 {
		return true
	}
	for v, s := range f.seen {
		if s.lanes != 0 && r.follows(w, lane, f.home, uint16(v*simt.WarpSize+int(s.first)), s.clock) {
			return true
		}
	}
	for _, s := range f.far {
		if s.block == r.block && s.warp == w && s.lanes>>lane&1 == 1 || r.follows(w, lane, s.block, uint16(s.warp*simt.WarpSize+uint32(s.first)), s.clock) {
			return true
		}
	}
	return false
}

// follows is whether what a lane does now comes behind what a thread of a block of the cluster did up to a clock.
func (o *Order) follows(w uint32, lane int, block uint32, thread uint16, clock uint32) bool {
	if block == o.block {
		return o.Ordered(w, lane, thread, clock)
	}
	return o.knowsFar(w, lane, block, thread, clock)
}

// sightOf is that of a warp of a block.
func (f *Flight) sightOf(block, w uint32) *sight {
	if block == f.home {
		return &f.seen[w]
	}
	for i := range f.far {
		if s := &f.far[i]; s.block == block && s.warp == w {
			return &s.sight
		}
	}
	f.far = append(f.far, farSight{block: block, warp: w})
	return &f.far[len(f.far)-1].sight
}

// flights is what the asynchronous proxy does in shared memory.
type flights struct {
	in     []*Flight   // by 16 bytes: that writes them; nil for none since they were last written otherwise
	out    [][]*Flight // that read them
	fenced []fences    // by warp: what it knows
	bars   [bars]fences
	unseen []unseen // where a thread has found out by a relaxed wait, and has no fence behind it
}

// fences are the clocks of warps up to which their writes are fenced: of the block's by warp, and of those of its cluster.
type fences struct {
	warps []uint32
	far   *tree
}

func (f *fences) clear() {
	clear(f.warps)
	f.far = nil
}

func (f *fences) add(o *fences) {
	if len(f.warps) < len(o.warps) {
		f.warps = make([]uint32, len(o.warps))
	}
	join(f.warps, o.warps)
	f.far = f.far.joined(o.far)
}

// unseen is that a lane has found out of a flight's end, and sees it from its next fence on.
type unseen struct {
	f    *Flight
	w    uint32
	lane int
}

// maxUnseen bounds what a block remembers so; what is more is taken for seen.
const maxUnseen = 1 << 12

// seeUnseen is for fences of lanes.
func (o *Order) seeUnseen(w, lanes uint32) {
	if o.fly == nil || len(o.fly.unseen) == 0 {
		return
	}
	left := o.fly.unseen[:0]
	for _, u := range o.fly.unseen {
		if u.w == w && lanes>>u.lane&1 == 1 {
			o.See(u.f, w, 1<<u.lane)
		} else {
			left = append(left, u)
		}
	}
	o.fly.unseen = left
}

// Asynchronous makes the check follow the asynchronous proxy.
func (r *Race) Asynchronous() {
	n, warps := len(r.vectors), len(r.clock)
	r.fly = &flights{in: make([]*Flight, n), out: make([][]*Flight, n), fenced: make([]fences, warps)}
	for i := range r.fly.fenced {
		r.fly.fenced[i].warps = make([]uint32, warps)
	}
	for i := range r.fly.bars {
		r.fly.bars[i].warps = make([]uint32, warps)
	}
}

// start forgets the block before.
func (f *flights) start() {
	if f == nil {
		return
	}
	clear(f.in)
	clear(f.out)
	for i := range f.fenced {
		f.fenced[i].clear()
	}
	for i := range f.bars {
		f.bars[i].clear()
	}
	f.unseen = nil
}

// arrive, leave and over pass on what is fenced by way of a barrier.
func (f *flights) arrive(w, id uint32) {
	if f != nil {
		f.bars[id].add(&f.fenced[w])
	}
}

func (f *flights) leave(w, id uint32) {
	if f != nil {
		f.fenced[w].add(&f.bars[id])
	}
}

func (f *flights) over(id uint32) {
	if f != nil {
		f.bars[id].clear()
	}
}

// all is what fences of the block are to other blocks.
func (f *fences) all(o *Order) *tree {
	return f.far.with(o.block, &leaf{warps: slices.Clone(f.warps)}, o.levels)
}

// fencesOf is what a tree says to the block.
func (o *Order) fencesOf(t *tree) *fences {
	f := fences{far: t}
	if l := t.get(o.block, o.levels); l != nil {
		f.warps = l.warps
	}
	return &f
}

// fencesPassed hands on what was brought to the barrier of the cluster of some blocks.
func fencesPassed(blocks []*Order) {
	var all *tree
	for _, o := range blocks {
		if f := o.fly; f != nil && o.near != nil {
			all = all.joined(f.bars[ClusterBarrier].all(o))
		}
	}
	for _, o := range blocks {
		if f := o.fly; f != nil {
			f.bars[ClusterPast].add(&f.bars[ClusterBarrier])
			f.bars[ClusterPast].add(o.fencesOf(all))
			f.over(ClusterBarrier)
		}
	}
}

// toldOfFences is for what passes by way of flags, whose order is known by thread: it takes all that any warp knows.
func (o *Order) toldOfFences(w uint32) {
	f := o.fly
	if f == nil {
		return
	}
	for v := range f.fenced {
		f.fenced[w].add(&f.fenced[v])
	}
	if o.near != nil {
		f.fenced[w].add(o.fencesOf(o.near.fenced))
	}
}

// FenceProxy is fence.proxy.async by lanes of a warp: the writes that they know of are visible to the asynchronous proxy.
func (r *Order) FenceProxy(w, lanes uint32) {
	if r.fly == nil {
		return
	}
	fenced := &r.fly.fenced[w]
	of := fenced.warps
	join(of, r.clock[w])
	for m := lanes; m != 0; m &= m - 1 {
		known := r.at(w, simt.Lowest(m)).known
		if known == nil {
			continue
		}
		fenced.far = fenced.far.joined(known.far)
		if known.own == nil {
			continue
		}
		join(of, known.own.warps)
		for _, x := range known.own.more {
			of[x.thread/simt.WarpSize] = max(of[x.thread/simt.WarpSize], x.clock)
		}
	}
	if r.near != nil {
		r.near.fenced = r.near.fenced.joined(fenced.all(r))
	}
	r.tick(w)
}

// checkFlights looks whether an access by a thread meets one of the asynchronous proxy that it does not come behind, in the memory of a block.
func (r *Race) checkFlights(of *Race, w uint32, a *Access, lane, addr int) {
	for g := addr / VectorSize; g <= (addr+a.Size-1)/VectorSize; g++ {
		if f := of.fly.in[g]; f != nil && !r.landed(f, w, lane) {
			r.report(w, lane, a, f.Site, kindOf(a)+" of bytes that a bulk copy may still be writing: the thread has not waited for it, nor comes behind one that has", addr)
			return
		}
		if !a.Write {
			continue
		}
		if f := r.reading(of, g, w, lane); f != nil {
			r.report(w, lane, a, f.Site, "write of bytes that "+readerOf(f)+" may still be reading", addr)
			return
		}
		of.fly.in[g], of.fly.out[g] = nil, nil
	}
}

// readerOf names what reads.
func readerOf(f *Flight) string {
	if f.Site.Inst.Op == "wgmma" {
		return "a wgmma"
	}
	return "a bulk copy"
}

// reading is a flight that a lane does not come behind and that reads 16 bytes of a block; nil for none.
func (r *Race) reading(of *Race, g int, w uint32, lane int) *Flight {
	for _, f := range of.fly.out[g] {
		if !r.landed(f, w, lane) {
			return f
		}
	}
	return nil
}

// unfenced is a write by a thread to 16 bytes that no fence.proxy.async comes behind, as far as a warp knows.
func (r *Race) unfenced(w uint32, g int) *Site {
	look := func(b *shadow) *Site {
		if b.wrote != 0 && !b.async && r.fly.fenced[w].warps[b.writer/simt.WarpSize] < b.wrote {
			return r.sites[b.writerOf]
		}
		return nil
	}
	if v := &r.vectors[g]; !v.split {
		return look(v)
	}
	const per = VectorSize / wordSize
	for i := g * per; i < (g+1)*per; i++ {
		if !r.words[i].split {
			if s := look(&r.words[i]); s != nil {
				return s
			}
			continue
		}
		for j := i * wordSize; j < (i+1)*wordSize; j++ {
			if s := look(&r.bytes[j]); s != nil {
				return s
			}
		}
	}
	return nil
}

// unfencedFar is a write across blocks of the cluster to 16 bytes of one of them, which a lane comes behind and of which it knows no
// fence.proxy.async.
func (r *Race) unfencedFar(of *Race, w uint32, lane, addr int) *Site {
	if r.near == nil {
		return nil
	}
	at := of.base + uint64(addr)
	for end := at + VectorSize; at < end; {
		row := r.near.row(at, shiftOf(VectorSize))
		if row == nil {
			return nil
		}
		then := row.cell(at).write
		if then.clock != 0 && (of != r || then.block != r.block) && r.follows(w, lane, then.block, then.thread(), then.clock) && r.fencedOf(w, then.block, then.thread()) < then.clock {
			return r.near.launch.accesses[then.access()].Site
		}
		at += 1 << row.shift
	}
	return nil
}

// fencedOf is the clock up to which writes of a thread of a block of the cluster are fenced, as far as a warp knows.
func (r *Race) fencedOf(w, block uint32, thread uint16) uint32 {
	if block == r.block {
		return r.fly.fenced[w].warps[thread/simt.WarpSize]
	}
	return r.fly.fenced[w].far.get(block, r.levels).of(thread)
}

// missesFence reports writes by threads to 16 bytes of a block that the asynchronous proxy may not see.
func (r *Race) missesFence(of *Race, w uint32, a *Access, lane, addr, what int) bool {
	var by *Site
	if of == r {
		by = r.unfenced(w, addr/VectorSize)
	}
	whose := "a thread"
	if by == nil {
		by, whose = r.unfencedFar(of, w, lane, addr), "a thread of a block of the cluster"
	}
	if by == nil {
		return false
	}
	verb := [...]string{"reads", "overwrites"}[what]
	r.report(w, lane, a, by, "the asynchronous proxy "+verb+" bytes that "+whose+" wrote without a fence.proxy.async in between", addr)
	return true
}

// ReadAsync checks and notes that a flight reads n bytes, for a lane that issues it. There is one report at most.
func (r *Race) ReadAsync(f *Flight, w uint32, a *Access, lane, addr, n int) {
	for at := addr; at < addr+n; at += VectorSize {
		r.flyOut(f, at/VectorSize)
	}
	for at := addr; at < addr+n; at += VectorSize {
		if !r.readable(w, a, lane, at) {
			return
		}
	}
}

// ReadRow is ReadAsync of 16 bytes; false where something was reported.
func (r *Race) ReadRow(f *Flight, w uint32, a *Access, lane, at int) bool {
	r.flyOut(f, at/VectorSize)
	return r.readable(w, a, lane, at)
}

// readable is whether the asynchronous proxy may read 16 bytes that a lane names; it reports otherwise.
func (r *Race) readable(w uint32, a *Access, lane, at int) bool {
	if in := r.fly.in[at/VectorSize]; in != nil && !r.landed(in, w, lane) {
		r.report(w, lane, a, in.Site, "read of bytes that a bulk copy may still be writing: the thread has not waited for it, nor comes behind one that has", at)
		return false
	}
	if r.near != nil {
		r.meet(w, a, lane, r.base+uint64(at))
	}
	return r.afterWrites(w, a, lane, at) && !r.missesFence(r, w, a, lane, at, 0)
}

// afterWrites is whether a lane comes behind the writes of threads to 16 bytes, which it reports otherwise.
func (r *Race) afterWrites(w uint32, a *Access, lane, at int) bool {
	for end := at + VectorSize; at < end; {
		b, n := r.unit(at, end-at)
		if what, other := r.hazard(w, a, weak, lane, b, false); what != "" && int(b.writer)/simt.WarpSize != int(w) {
			r.report(w, lane, a, other, what, at)
			return false
		}
		at += n
	}
	return true
}

// flyOut notes that a flight reads 16 bytes. Flights of a warp end in their order, so that the last of each warp counts.
func (r *Race) flyOut(f *Flight, g int) {
	for i, other := range r.fly.out[g] {
		if other == f {
			return
		}
		if other.warp == f.warp && readerOf(other) == readerOf(f) {
			r.fly.out[g][i] = f
			return
		}
	}
	r.fly.out[g] = append(r.fly.out[g], f)
}

// WriteAsync checks and notes that a flight writes n bytes of a block, for a lane that issues it.
func (r *Race) WriteAsync(of *Race, f *Flight, w uint32, a *Access, lane, addr, n int) {
	far := of != r
	if far && r.near == nil {
		of.ArriveAsync(f, addr, n)
		return
	}
	quiet := false
	for at := addr; at < addr+n && !quiet; at += VectorSize {
		quiet = r.missesFence(of, w, a, lane, at, 1)
	}
	if r.near != nil && r.near.follows(a) {
		r.near.overwrite(r.Order, w, lane, a, of.base+uint64(addr), n)
	}
	var data [16]byte
	for at := addr; at < addr+n; at += VectorSize {
		g := at / VectorSize
		if other := of.fly.in[g]; !quiet && other != nil && other != f && !r.landed(other, w, lane) {
			r.report(w, lane, a, other.Site, "a bulk copy writes where another may still be writing", at)
			quiet = true
		}
		if other := r.reading(of, g, w, lane); !quiet && other != nil {
			r.report(w, lane, a, other.Site, "a bulk copy overwrites bytes that "+readerOf(other)+" may still be reading", at)
			quiet = true
		}
		of.fly.in[g], of.fly.out[g] = nil, nil
		if !quiet && !far {
			r.Check(w, &data, a, lane, at)
		}
		of.ArriveAsync(f, at, VectorSize)
	}
}

// ArriveAsync notes that a flight writes n bytes, and forgets what was before.
func (r *Race) ArriveAsync(f *Flight, addr, n int) {
	for g := addr / VectorSize; g < (addr+n)/VectorSize; g++ {
		r.forget(&r.vectors[g])
		r.vectors[g] = shadow{}
		r.fly.in[g], r.fly.out[g] = f, nil
	}
}
