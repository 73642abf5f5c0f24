package gpusim

import (
	"bytes"
	"strconv"
)

// race finds accesses to shared memory by two threads, one of them a write, that nothing orders: no barrier of the
// block between their warps, no bar.warp.sync between lanes of one warp.
//
// Warps have vector clocks, which barriers join; a warp's own clock advances with each barrier and each bar.warp.sync.
// Within a warp, order keeps for each two lanes the clock at which they last met.
//
// What is known of memory is kept for vectors of 16 bytes; one that was not accessed as a whole is split into words of 4
// bytes, and those into bytes.
type race struct {
	vectors, words, bytes []shadow
	clock                 [][]uint32
	order                 [][warpSize][warpSize]uint32
	met                   []uint32 // clock of each warp at which all its lanes last met
	bars                  [16][]uint32
	sync                  map[int]*released // by address: what atomics and strong accesses published
	multi                 []readers
	free                  []int32 // of multi
	epoch                 uint32  // one more with each barrier that all threads passed: what is from before comes before
}

// released is what threads knew when they last used an address to synchronise.
type released struct {
	clock []uint32
	lanes map[uint32]*[warpSize]uint32 // by warp
}

// readers is who read bytes since they were written: by warp, lanes and the clock of the latest read.
type readers struct {
	lanes, clock []uint32
}

// shadow is the last write of some bytes and the last read, or that several threads read them.
type shadow struct {
	writer, reader     uint16 // thread; many for several readers
	multi              int32  // index of the several readers
	wrote, read        uint32 // clock of its warp, 0 for never
	wroteIn, readIn    uint32 // epoch
	atomic, async      bool
	split              bool // what is known is kept for its parts
	writerOf, readerOf *site
}

const many = ^uint16(0)

const vectorSize, wordSize = 16, 4

func newRace(shared, warps int) *race {
	n := (shared + vectorSize - 1) / vectorSize
	r := &race{vectors: make([]shadow, n), words: make([]shadow, n*vectorSize/wordSize), bytes: make([]shadow, n*vectorSize),
		clock: make([][]uint32, warps), order: make([][warpSize][warpSize]uint32, warps)}
	r.met = make([]uint32, warps)
	for i := range r.clock {
		r.clock[i] = make([]uint32, warps)
	}
	for i := range r.bars {
		r.bars[i] = make([]uint32, warps)
	}
	return r
}

// start forgets the block before.
func (r *race) start(*cta) {
	r.epoch = 1
	clear(r.vectors)
	clear(r.order)
	clear(r.met)
	r.sync, r.free = nil, r.free[:0]
	for i := range r.multi {
		r.free = append(r.free, int32(i))
	}
	for i := range r.clock {
		clear(r.clock[i])
		r.clock[i][i] = 1
	}
	for i := range r.bars {
		clear(r.bars[i])
	}
}

// arrive publishes what the warp has done to a barrier.
func (r *race) arrive(w *warp, id uint32) {
	join(r.bars[id], r.clock[w.id])
	r.tick(w)
}

// leave lets the warp see what those that arrived had done. Its own lanes have met as well.
func (r *race) leave(w *warp, id uint32) {
	join(r.clock[w.id], r.bars[id])
	r.meet(w, full)
}

func (r *race) reset(id uint32) { clear(r.bars[id]) }

// passed notes that all threads of the block passed a barrier.
func (r *race) passed() { r.epoch++ }

func (r *race) tick(w *warp) { r.clock[w.id][w.id]++ }

func join(a, b []uint32) {
	for i, v := range b {
		a[i] = max(a[i], v)
	}
}

// meet orders the lanes of a mask: what each knows of any lane, all know.
func (r *race) meet(w *warp, mask uint32) {
	now := r.clock[w.id][w.id]
	if mask == full {
		r.met[w.id] = now
		r.tick(w)
		return
	}
	o := &r.order[w.id]
	var known [warpSize]uint32
	for m := mask; m != 0; m &= m - 1 {
		i := lowest(m)
		for j := range known {
			known[j] = max(known[j], o[i][j])
		}
		known[i] = now
	}
	for m := mask; m != 0; m &= m - 1 {
		o[lowest(m)] = known
	}
	r.tick(w)
}

// ordered is whether an access of a thread at a clock of its warp comes before what the lane does now.
func (r *race) ordered(w *warp, lane int, thread uint16, clock uint32) bool {
	other, l := int(thread)/warpSize, int(thread)%warpSize
	if other != int(w.id) {
		return r.clock[w.id][other] >= clock
	}
	return l == lane || r.met[w.id] >= clock || r.order[w.id][lane][l] >= clock
}

// check looks at an access and records it.
func (r *race) check(w *warp, a *access, lane, addr int) {
	if a.strong {
		r.synchronise(w, lane, addr)
	}
	for at, end := addr, addr+a.size; at < end; {
		left := end - at
		if a.used != 0 {
			if a.used>>(at-addr)&1 == 0 {
				at++
				continue
			}
			left = 1
		}
		b, n := r.part(at, left)
		same := a.plain && bytes.Equal(w.data[at-addr:][:n], w.cta.shared[at:][:n])
		if what, other := r.hazard(w, a, lane, b, same); what != "" {
			w.cta.noteAt(w, a.site, lane, Racecheck, what+lineOf(other), "shared", uint64(addr), a.size, sharedSize(w.cta))
		}
		r.record(w, a, lane, b)
		at += n
	}
	if a.write && a.used == 0 {
		r.join(addr, a.size)
	}
}

// readVectors is check for plain reads of vectors by the first lanes, where what was written comes before by a barrier of
// the whole block. It returns the lanes for which it is not that simple.
func (r *race) readVectors(w *warp, a *access, off []uint32) (rest uint32) {
	if a.strong || a.used != 0 {
		return full
	}
	epoch, now, first := r.epoch, r.clock[w.id][w.id], uint16(w.id*warpSize)
	for i, at := range off {
		v := &r.vectors[at/vectorSize]
		switch {
		case v.split || v.async || v.wrote == 0 || v.wroteIn >= epoch:
			rest |= 1 << i
		case v.readIn < epoch:
			r.forget(v)
			v.reader, v.read, v.readIn = first+uint16(i), now, epoch
			if v.readerOf != a.site {
				v.readerOf = a.site
			}
		case v.reader == many && r.multi[v.multi].lanes[w.id] == 0:
			m := &r.multi[v.multi]
			m.lanes[w.id], m.clock[w.id] = 1<<i, now
		default:
			r.record(w, a, i, v)
		}
	}
	return rest
}

// copyVectors is check for the writes of vectors by a cp.async of the whole warp, which may happen from now on, where what
// was there comes before by a barrier of the whole block. It returns the other lanes.
func (r *race) copyVectors(w *warp, a *access, at *[warpSize]uint32) (rest uint32) {
	epoch, now, first := r.epoch, r.clock[w.id][w.id], uint16(w.id*warpSize)
	for i, at := range at {
		v := &r.vectors[at/vectorSize]
		if v.split || v.async || v.wroteIn >= epoch || v.readIn >= epoch {
			rest |= 1 << i
			continue
		}
		r.forget(v)
		v.writer, v.wrote, v.wroteIn, v.read, v.readIn, v.async, v.atomic = first+uint16(i), now, epoch, 0, 0, true, false
		if v.writerOf != a.site {
			v.writerOf = a.site
		}
	}
	return rest
}

// part is the largest unit that starts at an address, has at most left bytes and is not split, and its size.
func (r *race) part(at, left int) (b *shadow, size int) {
	v := &r.vectors[at/vectorSize]
	if !v.split {
		if at%vectorSize == 0 && left >= vectorSize {
			return v, vectorSize
		}
		r.divide(v, r.words[at/vectorSize*(vectorSize/wordSize):][:vectorSize/wordSize])
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
func (r *race) divide(b *shadow, parts []shadow) {
	for i := range parts {
		parts[i] = *b
		if b.read != 0 && b.reader == many {
			parts[i].multi = r.newReaders()
			from, to := &r.multi[b.multi], &r.multi[parts[i].multi]
			copy(to.lanes, from.lanes)
			copy(to.clock, from.clock)
		}
	}
	r.forget(b)
	*b = shadow{split: true}
}

// join undoes splits where a write made the parts alike.
func (r *race) join(addr, size int) {
	if size >= wordSize {
		for i := addr / wordSize; i < (addr+size)/wordSize; i++ {
			if r.words[i].split && r.vectors[i*wordSize/vectorSize].split {
				r.words[i] = r.bytes[i*wordSize]
			}
		}
	}
	if size == vectorSize && r.vectors[addr/vectorSize].split {
		r.vectors[addr/vectorSize] = r.words[addr/wordSize]
	}
}

func (r *race) newReaders() int32 {
	if n := len(r.free); n > 0 {
		i := r.free[n-1]
		r.free = r.free[:n-1]
		clear(r.multi[i].lanes)
		return i
	}
	n := len(r.clock)
	r.multi = append(r.multi, readers{make([]uint32, n), make([]uint32, n)})
	return int32(len(r.multi) - 1)
}

// forget gives the list of several readers back.
func (r *race) forget(b *shadow) {
	if b.read != 0 && b.reader == many {
		r.free = append(r.free, b.multi)
	}
}

// hazard says what is wrong with an access. That several threads write the same value is harmless, and compilers rely
// on it.
func (r *race) hazard(w *warp, a *access, lane int, b *shadow, same bool) (what string, other *site) {
	if b.wrote != 0 {
		switch {
		case b.async:
			return kindOf(a) + " of bytes that cp.async may still be writing", b.writerOf
		case !(a.strong && b.atomic) && !same && !r.ordered(w, lane, b.writer, b.wrote):
			return kindOf(a) + " after a write by another thread without a barrier between them", b.writerOf
		}
	}
	if a.write && b.read != 0 && !a.strong {
		if b.reader == many && !r.readersPast(w, lane, b) || b.reader != many && !r.ordered(w, lane, b.reader, b.read) {
			return "write after a read by another thread without a barrier between them", b.readerOf
		}
	}
	return "", nil
}

func kindOf(a *access) string {
	if a.write {
		return "write"
	}
	return "read"
}

// readersPast is whether all of several readers come before what the lane does now.
func (r *race) readersPast(w *warp, lane int, b *shadow) bool {
	m := &r.multi[b.multi]
	for v, lanes := range m.lanes {
		if v == int(w.id) {
			if !r.lanesPast(w, lane, lanes, m.clock[v]) {
				return false
			}
		} else if lanes != 0 && r.clock[w.id][v] < m.clock[v] {
			return false
		}
	}
	return true
}

// lanesPast is whether accesses of lanes of the same warp come before what the lane does now.
func (r *race) lanesPast(w *warp, lane int, lanes, clock uint32) bool {
	for lanes &^= 1 << lane; lanes != 0; lanes &= lanes - 1 {
		if r.met[w.id] < clock && r.order[w.id][lane][lowest(lanes)] < clock {
			return false
		}
	}
	return true
}

func lineOf(s *site) string {
	if s == nil {
		return ""
	}
	at := s.source()
	if at != "" {
		at = ", " + at
	}
	return " (the other is " + s.in.Name() + " at PTX line " + strconv.Itoa(s.in.Pos.Line) + at + ")"
}

func (r *race) record(w *warp, a *access, lane int, b *shadow) {
	thread, now := uint16(w.id*warpSize+uint32(lane)), r.clock[w.id][w.id]
	if a.write {
		r.forget(b)
		*b = shadow{writer: thread, wrote: now, wroteIn: r.epoch, atomic: a.strong, writerOf: a.site}
		return
	}
	b.readIn = r.epoch
	switch {
	case b.read != 0 && b.reader == many:
		r.addReader(w, lane, b, now)
	case b.read != 0 && b.reader != thread && !r.ordered(w, lane, b.reader, b.read):
		i := r.newReaders()
		m := &r.multi[i]
		m.lanes[b.reader/warpSize], m.clock[b.reader/warpSize] = 1<<(b.reader%warpSize), b.read
		b.reader, b.multi = many, i
		r.addReader(w, lane, b, now)
	default:
		b.reader, b.read, b.readerOf = thread, now, a.site
	}
}

// addReader forgets earlier readers of the warp that come before this one: what is after it is after them.
func (r *race) addReader(w *warp, lane int, b *shadow, now uint32) {
	m := &r.multi[b.multi]
	if r.lanesPast(w, lane, m.lanes[w.id], m.clock[w.id]) {
		m.lanes[w.id] = 0
	}
	m.lanes[w.id] |= 1 << lane
	m.clock[w.id] = now
}

// synchronise makes atomics and strong accesses of one address order what comes before and after them.
func (r *race) synchronise(w *warp, lane, addr int) {
	if r.sync == nil {
		r.sync = map[int]*released{}
	}
	s := r.sync[addr]
	if s == nil {
		s = &released{make([]uint32, len(r.clock)), map[uint32]*[warpSize]uint32{}}
		r.sync[addr] = s
	}
	known := s.lanes[w.id]
	if known == nil {
		known = new([warpSize]uint32)
		s.lanes[w.id] = known
	}
	join(r.clock[w.id], s.clock)
	join(s.clock, r.clock[w.id])
	mine := &r.order[w.id][lane]
	join(mine[:], known[:])
	copy(known[:], mine[:])
	known[lane] = r.clock[w.id][w.id]
	r.tick(w)
}

// markAsync marks bytes that a copy may write at any moment.
func (r *race) markAsync(addr, size int) {
	for end := addr + size; addr < end; {
		b, n := r.part(addr, end-addr)
		b.async = true
		addr += n
	}
}

// arrivedVectors is arrived for the vectors that a copy by a whole warp wrote.
func (r *race) arrivedVectors(w *warp, at *[warpSize]uint32) {
	now, first := r.clock[w.id][w.id], uint16(w.id*warpSize)
	for i, at := range at {
		if v := &r.vectors[at/vectorSize]; !v.split && v.async {
			v.async, v.wrote, v.wroteIn, v.writer = false, now, r.epoch, first+uint16(i)
		} else {
			r.arrived(w, i, int(at), vectorSize)
		}
	}
}

// arrived turns a copy that its thread waited for into a write by it.
func (r *race) arrived(w *warp, lane, addr, size int) {
	for end := addr + size; addr < end; {
		b, n := r.part(addr, end-addr)
		if b.async {
			b.async, b.wrote, b.wroteIn, b.writer = false, r.clock[w.id][w.id], r.epoch, uint16(w.id*warpSize+uint32(lane))
		}
		addr += n
	}
}
