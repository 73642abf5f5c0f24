package check

import (
	"bytes"

	"github.com/warpline-ml/warpline/internal/gpusim/simt"
)

// Race finds accesses to shared memory by two threads, one of them a write, that nothing orders: no barrier of the
// block between their warps, no bar.warp.sync between lanes of one warp, no fences and strong accesses (order.go).
//
// What is known of memory is kept for vectors of 16 bytes; one that was not accessed as a whole is split into words of 4
// bytes, and those into bytes.
type Race struct {
	*Order
	vectors, words, bytes []shadow
	multi                 []reader // lists of one for each warp
	free                  []int32  // lists

	shared []byte // of the block
	sites  []*Site
	report func(w uint32, lane int, a *Access, other *Site, what string, addr int)
}

// reader is the lanes of a warp that read bytes since they were written, and the clock of the latest read.
type reader struct {
	lanes, clock      uint32
	strong, signalled uint32 // of lanes those that only read so; bits of others mean nothing
}

// shadow is the last write of some bytes and the last read, or that several threads read them.
type shadow struct {
	writer, reader     uint16 // thread; many for several readers
	multi              int32  // 1 more than the index of the list for several readers, which it keeps once it has one
	wrote, read        uint32 // clock of its warp, 0 for never
	wroteIn, readIn    uint32 // epoch
	wroteAs, readAs    strength
	async              bool
	split              bool   // what is known is kept for its parts
	writerOf, readerOf uint32 // ids of sites
}

// ClusterBarrier is where threads arrive at the barrier of the cluster, and ClusterPast where they find what those knew that did
// so in phases that are over; other barriers are the block's sixteen.
const (
	ClusterBarrier = 16 + iota
	ClusterPast
	bars
)

const many = ^uint16(0)

// VectorSize is the bytes of the units in which shared memory is followed, as long as they are accessed as wholes.
const VectorSize = 16

const wordSize = 4

// NewRace is for a block in whose order it looks. report is told of each hazard: what a lane's access meets, and whose.
func NewRace(o *Order, shared []byte, sites []*Site, report func(w uint32, lane int, a *Access, other *Site, what string, addr int)) *Race {
	n := (len(shared) + VectorSize - 1) / VectorSize
	return &Race{Order: o, shared: shared, sites: sites, report: report, vectors: make([]shadow, n), words: make([]shadow, n*VectorSize/wordSize), bytes: make([]shadow, n*VectorSize)}
}

// Start forgets the block before.
func (r *Race) Start() {
	clear(r.vectors)
	r.free = r.free[:0]
	for i := range len(r.multi) / len(r.clock) {
		r.free = append(r.free, int32(i+1))
	}
}

// Check looks at an access and records it; data is what a store is about to write.
func (r *Race) Check(w uint32, data *[16]byte, a *Access, lane, addr int) {
	as := r.strengthOf(w, a, lane)
	if r.fly != nil {
		r.checkFlights(r, w, a, lane, addr)
	}
	if r.near != nil && !a.Bulk {
		r.meet(w, a, lane, r.base+uint64(addr))
	}
	if a.Strong {
		r.signal(w, a, lane, addr)
	} else if a.Write && len(r.published) > 0 {
		delete(r.published, addr)
	}
	for at, end := addr, addr+a.Size; at < end; {
		left := end - at
		if a.Used != 0 {
			if a.Used>>(at-addr)&1 == 0 {
				at++
				continue
			}
			left = 1
		}
		b, n := r.unit(at, left)
		same := a.Plain && bytes.Equal(data[at-addr:][:n], r.shared[at:][:n])
		if what, other := r.hazard(w, a, as, lane, b, same); what != "" {
			r.report(w, lane, a, other, what, addr)
		}
		r.record(w, a, as, lane, b)
		at += n
	}
	if a.Release {
		r.tick(w)
	}
	if a.Write && a.Used == 0 {
		r.join(addr, a.Size)
	}
}

// ReadVectors is check for plain reads of vectors by the first lanes, where what was written comes before by a barrier of
// the whole block. It returns the lanes for which it is not that simple.
func (r *Race) ReadVectors(w uint32, a *Access, off []uint32) (rest uint32) {
	if a.Strong || a.Used != 0 || r.fly != nil || r.near != nil {
		return simt.Full
	}
	epoch, now, first, id, site := r.epoch, r.clock[w][w], uint16(w*simt.WarpSize), int(w), a.Site.Id
	for i, at := range off {
		v := &r.vectors[at/VectorSize]
		switch {
		case v.split || v.async || v.wrote == 0 || v.wroteIn >= epoch:
			rest |= 1 << i
		case v.readIn < epoch:
			v.reader, v.read, v.readIn, v.readAs, v.readerOf = first+uint16(i), now, epoch, weak, site
			if v.multi != 0 { // several warps read it before, and will again
				list := r.empty(v.multi)
				list[id].lanes, list[id].clock, v.reader = 1<<i, now, many
			}
		case v.reader == many && r.readers(v.multi)[id].comparable(now):
			m := &r.readers(v.multi)[id]
			m.lanes, m.clock = m.lanes|1<<i, now
			if v.readAs != weak || m.strong != 0 {
				v.readAs, m.strong, m.signalled = weak, m.strong&^(1<<i), m.signalled&^(1<<i)
			}
		default:
			r.record(w, a, weak, i, v)
		}
	}
	return rest
}

// CopyVectors is check for the writes of vectors by a cp.async of the whole warp, which may happen from now on, where what
// was there comes before by a barrier of the whole block. It returns the other lanes.
func (r *Race) CopyVectors(w uint32, a *Access, at *[simt.WarpSize]uint32) (rest uint32) {
	if r.fly != nil || r.near != nil {
		return simt.Full
	}
	epoch, now, first, site := r.epoch, r.clock[w][w], uint16(w*simt.WarpSize), a.Site.Id
	for i, at := range at {
		v := &r.vectors[at/VectorSize]
		if v.split || v.async || v.wroteIn >= epoch || v.readIn >= epoch {
			rest |= 1 << i
			continue
		}
		v.writer, v.wrote, v.wroteIn, v.read, v.readIn, v.async, v.wroteAs, v.writerOf = first+uint16(i), now, epoch, 0, 0, true, weak, site
	}
	return rest
}

// unit is the largest unit that starts at an address, has at most left bytes and is not split, and its size.
func (r *Race) unit(at, left int) (b *shadow, size int) {
	v := &r.vectors[at/VectorSize]
	if !v.split {
		if at%VectorSize == 0 && left >= VectorSize {
			return v, VectorSize
		}
		r.divide(v, r.words[at/VectorSize*(VectorSize/wordSize):][:VectorSize/wordSize])
	}
	b = &r.words[at/wordSize]
	if !b.split {
		if at%wordSize == 0 && left >= wordSize {
			return b, wordSize
		}
		r.divide(b, r.bytes[at/wordSize*wordSize:][:wordSize])
	}
	return &r.bytes[at], 1
}

// divide hands what is known of a unit to its parts.
func (r *Race) divide(b *shadow, parts []shadow) {
	for i := range parts {
		parts[i] = *b
		parts[i].multi = 0
		if b.read != 0 && b.reader == many {
			parts[i].multi = r.newReaders()
			copy(r.readers(parts[i].multi), r.readers(b.multi))
		}
	}
	r.forget(b)
	*b = shadow{split: true}
}

// join undoes splits where a write made the parts alike.
func (r *Race) join(addr, size int) {
	if size >= wordSize {
		for i := addr / wordSize; i < (addr+size)/wordSize; i++ {
			if r.words[i].split && r.vectors[i*wordSize/VectorSize].split {
				r.words[i] = r.bytes[i*wordSize]
			}
		}
	}
	if size == VectorSize && r.vectors[addr/VectorSize].split {
		r.vectors[addr/VectorSize] = r.words[addr/wordSize]
	}
}

// readers is the list of that number, from 1 on.
func (r *Race) readers(i int32) []reader {
	n := len(r.clock)
	return r.multi[int(i-1)*n:][:n]
}

func (r *Race) empty(i int32) []reader {
	list := r.readers(i)
	for v := range list {
		list[v].lanes = 0
	}
	return list
}

func (r *Race) newReaders() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		r.empty(i)
		return i
	}
	r.multi = append(r.multi, make([]reader, len(r.clock))...)
	return int32(len(r.multi) / len(r.clock))
}

// forget gives the list for several readers back.
func (r *Race) forget(b *shadow) {
	if b.multi != 0 {
		r.free = append(r.free, b.multi)
	}
}

// hazard says what is wrong with an access. That several threads write the same value is harmless, and compilers rely
// on it.
func (r *Race) hazard(w uint32, a *Access, as strength, lane int, b *shadow, same bool) (what string, other *Site) {
	if b.wrote != 0 {
		switch {
		case b.async:
			return kindOf(a) + " of bytes that cp.async may still be writing", r.sites[b.writerOf]
		case clash(as, b.wroteAs) && !same && !r.Ordered(w, lane, b.writer, b.wrote):
			return kindOf(a) + " after a write by another thread without a barrier between them" + volatileNote(as, b.wroteAs), r.sites[b.writerOf]
		}
	}
	if !a.Write || b.read == 0 {
		return "", nil
	}
	if past := b.reader == many && r.readersPast(w, lane, b, as) || b.reader != many && (!clash(as, b.readAs) || r.Ordered(w, lane, b.reader, b.read)); !past {
		return "write after a read by another thread without a barrier between them" + volatileNote(as, b.readAs), r.sites[b.readerOf]
	}
	return "", nil
}

// volatileNote is for accesses of which somebody may think that they need no order.
func volatileNote(a, b strength) string {
	switch {
	case a == unordered && b == unordered:
		return "; volatile or relaxed accesses alone put nothing in order"
	case a == signalled || b == signalled:
		return "; an atomic or a flag puts nothing in order without fences around it"
	}
	return ""
}

func kindOf(a *Access) string {
	if a.Write {
		return "write"
	}
	return "read"
}

// readersPast is whether all of several readers come before what the lane does now, as far as they clash with it.
func (r *Race) readersPast(w uint32, lane int, b *shadow, as strength) bool {
	for v, m := range r.readers(b.multi) {
		lanes := m.lanes
		switch as {
		case unordered:
			lanes &^= m.signalled
		case signalled:
			lanes &^= m.strong
		}
		if lanes != 0 && !r.lanesPast(w, lane, v, lanes, m.clock) {
			return false
		}
	}
	return true
}

// lanesPast is whether accesses of lanes of a warp up to a clock come before what the lane does now.
func (r *Race) lanesPast(w uint32, lane, of int, lanes, clock uint32) bool {
	if of == int(w) {
		if r.met[of] >= clock {
			return true
		}
	} else if r.clock[w][of] >= clock {
		return true
	}
	for ; lanes != 0; lanes &= lanes - 1 {
		if !r.Ordered(w, lane, uint16(of*simt.WarpSize+simt.Lowest(lanes)), clock) {
			return false
		}
	}
	return true
}

func (r *Race) record(w uint32, a *Access, as strength, lane int, b *shadow) {
	thread, now := uint16(w*simt.WarpSize+uint32(lane)), r.clock[w][w]
	if a.Write {
		r.forget(b)
		by := a.Site.Id
		if b.wrote == now && b.writer == thread && b.wroteAs < as {
			as, by = b.wroteAs, b.writerOf // the thread's own weaker store is as new to others
		}
		if told := r.fencedAt(thread); told != 0 && as == signalled {
			now = told // who knows of the fence knows of what it was for
		}
		*b = shadow{writer: thread, wrote: now, wroteIn: r.epoch, wroteAs: as, writerOf: by}
		return
	}
	b.readIn = r.epoch
	switch {
	case b.read != 0 && b.reader == many:
		r.addReader(w, as, lane, b, now)
	case b.read != 0 && b.reader != thread && !r.Ordered(w, lane, b.reader, b.read):
		if b.multi == 0 {
			b.multi = r.newReaders()
		}
		list := r.empty(b.multi)
		list[b.reader/simt.WarpSize].add(int(b.reader)%simt.WarpSize, b.read, b.readAs)
		list[w].add(lane, now, as) // the other does not come before
		b.reader, b.readAs = many, min(b.readAs, as)
	default:
		if b.reader == thread && b.read == now {
			as = min(as, b.readAs)
		}
		b.reader, b.read, b.readAs, b.readerOf = thread, now, as, a.Site.Id
	}
}

// addReader forgets earlier readers of the warp that come before this one: what is after it is after them.
func (r *Race) addReader(w uint32, as strength, lane int, b *shadow, now uint32) {
	m := &r.readers(b.multi)[w]
	if m.clock == now && m.lanes>>lane&1 == 1 {
		as = min(as, m.strengthOf(lane))
	}
	if r.lanesPast(w, lane, int(w), m.lanes, m.clock) {
		m.lanes = 0
	}
	m.add(lane, now, as)
	b.readAs = min(b.readAs, as)
}

func (m *reader) add(lane int, clock uint32, as strength) {
	bit := uint32(1) << lane
	m.lanes |= bit
	m.clock = clock
	m.strong, m.signalled = m.strong&^bit, m.signalled&^bit
	if as > weak {
		m.strong |= bit
	}
	if as == signalled {
		m.signalled |= bit
	}
}

// comparable is whether none of the warp read so far, or all did at this very clock: nothing is in between.
func (m *reader) comparable(now uint32) bool { return m.lanes == 0 || m.clock == now }

func (m *reader) strengthOf(lane int) strength {
	return strength(m.strong>>lane&1 + m.signalled>>lane&1)
}

// MarkAsync marks bytes that a copy may write at any moment.
func (r *Race) MarkAsync(addr, size int) {
	for end := addr + size; addr < end; {
		b, n := r.unit(addr, end-addr)
		b.async = true
		addr += n
	}
}

// ArrivedVectors is arrived for the vectors that a copy by a whole warp wrote.
func (r *Race) ArrivedVectors(w uint32, at *[simt.WarpSize]uint32) {
	now, first := r.clock[w][w], uint16(w*simt.WarpSize)
	for i, at := range at {
		if v := &r.vectors[at/VectorSize]; !v.split && v.async {
			v.async, v.wrote, v.wroteIn, v.writer = false, now, r.epoch, first+uint16(i)
		} else {
			r.Arrived(w, i, int(at), VectorSize)
		}
	}
}

// Arrived turns a copy that its thread waited for into a write by it.
func (r *Race) Arrived(w uint32, lane, addr, size int) {
	for end := addr + size; addr < end; {
		b, n := r.unit(addr, end-addr)
		if b.async {
			b.async, b.wrote, b.wroteIn, b.writer = false, r.clock[w][w], r.epoch, uint16(w*simt.WarpSize+uint32(lane))
		}
		addr += n
	}
}
