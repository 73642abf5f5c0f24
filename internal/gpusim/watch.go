package gpusim

import (
	"encoding/binary"
	"slices"

	"github.com/warpline-ml/warpline/internal/ptx"
)

// Where accesses are checked or counted, the assembly still moves the data: a step in Go looks at the access of the whole
// warp first. What it found good cannot fail afterwards.

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
	fast := c.race != nil && a.size == vectorSize && !a.write && !a.strong && a.used == 0
	for m := w.mask; m != 0; m &= m - 1 {
		i := lowest(m)
		if fast && c.race.readVector(w, a, i, w.off[i]) {
			continue // what was written as a whole is known
		}
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

// allSet is whether all bytes are 1; false where that is not easily seen.
func allSet(p []byte) bool {
	const ones = 0x0101010101010101
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
	const ones = 0x0101010101010101
	for len(p) >= 8 {
		binary.LittleEndian.PutUint64(p, ones)
		p = p[8:]
	}
	for i := range p {
		p[i] = 1
	}
}

// watchGlobal checks accesses to global memory. Where all lie in one allocation it returns that, with the offsets in w.off.
func (w *warp) watchGlobal(a *access) *allocation {
	c := w.cta
	first := w.addr[lowest(w.mask)]
	al := c.worker.last
	if al == nil || first < al.lo || first >= al.hi {
		al = c.grid.dev.find(first)
	}
	if al == nil || len(al.data) < a.size || !w.offsets(al.lo, uint64(len(al.data)-a.size), uint64(a.size-1)) {
		w.one(a)
		return nil
	}
	c.worker.last = al
	c.worker.remember(a, al)
	if al.init != nil {
		w.watchInit(a, al)
	}
	if stale, source := a.watched(c.grid), a.write && len(c.sources) > 0; stale || source {
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
	return al
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

// copyAll is cp.async of 16 bytes by the whole warp, from the addresses in w.addr.
func (w *warp) copyAll(to, from *access, targets *vec64) {
	c := w.cta
	al := w.watchGlobal(from)
	if al == nil || c.fault != nil {
		return
	}
	source, sources := w.off, w.addr
	w.addr = *targets
	if !w.watchCopy(to) {
		return
	}
	p := w.async.add()
	p.group, p.lanes, p.landed, p.size, p.access = w.async.group, full, 0, 16, int32(to.id)
	for i, at := range &source {
		p.at[i], p.data[i] = uint32(w.off[i]), [16]byte(al.data[at:])
	}
	if c.race != nil {
		p.from, p.read = sources, wholeCopy
		c.watchSource(slices.Min(sources[:]), 0)
		c.watchSource(slices.Max(sources[:]), 16)
	}
	w.landByChance(full)
}

// wholeCopy is that each lane of a copy reads 16 bytes.
var wholeCopy = [warpSize]uint8(slices.Repeat([]uint8{16}, warpSize))

// watchCopy checks the targets of a copy, in w.addr. It reports whether the kernel goes on.
func (w *warp) watchCopy(to *access) bool {
	c := w.cta
	if len(c.shared) < 16 || !w.offsets(0, uint64(len(c.shared)-16), 15) {
		w.one(to)
		return c.fault == nil
	}
	for i, at := range &w.off {
		if c.race != nil && !c.race.copyVector(w, to, i, at) {
			c.race.check(w, to, i, at)
			c.race.markAsync(at, 16)
		}
		if c.written != nil {
			set(c.written[at:][:16])
		}
	}
	return true
}
