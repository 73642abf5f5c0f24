package gpusim

import (
	"encoding/binary"
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Where accesses are checked or counted, the assembly still moves the data. A step in Go looks at the access of the whole
// warp: before a store (watch), whose data matters; after what the assembly has found to lie in one place and whose offsets
// it has left in the frame (review).

// watcher makes the step for an access whose address addr computes. fill writes what a lane is about to store to w.data.
func (e *emitter) watcher(a *access, addr op, lanes uint32, fill func(w *warp, lane int)) {
	e.watch = func(w *warp) {
		addr(w)
		w.mask = lanes
		w.countAccess(a)
		if a.space == ptx.Shared {
			w.watchShared(a, fill)
		} else {
			w.watchGlobal(a)
		}
		w.mask = full
	}
}

// reviewer makes the step after a load of 16 bytes by the first lanes.
func (e *emitter) reviewer(a *access, lanes int) {
	if a.space == ptx.Shared {
		e.review = func(w *warp) { w.reviewShared(a, lanes) }
	} else {
		e.review = func(w *warp) { w.reviewGlobal(a) }
	}
}

// reviewed counts the access at the offsets in the frame from a base on, and returns them.
func (w *warp) reviewed(a *access, base uint64, lanes int) []uint32 {
	off := w.cta.worker.frame.off[:lanes]
	if w.cta.grid.counters {
		for i, at := range off {
			w.addr[i] = base + uint64(at)
		}
		w.mask = full >> (warpSize - lanes)
		w.countAccess(a)
		w.mask = full
	}
	return off
}

func (w *warp) reviewShared(a *access, lanes int) {
	c := w.cta
	off := w.reviewed(a, 0, lanes)
	rest := full
	if c.race != nil {
		rest = c.race.readVectors(w, a, off) // what was written as a whole is known
	}
	for i, at := range off {
		if rest>>i&1 == 0 {
			continue
		}
		if c.race != nil {
			c.race.check(w, a, i, int(at))
		}
		if c.written != nil && !vectorSet((*[vectorSize]byte)(c.written[at:])) {
			w.checkWritten(a, i, int(at))
		}
	}
}

func (w *warp) reviewGlobal(a *access) {
	al := w.cta.worker.regions[a.region].alloc
	for i, at := range w.reviewed(a, al.lo, warpSize) {
		w.off[i], w.addr[i] = int(at), al.lo+uint64(at)
	}
	w.follow(a, al)
}

// reviewCopy checks the copy that the assembly has just begun.
func (w *warp) reviewCopy(to, from *access) {
	c := w.cta
	p := &w.async.list[w.async.copies-1]
	if c.grid.counters {
		for i, at := range &p.at {
			w.addr[i] = uint64(at)
		}
		w.countAccess(to)
	}
	al := c.worker.regions[from.region].alloc
	off := w.reviewed(from, al.lo, warpSize)
	if al.tracked() || c.race != nil {
		for i, at := range off {
			w.off[i], w.addr[i] = int(at), al.lo+uint64(at)
		}
		w.follow(from, al)
	}
	p.access = int32(to.id)
	if c.written != nil {
		for _, at := range &p.at {
			set(c.written[at:][:vectorSize])
		}
	}
	if c.race == nil {
		return
	}
	for m := c.race.copyVectors(w, to, &p.at); m != 0; m &= m - 1 {
		i := lowest(m)
		c.race.check(w, to, i, int(p.at[i]))
		c.race.markAsync(int(p.at[i]), vectorSize)
	}
	c.worker.last = al
	w.sourceOf(p)
}

// sourceOf records the source of a copy by the whole warp, at the addresses in w.addr.
func (w *warp) sourceOf(p *asyncCopy) {
	p.from, p.read = w.addr, wholeCopy
	w.cta.watchSource(slices.Min(w.addr[:]), 0)
	w.cta.watchSource(slices.Max(w.addr[:]), vectorSize)
}

// seen makes the form in Go of a watched access skip what has been done.
func seen(run op) op {
	return func(w *warp) {
		w.seen = true
		run(w)
		w.seen = false
	}
}

// one looks at the active lanes one by one, up to a fault.
func (w *warp) one(a *access) {
	for m := w.mask; m != 0; m &= m - 1 {
		if i := lowest(m); w.ref(a, i, w.addr[i]) == nil {
			return
		}
	}
}

// watchShared checks accesses to shared memory.
func (w *warp) watchShared(a *access, fill func(w *warp, lane int)) {
	c := w.cta
	if len(c.shared) < a.size || !w.offsets(0, uint64(len(c.shared)-a.size), uint64(a.size-1)) {
		w.one(a)
		return
	}
	if c.race == nil && c.written == nil {
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if fill != nil {
			fill(w, i)
		}
		if c.race != nil {
			c.race.check(w, a, i, w.off[i])
		}
		if c.written != nil {
			w.checkWritten(a, i, w.off[i])
		}
		if fill != nil { // the next lane may write the same
			copy(c.shared[w.off[i]:], w.data[:a.size])
		}
	}
}

// checkWritten follows which bytes of shared memory have been written.
func (w *warp) checkWritten(a *access, lane, at int) {
	written := w.cta.written[at:][:a.size]
	if !a.write && a.used == 0 && allSet(written) {
		return
	}
	if (!a.write || a.atomic) && unwritten(written, a.used) >= 0 {
		w.cta.noteAt(w, a.site, lane, Initcheck, "read of shared memory that was never written", "shared", uint64(at), a.size, sharedSize(w.cta))
	}
	if a.write {
		set(written)
	}
}

// ones is 8 bytes that have been written.
const ones = 0x0101010101010101

// vectorSet is allSet for a vector.
func vectorSet(p *[vectorSize]byte) bool {
	return binary.LittleEndian.Uint64(p[:])&binary.LittleEndian.Uint64(p[8:]) == ones
}

// allSet is whether all bytes are 1; false where that is not easily seen.
func allSet(p []byte) bool {
	for len(p) >= 8 {
		if binary.LittleEndian.Uint64(p) != ones {
			return false
		}
		p = p[8:]
	}
	for _, b := range p {
		if b != 1 {
			return false
		}
	}
	return true
}

func set(p []byte) {
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, ones)
		p = p[8:]
	}
	for i := range p {
		p[i] = 1
	}
}

// watchGlobal checks accesses to global memory.
func (w *warp) watchGlobal(a *access) {
	c := w.cta
	first := w.addr[lowest(w.mask)]
	al := c.worker.last
	if al == nil || first < al.lo || first >= al.hi {
		al = c.grid.dev.find(first)
	}
	if al == nil || a.write && al.constant || len(al.data) < a.size || !w.offsets(al.lo, uint64(len(al.data)-a.size), uint64(a.size-1)) {
		w.one(a)
		return
	}
	c.worker.last = al
	c.worker.remember(a, al)
	w.follow(a, al)
}

// follow checks accesses in an allocation, at the addresses in w.addr and offsets in w.off.
func (w *warp) follow(a *access, al *allocation) {
	c := w.cta
	if al.tracked() {
		w.watchInit(a, al)
	}
	stale, source := a.watched(c.grid), a.write && c.copied(al)
	if !stale && !source {
		return
	}
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if stale {
			c.grid.stale.touch(w, a, i, al, w.addr[i])
		}
		if source {
			w.checkSource(a, i, al, w.addr[i])
		}
	}
}

// watchInit is checkInit for the active lanes, whose offsets are in w.off; of those whose accesses follow each other, at
// once.
func (w *warp) watchInit(a *access, al *allocation) {
	if w.mask != full || a.used != 0 || a.atomic {
		for m := w.mask; m != 0; m &= m - 1 {
			i := lowest(m)
			w.checkInit(a, i, w.addr[i], al)
		}
		return
	}
	for i := 0; i < warpSize; {
		from, first := i, w.off[i]
		for i++; i < warpSize && w.off[i] == w.off[i-1]+a.size; i++ {
		}
		span := al.init[first:][:(i-from)*a.size]
		switch {
		case a.write:
			set(span)
		case !allSet(span):
			for ; from < i; from++ {
				w.checkInit(a, from, w.addr[from], al)
			}
		}
	}
}

// wholeCopy is that each lane of a copy reads 16 bytes.
var wholeCopy = [warpSize]uint8(slices.Repeat([]uint8{16}, warpSize))
