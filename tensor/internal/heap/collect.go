package heap

import (
	"runtime"
	"runtime/metrics"
	"weak"
)

const (
	paceFloor = 8 << 20
	allFloor  = 64 << 20
	smallHeap = 64 << 20 // of Go, in what its collector has to look through
)

// floorBeside is the least growth between collections in a program with so many bytes to look through. A collection costs
// what they cost: 0.1 ms, or 80 ms beside three million objects, which growth must then outweigh, as in Go's own pacing.
// What needs no looking through, such as the memory of a simulated GPU, does not count, and neither do the storages that
// were just released: those of small values are larger than their memory and would put off each next collection by a
// multiple. In a small heap nothing counts, nor does the clock: a dry run must see the same peak as the run.
func floorBeside(scanned int64) int64 {
	if scanned <= smallHeap {
		return paceFloor
	}
	return max(paceFloor, 2*(scanned-smallHeap))
}

// scannable is what Go's last collection had to look through, in bytes.
func scannable() int64 {
	s := []metrics.Sample{{Name: "/gc/scan/heap:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64())
}

// due reports whether n more bytes call for a collection; h.mu is held.
func (h *Heap) due(n int64) bool {
	return h.loose()+n-h.paceLoose > max(h.floor, h.inUse/8) || h.inUse+n > max(allFloor, 2*h.paceAll)
}

// Collect releases now what no handle reaches.
func (h *Heap) Collect() {
	h.mu.Lock()
	h.collect(0)
	h.paceLoose, h.paceAll = h.loose(), h.inUse
	h.mu.Unlock()
}

// collect runs Go's collector and releases what no handle reaches, before n bytes are allocated. h.mu is held on entry and
// on return.
func (h *Heap) collect(n int64) {
	for h.collecting { // another goroutine's collection may have begun before our garbage was made
		h.collected.Wait()
	}
	h.collecting = true
	for s := h.open; s != nil; s = s.next {
		s.watch()
	}
	h.mu.Unlock()
	runtime.GC()
	h.mu.Lock()
	released, before := 0, h.inUse
	for s := h.open; s != nil; s = s.next {
		released += len(s.storages)
		h.releaseUnreachable(s)
		released -= len(s.storages)
	}
	h.floor = floorBeside(scannable() - storageBytes*int64(released))
	h.repace(before-h.inUse, n)
	h.collections++
	h.collecting = false
	h.collected.Broadcast()
}

// repace sets from where growth counts, after a collection that released so many bytes and before n are allocated. One that
// was of little use, beside the most that is known to live, has shown that as much may live: the program will come back to
// where it is now, and lower levels must not count again, or a loop whose memory swells and ebbs would collect for ever, in
// vain.
func (h *Heap) repace(released, n int64) {
	loose, all := h.loose()+n, h.inUse+n
	if released < max(h.floor, max(all, h.paceAll)/8)/2 {
		loose, all = max(loose, h.paceLoose), max(all, h.paceAll)
	}
	h.paceLoose, h.paceAll = loose, all
}

// watch leaves it to handles to keep the Refs of a scope alive.
func (s *Scope) watch() {
	s.page = nil // an open page is reachable from its scope: it would keep its storages
	var last *Ref
	var watch weak.Pointer[Ref]
	for _, st := range s.storages {
		if st.watched == nil {
			continue
		}
		if st.watched != last {
			last, watch = st.watched, weak.Make(st.watched)
		}
		st.watch, st.watched = watch, nil
	}
}

func (h *Heap) releaseUnreachable(s *Scope) {
	var last weak.Pointer[Ref]
	alive := true
	for i := len(s.storages) - 1; i >= 0; i-- {
		st := s.storages[i]
		if st.watched != nil {
			continue // it was made meanwhile
		}
		if st.watch != last {
			last, alive = st.watch, st.watch.Value() != nil
		}
		if !alive {
			h.release(st, unreachable)
		}
	}
}
