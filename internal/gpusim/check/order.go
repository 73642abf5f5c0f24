package check

import "github.com/warpline-ml/warpline/internal/gpusim/simt"

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
	atBar     [bars]view   // what threads that arrived have acquired
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
		k.atBar, k.any = [bars]view{}, false
	}
}

// knows is whether a lane has acquired what a thread did up to a clock.
func (k *talk) knows(w uint32, lane int, thread uint16, clock uint32) bool {
	if !k.any {
		return false
	}
	v := k.known[w*simt.WarpSize+uint32(lane)]
	return v != nil && v[thread] >= clock
}

// snapshot is all that a lane knows now.
func (r *Race) snapshot(w uint32, lane int) view {
	v := make(view, len(r.known))
	r.addTo(v, w, lane)
	return v
}

// addTo adds all that a lane knows now to a view that is still being made.
func (r *Race) addTo(v view, w uint32, lane int) {
	for x, clock := range r.clock[w] {
		if x != int(w) && clock > 0 {
			of := v[x*simt.WarpSize:][:simt.WarpSize]
			for i := range of {
				of[i] = max(of[i], clock)
			}
		}
	}
	own := v[w*simt.WarpSize:][:simt.WarpSize]
	for l := range own {
		own[l] = max(own[l], r.met[w], r.order[w][lane][l])
	}
	own[lane] = r.clock[w][w]
	if known := r.known[w*simt.WarpSize+uint32(lane)]; known != nil {
		for i := range v {
			v[i] = max(v[i], known[i])
		}
	}
}

// Fence is that of some lanes, each for itself. It matters only where threads talk by way of shared memory.
func (r *Race) Fence(w uint32, lanes uint32, acquire, release bool) {
	if !r.signals {
		return
	}
	r.any = true
	if acquire {
		r.fly.told(w)
	}
	for m := lanes; m != 0; m &= m - 1 {
		t := w*simt.WarpSize + uint32(simt.Lowest(m))
		if acquire {
			r.known[t], r.read[t] = union(r.known[t], r.read[t]), nil
		}
		if release {
			r.told[t] = r.snapshot(w, simt.Lowest(m))
		}
	}
	r.tick(w)
}

// signal is what a strong access of a lane takes from its address and leaves there.
func (r *Race) signal(w uint32, a *Access, lane, addr int) {
	t := w*simt.WarpSize + uint32(lane)
	there := r.published[addr]
	if (!a.Write || a.Atomic) && there != nil {
		if a.Acquire {
			r.fly.told(w)
			r.known[t] = union(r.known[t], there)
		} else {
			r.read[t] = union(r.read[t], there)
		}
	}
	if !a.Write {
		return
	}
	left := r.told[t]
	if a.Release {
		left = r.snapshot(w, lane)
		r.any = true
	}
	if a.Atomic {
		left = union(there, left) // an atomic passes on what it found
	}
	r.publish(addr, left)
}

func (r *Race) publish(addr int, v view) {
	if v != nil {
		r.published[addr] = v
	} else if len(r.published) > 0 {
		delete(r.published, addr)
	}
}

// share lets lanes that met by bar.warp.sync have what any of them has.
func (r *Race) share(w uint32, lanes uint32) {
	if !r.any {
		return
	}
	for _, list := range [][]view{r.known, r.read, r.told} {
		of := list[w*simt.WarpSize:][:simt.WarpSize]
		var all view
		for m := lanes; m != 0; m &= m - 1 {
			all = union(all, of[simt.Lowest(m)])
		}
		for m := lanes; m != 0; m &= m - 1 {
			of[simt.Lowest(m)] = all
		}
	}
}

// bring puts what lanes have acquired to a barrier, which is a fence too.
func (r *Race) bring(w uint32, lanes, id uint32) {
	if !r.any {
		return
	}
	for m := lanes; m != 0; m &= m - 1 {
		t := w*simt.WarpSize + uint32(simt.Lowest(m))
		r.known[t], r.read[t] = union(r.known[t], r.read[t]), nil
		r.atBar[id] = union(r.atBar[id], r.known[t])
	}
}

// take gives lanes that leave a barrier of a part of the block what was brought to it.
func (r *Race) take(w uint32, lanes, id uint32) {
	if at := r.atBar[id]; at != nil {
		for m := lanes; m != 0; m &= m - 1 {
			t := w*simt.WarpSize + uint32(simt.Lowest(m))
			r.known[t] = union(r.known[t], at)
		}
	}
	r.Fence(w, lanes, true, true)
}

// strength is how an access counts against others to the same bytes.
type strength uint8

const (
	weak      strength = iota // plain: races with all
	unordered                 // volatile or relaxed: which value is read or stays is left to chance, as with plain ones
	signalled                 // an atomic; a store that releases, or comes after a fence of its thread; a load that acquires or is polled
)

// strengthOf is that of an access of a lane.
func (r *Race) strengthOf(w uint32, a *Access, lane int) strength {
	switch {
	case !a.Strong:
		return weak
	case a.Atomic || a.Polled || a.Write && (a.Release || r.told[w*simt.WarpSize+uint32(lane)] != nil) || !a.Write && a.Acquire:
		return signalled
	}
	return unordered
}

// clash is whether two accesses may not be without order, if one of them writes.
func clash(a, b strength) bool { return a == weak || b == weak || a == unordered && b == unordered }
