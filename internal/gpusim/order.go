package gpusim

// What a thread knows of others beyond barriers, by the memory model of PTX. A thread publishes what it knew at its last
// fence with each strong store and atomic after it (or at the access itself, where that releases). A thread that reads the
// place by a strong load or atomic knows the same from its next fence on (or at once, where the access acquires).
// Volatile and relaxed accesses on their own order nothing.

// view is by thread the clock of its warp up to which its accesses are known. A view is never changed once made.
type view []uint32

// union is what either view knows.
func union(a, b view) view {
	switch {
	case a == nil || len(b) > 0 && len(a) > 0 && &a[0] == &b[0]:
		return b
	case b == nil:
		return a
	}
	u := make(view, len(a))
	for i := range u {
		u[i] = max(a[i], b[i])
	}
	return u
}

// talk is the views of the threads of a block.
type talk struct {
	known     []view       // by thread: acquired
	read      []view       // by thread: published where it read, without a fence since
	told      []view       // by thread: what it knew at its last fence
	published map[int]view // by address
	atBar     [16]view     // what threads that arrived have acquired
	any       bool         // any of these is there
}

func newTalk(threads int) talk {
	return talk{known: make([]view, threads), read: make([]view, threads), told: make([]view, threads), published: map[int]view{}}
}

// forget is for a barrier of the whole block: all that was known is known to all.
func (k *talk) forget() {
	if k.any {
		clear(k.known)
		clear(k.read)
		clear(k.told)
		clear(k.published)
		k.atBar, k.any = [16]view{}, false
	}
}

// knows is whether a lane has acquired what a thread did up to a clock.
func (k *talk) knows(w *warp, lane int, thread uint16, clock uint32) bool {
	if !k.any {
		return false
	}
	v := k.known[w.id*warpSize+uint32(lane)]
	return v != nil && v[thread] >= clock
}

// snapshot is all that a lane knows now.
func (r *race) snapshot(w *warp, lane int) view {
	v := make(view, len(r.known))
	r.addTo(v, w, lane)
	return v
}

// addTo adds all that a lane knows now to a view that is still being made.
func (r *race) addTo(v view, w *warp, lane int) {
	for x, clock := range r.clock[w.id] {
		if x != int(w.id) && clock > 0 {
			of := v[x*warpSize:][:warpSize]
			for i := range of {
				of[i] = max(of[i], clock)
			}
		}
	}
	own := v[w.id*warpSize:][:warpSize]
	for l := range own {
		own[l] = max(own[l], r.met[w.id], r.order[w.id][lane][l])
	}
	own[lane] = r.clock[w.id][w.id]
	if known := r.known[w.id*warpSize+uint32(lane)]; known != nil {
		for i := range v {
			v[i] = max(v[i], known[i])
		}
	}
}

// fence is that of some lanes, each for itself. It matters only where threads talk by way of shared memory.
func (r *race) fence(w *warp, lanes uint32, acquire, release bool) {
	if !w.code.signals {
		return
	}
	r.any = true
	for m := lanes; m != 0; m &= m - 1 {
		t := w.id*warpSize + uint32(lowest(m))
		if acquire {
			r.known[t], r.read[t] = union(r.known[t], r.read[t]), nil
		}
		if release {
			r.told[t] = r.snapshot(w, lowest(m))
		}
	}
	r.tick(w)
}

// signal is what a strong access of a lane takes from its address and leaves there.
func (r *race) signal(w *warp, a *access, lane, addr int) {
	t := w.id*warpSize + uint32(lane)
	there := r.published[addr]
	if (!a.write || a.atomic) && there != nil {
		if a.acquire {
			r.known[t] = union(r.known[t], there)
		} else {
			r.read[t] = union(r.read[t], there)
		}
	}
	if !a.write {
		return
	}
	left := r.told[t]
	if a.release {
		left = r.snapshot(w, lane)
		r.any = true
	}
	if a.atomic {
		left = union(there, left) // an atomic passes on what it found
	}
	r.publish(addr, left)
}

func (r *race) publish(addr int, v view) {
	if v != nil {
		r.published[addr] = v
	} else if len(r.published) > 0 {
		delete(r.published, addr)
	}
}

// share lets lanes that met by bar.warp.sync have what any of them has.
func (r *race) share(w *warp, lanes uint32) {
	if !r.any {
		return
	}
	for _, list := range [][]view{r.known, r.read, r.told} {
		of := list[w.id*warpSize:][:warpSize]
		var all view
		for m := lanes; m != 0; m &= m - 1 {
			all = union(all, of[lowest(m)])
		}
		for m := lanes; m != 0; m &= m - 1 {
			of[lowest(m)] = all
		}
	}
}

// bring puts what lanes have acquired to a barrier, which is a fence too.
func (r *race) bring(w *warp, lanes, id uint32) {
	if !r.any {
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		t := w.id*warpSize + uint32(lowest(m))
		r.known[t], r.read[t] = union(r.known[t], r.read[t]), nil
		r.atBar[id] = union(r.atBar[id], r.known[t])
	}
}

// take gives lanes that leave a barrier of a part of the block what was brought to it.
func (r *race) take(w *warp, lanes, id uint32) {
	if at := r.atBar[id]; at != nil {
		for m := lanes; m != 0; m &= m - 1 {
			t := w.id*warpSize + uint32(lowest(m))
			r.known[t] = union(r.known[t], at)
		}
	}
	r.fence(w, lanes, true, true)
}

// strength is how an access counts against others to the same bytes.
type strength uint8

const (
	weak      strength = iota // plain: races with all
	unordered                 // volatile or relaxed: which value is read or stays is left to chance, as with plain ones
	signalled                 // an atomic; a store that releases, or comes after a fence of its thread; a load that acquires or is polled
)

// strengthOf is that of an access of a lane.
func (r *race) strengthOf(w *warp, a *access, lane int) strength {
	switch {
	case !a.strong:
		return weak
	case a.atomic || a.polled || a.write && (a.release || r.told[w.id*warpSize+uint32(lane)] != nil) || !a.write && a.acquire:
		return signalled
	}
	return unordered
}

// clash is whether two accesses may not be without order, if one of them writes.
func clash(a, b strength) bool { return a == weak || b == weak || a == unordered && b == unordered }
